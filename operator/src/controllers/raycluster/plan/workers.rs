//! Worker groups whose replicas are single Pods (RC-175..RC-182).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::group::{DOUBLE_WITHIN, GroupPlan, GroupView, free_indices, is_due};
use super::{NewWorker, Why};
use crate::build::pod::Replica;
use crate::build::resources::desired_pods;
use crate::controllers::raycluster::memory::GroupMemory;
use crate::controllers::raycluster::pods::{ClusterPod, Fare};

/// Plans a group.
pub(super) fn plan(view: &GroupView<'_>, memory: &mut GroupMemory) -> GroupPlan {
    let mut plan = GroupPlan::default();
    let wanted = usize::try_from(desired_pods(view.group)).unwrap_or_default();
    let suspended = view.group.suspend == Some(true);
    let listed = view.listed();
    let mut kept: Vec<&ClusterPod> = Vec::new();
    for pod in view.members().filter(|pod| pod.is_live()) {
        if suspended {
            plan.delete(pod, Why::GroupSuspended);
        } else if listed.contains(pod.name()) {
            plan.delete(pod, Why::Listed);
        } else if pod.fare() == Fare::Ended && is_due(pod, memory, &mut plan, view.now) {
            plan.delete(pod, Why::Ended);
        } else {
            kept.push(pod);
        }
    }
    if view.indexing {
        remove_doubles(&mut kept, &mut plan, view);
    }
    if view.chooses_victims && kept.len() > wanted {
        kept.sort_by_key(|pod| (pod.fare(), Reverse((pod.created(), pod.name()))));
        for victim in kept.drain(..kept.len() - wanted) {
            plan.delete(victim, Why::Surplus);
        }
    }
    // A Pod that goes keeps its place until it is gone, so that its successor finds the resources free.
    let vacating: Vec<_> = view.members().filter(|pod| pod.is_vacating(view.now)).collect();
    let missing = wanted.saturating_sub(kept.len() + plan.delete.len() + vacating.len());
    if wanted > kept.len() {
        vacating.iter().filter_map(|pod| pod.vacates_by()).for_each(|time| plan.wake_at(time));
    }
    if missing > 0 {
        match memory.refused_until(view.now) {
            Some(until) => plan.wake_at(until),
            None => plan.create = new_workers(view, memory, missing),
        }
    } else {
        memory.refusal = None;
    }
    plan.healthy = kept.len() >= wanted && kept.iter().all(|pod| pod.fare() == Fare::Ready);
    plan
}

/// Two Pods with one index were made by two operators at the same time: the younger one goes. In a group without an autoscaler it
/// would go as surplus anyway.
fn remove_doubles(kept: &mut Vec<&ClusterPod>, plan: &mut GroupPlan, view: &GroupView<'_>) {
    let mut oldest: BTreeMap<i32, &ClusterPod> = BTreeMap::new();
    for pod in kept.iter() {
        let Some(index) = pod.replica_index() else { continue };
        let first = oldest.entry(index).or_insert(pod);
        if (pod.created(), pod.name()) < (first.created(), first.name()) {
            *first = pod;
        }
    }
    kept.retain(|pod| {
        let is_double = pod.replica_index().and_then(|index| oldest.get(&index)).is_some_and(|first| first.uid() != pod.uid());
        let goes = is_double && view.now.duration_since(pod.created()) < DOUBLE_WITHIN;
        if goes {
            plan.delete(pod, Why::Double);
        }
        !goes
    });
}

fn new_workers(view: &GroupView<'_>, memory: &GroupMemory, count: usize) -> Vec<NewWorker> {
    let listed = view.listed();
    let present: BTreeSet<&str> = view.pods.iter().map(ClusterPod::name).collect();
    let is_taken = |name: &str| present.contains(name) || listed.contains(name) || view.used.contains(name);
    let mut names: Vec<String> = memory.uncertain.iter().filter(|name| !is_taken(name)).take(count).cloned().collect();
    let drawn =
        view.lottery().free_names(&view.prefix(), count - names.len(), |name| is_taken(name) || names.iter().any(|known| known == name));
    names.extend(drawn);
    let used: BTreeSet<i32> = view.members().filter_map(ClusterPod::replica_index).collect();
    let replica = |index| view.indexing.then(|| Replica { index, name: String::new(), host_index: 0 });
    names.into_iter().zip(free_indices(&used)).map(|(name, index)| NewWorker { name, replica: replica(index) }).collect()
}
