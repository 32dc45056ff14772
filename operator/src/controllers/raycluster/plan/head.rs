//! The head Pod (RC-160..RC-163).

use std::cmp::Reverse;

use shared::api::RayCluster;
use shared::labels::{annotation, node_type};
use shared::names;

use super::group::{GroupPlan, is_due};
use super::names::{Lottery, UsedNames, epoch};
use super::{NewHead, Why};
use crate::controllers::raycluster::memory::GroupMemory;
use crate::controllers::raycluster::pods::{ClusterPod, Fare, Role};
use crate::settings::Settings;

/// What is to be done with the head.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadPlan {
    /// Heads that go, another look, health.
    pub(super) group: GroupPlan,
    /// The head that comes.
    pub(super) create: Option<NewHead>,
    /// There is no head and will be none for now, so workers would wait in vain.
    pub(super) hold_workers: bool,
}

/// Plans the head. `provisioned` says whether the cluster was complete once.
pub(super) fn plan(
    cluster: &RayCluster,
    pods: &[ClusterPod],
    provisioned: bool,
    used: &UsedNames,
    memory: &mut GroupMemory,
    settings: &Settings,
    now: jiff::Timestamp,
) -> HeadPlan {
    let mut plan = HeadPlan::default();
    let heads = || pods.iter().filter(|pod| pod.role() == Role::Head);
    let mut live: Vec<&ClusterPod> = heads().filter(|pod| pod.is_live()).collect();
    // Of several heads, which two operators made at the same time, the one that does best stays, or else the oldest.
    live.sort_by_key(|pod| (Reverse(pod.fare()), pod.created(), pod.name().to_owned()));
    for double in live.iter().skip(1) {
        plan.group.delete(double, Why::Double);
    }
    if let Some(head) = live.first() {
        memory.refusal = None;
        if head.fare() == Fare::Ended && is_due(head, memory, &mut plan.group, now) {
            plan.group.delete(head, Why::Ended);
        }
        plan.group.healthy = head.fare() == Fare::Ready;
        return plan;
    }
    // Two heads of one cluster must never run at the same time, so a head that is being deleted has no successor before it is gone.
    if heads().next().is_some() {
        return plan;
    }
    let stays_lost = || {
        let annotations = cluster.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(annotation::DISABLE_PROVISIONED_HEAD_RESTART)).is_some_and(|value| value == "true")
    };
    if provisioned && stays_lost() {
        plan.hold_workers = true;
        return plan;
    }
    if let Some(until) = memory.refused_until(now) {
        plan.group.wake_at(until);
        plan.hold_workers = true;
        return plan;
    }
    plan.create = Some(NewHead { name: new_name(cluster, pods, used, memory, settings, now) });
    plan
}

/// Name of a new head: the one that the switch or the template fixes, or else a drawn one (RC-15, RC-30).
fn new_name(
    cluster: &RayCluster,
    pods: &[ClusterPod],
    used: &UsedNames,
    memory: &GroupMemory,
    settings: &Settings,
    now: jiff::Timestamp,
) -> Option<String> {
    let template = cluster.spec.head_group_spec.template.metadata.as_ref();
    let fixed = template.and_then(|metadata| metadata.name.as_deref()).is_some_and(|name| !name.is_empty());
    if settings.switches.deterministic_head_pod_name || fixed {
        return None;
    }
    let lottery = Lottery { cluster_uid: cluster.metadata.uid.as_deref().unwrap_or_default(), group: "", epoch: epoch(now) };
    if let Some(name) = memory.uncertain.first() {
        return Some(name.clone());
    }
    let prefix = names::pod_name(cluster.metadata.name.as_deref().unwrap_or_default(), node_type::HEAD, true);
    lottery.free_names(&prefix, 1, |name| used.contains(name) || pods.iter().any(|pod| pod.name() == name)).pop()
}
