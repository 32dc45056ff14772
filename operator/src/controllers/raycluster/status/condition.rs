//! Conditions of the status (RC-469..RC-475), and those that KubeRay does not have: `SpecValid`, `PodsBlocked`, `NameConflict`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shared::api::RayCluster;
use shared::api::raycluster::RayClusterStatus;

use super::Health;
use crate::controllers::raycluster::apply::Applied;
use crate::controllers::raycluster::memory::ClusterMemory;
pub use crate::controllers::raycluster::plan::phase::condition::{SUSPENDED, SUSPENDING};
use crate::controllers::raycluster::plan::{Phase, Stage};
use crate::controllers::raycluster::pods::{ClusterPod, Trouble};
use crate::runtime::pod_view::PodView;

/// Every wanted Pod has been there and ready since the cluster was made or resumed.
pub const PROVISIONED: &str = "RayClusterProvisioned";
/// The head Pod is ready.
pub const HEAD_POD_READY: &str = "HeadPodReady";
/// A Pod could not be created or deleted.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";
/// The spec breaks a rule. Only there while it does.
pub const SPEC_VALID: &str = "SpecValid";
/// A Pod that is wanted does not work, and what is said about it is not about the usual course of things. Only there while so.
pub const PODS_BLOCKED: &str = "PodsBlocked";
/// An object of a name that the cluster needs belongs to somebody else. Only there while so.
pub const NAME_CONFLICT: &str = "NameConflict";

const ALL_READY: &str = "AllPodRunningAndReadyFirstTime";
const PROVISIONING: &str = "RayClusterPodsProvisioning";

/// What the conditions are made from.
pub struct Inputs<'a> {
    /// The object.
    pub cluster: &'a RayCluster,
    /// What was done.
    pub applied: &'a Applied,
    /// What is remembered.
    pub memory: &'a ClusterMemory,
    /// The head Pod.
    pub head: Option<&'a ClusterPod>,
    /// How the cluster does.
    pub health: &'a Health,
    /// Now.
    pub now: Timestamp,
}

/// Whether a condition holds.
pub fn holds(status: Option<&RayClusterStatus>, name: &str) -> bool {
    status.is_some_and(|status| status.conditions.iter().any(|condition| condition.type_ == name && condition.status == "True"))
}

/// Brings the conditions up to date.
pub fn update(conditions: &mut Vec<Condition>, inputs: &Inputs<'_>) {
    let now = inputs.now;
    let mut set = |type_: &str, says: Says| set(conditions, type_, says, now);
    set(HEAD_POD_READY, head_pod_ready(inputs.head.map(ClusterPod::view)));
    set(REPLICA_FAILURE, replica_failure(inputs));
    let was_provisioned = holds(inputs.cluster.status.as_ref(), PROVISIONED);
    set(PROVISIONED, provisioned(inputs, was_provisioned));
    let (suspending, suspended) = suspension(inputs);
    set(SUSPENDED, Says::of(suspended, SUSPENDED, ""));
    set(SUSPENDING, Says::of(suspending, SUSPENDING, ""));
    set(SPEC_VALID, Says::only_if(inputs.applied.verdict().problem(), |problem| Says::of(false, "InvalidSpec", problem)));
    let blocked = (!inputs.health.complete)
        .then(|| super::cause::of_pods(inputs.cluster, inputs.applied).or_else(|| inputs.memory.last_crash().cloned()));
    set(PODS_BLOCKED, Says::only_if(blocked.flatten(), |trouble| Says::trouble(&trouble)));
    set(NAME_CONFLICT, Says::only_if(inputs.applied.conflict(), Says::trouble));
}

/// What a condition says, or that it is absent.
enum Says {
    This {
        status: &'static str,
        reason: String,
        message: String,
    },
    Nothing,
    /// What it said before.
    Same,
}

impl Says {
    fn of(status: bool, reason: &str, message: impl Into<String>) -> Self {
        Self::This { status: if status { "True" } else { "False" }, reason: reason.to_owned(), message: message.into() }
    }

    fn trouble(trouble: &Trouble) -> Self {
        Self::of(true, &trouble.reason, trouble.message.clone())
    }

    fn only_if<T>(some: Option<T>, says: impl FnOnce(T) -> Self) -> Self {
        some.map_or(Self::Nothing, says)
    }
}

/// Changes the time of transition only when the status changes (RC-469).
fn set(conditions: &mut Vec<Condition>, type_: &str, says: Says, now: Timestamp) {
    let known = conditions.iter_mut().find(|condition| condition.type_ == type_);
    match (says, known) {
        (Says::Same, _) | (Says::Nothing, None) => {}
        (Says::Nothing, Some(_)) => conditions.retain(|condition| condition.type_ != type_),
        (Says::This { status, reason, message }, Some(known)) => {
            if known.status != status {
                known.status = status.to_owned();
                known.last_transition_time = Time(now);
            }
            (known.reason, known.message) = (as_reason(&reason), message);
        }
        (Says::This { status, reason, message }, None) => conditions.push(Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: as_reason(&reason),
            message,
            last_transition_time: Time(now),
            observed_generation: None,
        }),
    }
}

/// A reason as the API takes it: letters, digits and some marks, beginning with a letter. Reasons that come from a kubelet or a
/// container runtime are not always so.
fn as_reason(reason: &str) -> String {
    let cleaned: String = reason.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':')).collect();
    let trimmed = cleaned.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).trim_end_matches([',', ':']);
    if trimmed.is_empty() { "Unknown".to_owned() } else { trimmed.to_owned() }
}

/// RC-471.
fn head_pod_ready(head: Option<&PodView>) -> Says {
    let Some(head) = head else { return Says::of(false, "HeadPodNotFound", "there is no head Pod") };
    let Some(ready) = head.condition("Ready") else { return Says::of(false, "Unknown", "") };
    let is_true = &*ready.status == "True";
    let mut message = ready.message.to_string();
    let mut reason = match (&*ready.reason, is_true) {
        ("", true) => "HeadPodRunningAndReady".to_owned(),
        ("", false) => "Unknown".to_owned(),
        (reason, _) => reason.to_owned(),
    };
    if reason == "ContainersNotReady"
        && let Some((name, why, text)) = head.status.container_statuses.iter().find_map(|container| {
            let waiting = container.state.waiting.as_ref().map(|waiting| (&waiting.reason, &waiting.message));
            let ended = || container.state.terminated.as_ref().map(|ended| (&ended.reason, &ended.message));
            waiting.or_else(ended).map(|(why, text)| (&container.name, why, text))
        })
    {
        if !why.is_empty() {
            reason = why.to_string();
        }
        let separator = if message.is_empty() { "" } else { "; " };
        message = format!("{message}{separator}{name}: {text}");
    }
    let status = match &*ready.status {
        "True" => "True",
        "Unknown" => "Unknown",
        _ => "False",
    };
    Says::This { status, reason, message }
}

/// RC-470.
fn replica_failure(inputs: &Inputs<'_>) -> Says {
    let refusal = inputs.memory.refusal().map(|refusal| Says::of(true, refusal.reason, refusal.message.clone()));
    let failure = || inputs.applied.failure().map(Says::trouble);
    match refusal.or_else(failure) {
        Some(says) => says,
        None if inputs.applied.stage() == Stage::Invalid => Says::Same,
        None => Says::Nothing,
    }
}

/// RC-472, but only with every wanted Pod there (C-24).
fn provisioned(inputs: &Inputs<'_>, was: bool) -> Says {
    match inputs.applied.stage() {
        Stage::In(Phase::Suspending | Phase::Suspended) if inputs.applied.pods().is_empty() => Says::of(false, PROVISIONING, ""),
        _ if was => Says::Same,
        Stage::In(Phase::Active) if inputs.health.complete => Says::of(true, ALL_READY, "every Pod is running and ready"),
        _ => {
            let waits_for = inputs.health.cause.as_ref().map(|cause| cause.message.clone()).unwrap_or_default();
            Says::of(false, PROVISIONING, waits_for)
        }
    }
}

/// Whether suspension is under way, and whether it is complete (RC-473..RC-475).
fn suspension(inputs: &Inputs<'_>) -> (bool, bool) {
    let status = inputs.cluster.status.as_ref();
    match inputs.applied.stage() {
        Stage::In(Phase::Asked) => (true, false),
        Stage::In(Phase::Suspending | Phase::Suspended) if inputs.applied.pods().is_empty() => (false, true),
        Stage::In(Phase::Suspending | Phase::Suspended) => (true, false),
        Stage::In(Phase::Active) | Stage::Recreating => (false, false),
        Stage::Invalid | Stage::Deleting => (holds(status, SUSPENDING), holds(status, SUSPENDED)),
    }
}
