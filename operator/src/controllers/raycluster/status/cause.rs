//! The first thing that keeps a cluster from working, lifted up to where people look (C-50, pain 3).

use shared::api::RayCluster;

use crate::controllers::raycluster::apply::Applied;
use crate::controllers::raycluster::memory::ClusterMemory;
use crate::controllers::raycluster::pods::{Role, Trouble, trouble};

/// The first cause: what the spec or the names forbid, what the API server refused, then Pods in trouble, the head before workers
/// in the order of their groups, then what ended a Pod that has not been replaced yet.
pub(super) fn first(cluster: &RayCluster, applied: &Applied, memory: &ClusterMemory) -> Option<Trouble> {
    let spec = applied.verdict().problem().map(|message| Trouble { reason: "InvalidSpec".to_owned(), message: message.to_owned() });
    spec.or_else(|| applied.conflict().cloned())
        .or_else(|| {
            let refusal = memory.refusal()?;
            Some(Trouble { reason: refusal.reason.to_owned(), message: refusal.message.clone() })
        })
        .or_else(|| applied.failure().cloned())
        .or_else(|| of_pods(cluster, applied))
        .or_else(|| memory.last_crash().cloned())
}

/// The first Pod in trouble.
pub(super) fn of_pods(cluster: &RayCluster, applied: &Applied) -> Option<Trouble> {
    let live = || applied.pods().iter().filter(|pod| pod.is_live());
    let heads = live().filter(|pod| pod.role() == Role::Head);
    let workers = cluster.spec.worker_groups().iter().flat_map(|group| live().filter(|pod| pod.is_worker_of(&group.group_name)));
    heads.chain(workers).find_map(|pod| trouble(pod.view()))
}
