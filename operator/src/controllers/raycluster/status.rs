//! What the status says: pure, from the object and what [`apply`](super::apply) left behind.

mod cause;
pub mod condition;
mod counts;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared::api::RayCluster;
use shared::api::raycluster::{HeadInfo, RayClusterStatus};
use shared::features::Feature;

use super::apply::Applied;
use super::memory::ClusterMemory;
use super::plan::{Phase, Stage, Verdict};
use super::pods::{ClusterPod, Fare, Role, Trouble};
use crate::build::resources::{desired_pods, desired_resources};
use crate::runtime::views::ServiceView;
use crate::settings::Settings;

/// `state` of a cluster whose wanted Pods are all there and ready.
pub const READY: &str = "ready";
/// `state` of a cluster that is suspended and has no Pods.
pub const SUSPENDED: &str = "suspended";

/// The status of a cluster after a pass (RC-460..RC-475).
pub fn status(cluster: &RayCluster, applied: &Applied, memory: &ClusterMemory, settings: &Settings, now: Timestamp) -> RayClusterStatus {
    let before = cluster.status.clone().unwrap_or_default();
    let pods = applied.pods();
    let health = Health::of(cluster, applied, memory);
    let mut status = RayClusterStatus { conditions: before.conditions.clone(), ..RayClusterStatus::default() };

    counts::fill(&mut status, cluster, pods);
    let totals = desired_resources(&cluster.spec);
    (status.desired_cpu, status.desired_memory) = (totals.cpu, totals.memory);
    (status.desired_gpu, status.desired_tpu) = (totals.gpu, totals.tpu);
    let head = pods.iter().filter(|pod| pod.role() == Role::Head).min_by_key(|pod| (pod.is_terminating(), pod.created()));
    status.head = head_info(head, applied.head_service());
    status.endpoints = applied.head_service().map(endpoints).unwrap_or_default();
    status.observed_generation = cluster.metadata.generation.unwrap_or_default();

    status.state = state(cluster, applied, &health, &before);
    status.reason = health.cause.as_ref().map(|cause| format!("{}: {}", cause.reason, cause.message)).unwrap_or_default();
    if settings.features.enabled(Feature::RayClusterStatusConditions) {
        condition::update(&mut status.conditions, &condition::Inputs { cluster, applied, memory, head, health: &health, now });
    }

    status.state_transition_times = before.state_transition_times.clone();
    if status.state != before.state && !status.state.is_empty() {
        status.state_transition_times.insert(status.state.clone(), Time(now));
    }
    // Set again by whoever finds that something has changed.
    status.last_update_time = before.last_update_time.clone();
    status
}

/// How the cluster does on the whole.
#[derive(Clone, Debug)]
pub struct Health {
    /// Every wanted Pod is there and ready, and there are no others.
    pub complete: bool,
    /// What keeps it from being complete, as far as anybody knows.
    pub cause: Option<Trouble>,
}

impl Health {
    fn of(cluster: &RayCluster, applied: &Applied, memory: &ClusterMemory) -> Self {
        let pods = applied.pods();
        let wanted_of = |group| usize::try_from(desired_pods(group)).unwrap_or_default();
        let heads = are_ready(pods.iter().filter(|pod| pod.role() == Role::Head), 1);
        let groups = cluster.spec.worker_groups().iter();
        let workers =
            groups.clone().all(|group| are_ready(pods.iter().filter(|pod| pod.is_worker_of(&group.group_name)), wanted_of(group)));
        let wanted = groups.map(wanted_of).fold(1, usize::saturating_add);
        let complete = heads && workers && pods.len() == wanted && applied.is_undisturbed();
        let cause = (!complete).then(|| cause::first(cluster, applied, memory)).flatten();
        Self { complete, cause }
    }
}

/// Whether these Pods are as many as wanted, and all ready.
fn are_ready<'a>(pods: impl Iterator<Item = &'a ClusterPod>, wanted: usize) -> bool {
    let mut count = 0;
    for pod in pods {
        if !is_ready(pod) {
            return false;
        }
        count += 1;
    }
    count == wanted
}

fn is_ready(pod: &ClusterPod) -> bool {
    pod.is_live() && pod.fare() == Fare::Ready
}

fn state(cluster: &RayCluster, applied: &Applied, health: &Health, before: &RayClusterStatus) -> String {
    let suspended = cluster.spec.suspend == Some(true) && applied.pods().is_empty();
    match applied.stage() {
        // What an invalid spec wants is not known: a cluster that was ready is so as long as nothing happens to its Pods.
        Stage::Invalid => {
            let still_ready = before.state == READY && !applied.pods().is_empty() && applied.pods().iter().all(is_ready);
            let still_suspended = before.state == SUSPENDED && applied.pods().is_empty();
            if still_ready || still_suspended { before.state.clone() } else { String::new() }
        }
        Stage::In(Phase::Suspended | Phase::Suspending | Phase::Asked) if suspended => SUSPENDED.to_owned(),
        Stage::In(Phase::Active) if health.complete => READY.to_owned(),
        _ => String::new(),
    }
}

/// RC-468.
fn head_info(head: Option<&ClusterPod>, service: Option<&ServiceView>) -> HeadInfo {
    let pod_ip = head.map(|pod| pod.view().status.pod_ip.to_string()).unwrap_or_default();
    let service_ip = match service.map(|service| &*service.spec.cluster_ip) {
        Some("None") => pod_ip.clone(),
        Some(address) => address.to_owned(),
        None => String::new(),
    };
    HeadInfo {
        pod_name: head.map(|pod| pod.name().to_owned()).unwrap_or_default(),
        pod_ip,
        service_name: service.and_then(|service| service.metadata.name.clone()).unwrap_or_default(),
        service_ip,
    }
}

/// RC-467.
fn endpoints(service: &ServiceView) -> std::collections::BTreeMap<String, String> {
    let target = |port: &crate::runtime::views::ServicePort| match (port.node_port, &port.target_port) {
        (Some(node_port), _) if node_port != 0 => Some(node_port.to_string()),
        (_, Some(IntOrString::Int(number))) if *number != 0 => Some(number.to_string()),
        (_, Some(IntOrString::String(name))) if !name.is_empty() => Some(name.clone()),
        _ => None,
    };
    let named = service.spec.ports.iter().filter(|port| !port.name.is_empty());
    named.filter_map(|port| Some((port.name.to_string(), target(port)?))).collect()
}

/// Whether a new status is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// There is nothing new.
    No,
    /// Now.
    Now,
    /// What is new can wait for so long since something new first waited, so that more of it comes with the same write. A status is
    /// the dearest thing that an operator writes: it costs the API server as much as a Pod does.
    Within(SignedDuration),
}

/// How long it can wait that a cluster is there and well on its way: its Pods often start together, and then this is never written.
pub const PROGRESS: SignedDuration = SignedDuration::from_secs(1);
/// How long details wait, so that a cluster whose Pods start one by one does not cause a write for each.
pub const DETAILS: SignedDuration = SignedDuration::from_secs(5);

/// Whether and when `new` is to be written in place of `old` (RC-480). Time stamps alone are no news.
pub fn worth_writing(old: Option<&RayClusterStatus>, new: &RayClusterStatus) -> Write {
    let Some(old) = old else { return if is_on_its_way(new) { Write::Within(PROGRESS) } else { Write::Now } };
    let plain = |status: &RayClusterStatus| RayClusterStatus {
        last_update_time: None,
        state_transition_times: Default::default(),
        ..status.clone()
    };
    if plain(old) == plain(new) {
        return Write::No;
    }
    let (is_head, is_other) = (|name: &str| name == condition::HEAD_POD_READY, |name: &str| name != condition::HEAD_POD_READY);
    // The word before the colon; what follows may count something that changes all the time.
    let cause = |status: &RayClusterStatus| status.reason.split(':').next().map(str::to_owned);
    let matters = old.state != new.state
        || old.observed_generation != new.observed_generation
        || cause(old) != cause(new)
        || old.head.service_name != new.head.service_name
        || holding(old, is_other) != holding(new, is_other);
    match () {
        () if matters => Write::Now,
        () if holding(old, is_head) == holding(new, is_head) => Write::Within(DETAILS),
        () if condition::holds(Some(new), condition::HEAD_POD_READY) => Write::Within(PROGRESS),
        () => Write::Now,
    }
}

/// Types and statuses of the conditions that pass.
fn holding(status: &RayClusterStatus, pass: impl Fn(&str) -> bool) -> Vec<(&str, &str)> {
    let conditions = status.conditions.iter().filter(|condition| pass(&condition.type_));
    conditions.map(|condition| (condition.type_.as_str(), condition.status.as_str())).collect()
}

/// Whether a status says no more than that the cluster was taken up and waits for its Pods.
fn is_on_its_way(status: &RayClusterStatus) -> bool {
    status.state.is_empty()
        && status.reason.is_empty()
        && holding(status, |condition| condition != condition::HEAD_POD_READY).iter().all(|(_, status)| *status == "False")
}

/// Whether the rules were kept: for the status, [`Verdict`] is all that is told of them.
impl Verdict {
    /// What is wrong.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Valid => None,
            Self::Invalid { message, .. } => Some(message),
        }
    }
}
