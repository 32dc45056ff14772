//! Numbers of workers (RC-462, RC-463).

use shared::api::RayCluster;
use shared::api::raycluster::{RayClusterStatus, WorkerGroupSpec};

use crate::build::resources::{desired_pods, hosts_per_replica};
use crate::controllers::raycluster::pods::{ClusterPod, Role};

/// Fills in the five counts.
pub(super) fn fill(status: &mut RayClusterStatus, cluster: &RayCluster, pods: &[ClusterPod]) {
    let workers = || pods.iter().filter(|pod| pod.role() == Role::Worker);
    status.available_worker_replicas = count(workers().filter(|pod| pod.runs()));
    status.ready_worker_replicas = count(workers().filter(|pod| pod.view().is_ready()));
    let groups = cluster.spec.worker_groups();
    status.desired_worker_replicas = sum(groups, |group| i64::from(desired_pods(group)));
    status.min_worker_replicas = sum(groups, |group| bound(group, group.min_replicas, 0));
    status.max_worker_replicas = sum(groups, |group| bound(group, group.max_replicas, i32::MAX));
}

fn count<'a>(pods: impl Iterator<Item = &'a ClusterPod>) -> i32 {
    i32::try_from(pods.count()).unwrap_or(i32::MAX)
}

fn sum(groups: &[WorkerGroupSpec], pods: impl Fn(&WorkerGroupSpec) -> i64) -> i32 {
    let sum = groups.iter().map(pods).fold(0_i64, i64::saturating_add);
    i32::try_from(sum.max(0)).unwrap_or(i32::MAX)
}

/// A bound in Pods; a suspended group has none.
fn bound(group: &WorkerGroupSpec, replicas: Option<i32>, absent: i32) -> i64 {
    if group.suspend == Some(true) {
        return 0;
    }
    i64::from(replicas.unwrap_or(absent)).saturating_mul(i64::from(hosts_per_replica(group)))
}
