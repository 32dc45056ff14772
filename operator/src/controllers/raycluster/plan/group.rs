//! What planning a worker group starts from and comes to, for single hosts and for multi-host replicas alike.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared::api::raycluster::WorkerGroupSpec;
use shared::names;

use super::names::{Lottery, UsedNames, epoch};
use super::{Deletion, NewWorker, Why};
use crate::controllers::raycluster::memory::GroupMemory;
use crate::controllers::raycluster::pods::ClusterPod;

/// A worker group and what is known of it.
pub(super) struct GroupView<'a> {
    /// Uid of the cluster.
    pub(super) cluster_uid: &'a str,
    /// Name of the cluster.
    pub(super) cluster_name: &'a str,
    /// What is wanted.
    pub(super) group: &'a WorkerGroupSpec,
    /// The cluster's Pods.
    pub(super) pods: &'a [ClusterPod],
    /// Whether the operator may choose which Pods go when there are too many; otherwise the autoscaler does (RC-182).
    pub(super) chooses_victims: bool,
    /// Whether workers carry index labels (gate RayMultiHostIndexing, RC-18).
    pub(super) indexing: bool,
    /// Names that must not be given again.
    pub(super) used: &'a UsedNames,
    /// Now.
    pub(super) now: Timestamp,
}

impl<'a> GroupView<'a> {
    /// The group's Pods.
    pub(super) fn members(&self) -> impl Iterator<Item = &'a ClusterPod> {
        let group = &self.group.group_name;
        self.pods.iter().filter(move |pod| pod.is_worker_of(group))
    }

    /// Names listed in `workersToDelete`.
    pub(super) fn listed(&self) -> BTreeSet<&'a str> {
        let listed = self.group.scale_strategy.as_ref().and_then(|strategy| strategy.workers_to_delete.as_deref());
        listed.unwrap_or_default().iter().map(String::as_str).collect()
    }

    /// Listed names of Pods of this cluster that are no workers of this group: the head, or workers of another group (C-28). They
    /// stay; names of Pods that the cluster does not have are not worth a word, since autoscalers leave them in the list.
    pub(super) fn wrongly_listed(&self) -> Vec<&'a str> {
        let listed = self.listed();
        let strangers = self.pods.iter().filter(|pod| !pod.is_worker_of(&self.group.group_name));
        strangers.map(ClusterPod::name).filter(|name| listed.contains(name)).collect()
    }

    /// Prefix of the names of the group's Pods.
    pub(super) fn prefix(&self) -> String {
        names::worker_pod_prefix(self.cluster_name, &self.group.group_name)
    }

    /// Where names of new Pods and replicas come from.
    pub(super) fn lottery(&self) -> Lottery<'a> {
        Lottery { cluster_uid: self.cluster_uid, group: &self.group.group_name, epoch: epoch(self.now) }
    }
}

/// What is to be done with a group.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupPlan {
    /// Pods that go.
    pub(super) delete: Vec<Deletion>,
    /// Pods that come.
    pub(super) create: Vec<NewWorker>,
    /// When time alone makes a difference.
    pub(super) wake: Option<Timestamp>,
    /// Whether everything that is wanted is there and works.
    pub(super) healthy: bool,
}

impl GroupPlan {
    /// Adds a Pod that goes.
    pub(super) fn delete(&mut self, pod: &ClusterPod, why: Why) {
        self.delete.push(Deletion { pod: pod.clone(), why });
    }

    /// Asks for another look at this time.
    pub(super) fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |known| known.min(time)));
    }
}

/// Whether an ended Pod is due to be replaced. If not, another look is asked for.
pub(super) fn is_due(pod: &ClusterPod, memory: &mut GroupMemory, plan: &mut GroupPlan, now: Timestamp) -> bool {
    let release = memory.crashes.release(pod, now);
    if release > now {
        plan.wake_at(release);
    }
    release <= now
}

/// The lowest numbers that are not in use.
pub(super) fn free_indices(used: &BTreeSet<i32>) -> impl Iterator<Item = i32> {
    (0..i32::MAX).filter(move |index| !used.contains(index))
}

/// How young a Pod has to be to pass for one that two operators made at the same time. Nothing older goes for that reason.
pub(super) const DOUBLE_WITHIN: jiff::SignedDuration = jiff::SignedDuration::from_secs(300);
