//! Conditions of a RayJob, so that `kubectl wait --for=condition=…` works, and the one sentence that says why it does not go on.
//! Pure: from the status and what the plan found out.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shared::api::{
    RayJobStatus,
    rayjob::{JobDeploymentStatus, job_status},
};

use super::seen::Problem;

/// The spec breaks no rule.
pub const SPEC_VALID: &str = "SpecValid";
/// The cluster is ready and there is somebody to submit the job. Stays as it was when the RayJob has ended.
pub const READY_TO_SUBMIT: &str = "ReadyToSubmit";
/// Ray runs the job.
pub const RUNNING: &str = "Running";
/// The job has succeeded.
pub const SUCCEEDED: &str = "Succeeded";
/// The RayJob has failed for good.
pub const FAILED: &str = "Failed";
/// The RayJob is held and nothing of it is left.
pub const SUSPENDED: &str = "Suspended";
/// Somebody shows the job's logs. Only while the job runs, in modes that promise it.
pub const LOGS_FOLLOWED: &str = "LogsFollowed";
/// The dashboard answers. Only while it is asked.
pub const DASHBOARD_REACHABLE: &str = "DashboardReachable";

/// Why a RayJob does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// What the plan found out and the status does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What the rules have against the RayJob.
    pub problem: Option<Problem>,
    /// Why it does not go on.
    pub blocked: Option<Blocked>,
    /// Why the dashboard gives no answer.
    pub outage: Option<String>,
    /// Whether somebody shows the logs.
    pub logs: Logs,
}

/// Whether somebody shows the logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Logs {
    /// Not looked at.
    #[default]
    Unknown,
    /// The mode has nobody who does.
    NotOffered,
    /// Somebody does.
    Followed,
    /// Nobody does, and this is why.
    Unfollowed(String),
    /// Nobody does, because the kubelet is too old to restart the submitter (WEAK-16).
    OldKubelet(String),
}

/// Reason of [`LOGS_FOLLOWED`] when the submitter has ended.
pub const SUBMITTER_ENDED: &str = "SubmitterEnded";
/// Reason of [`LOGS_FOLLOWED`] when the kubelet is too old.
pub const OLD_KUBELET: &str = "KubeletTooOld";

/// Brings conditions and message up to date.
pub fn update(status: &mut RayJobStatus, facts: &Facts, now: Timestamp) {
    use JobDeploymentStatus as State;
    let state = status.job_deployment_status;
    let unfinished = !state.is_terminal();
    if let Some(blocked) = &facts.blocked
        && (matches!(state, State::New | State::Initializing | State::Suspending | State::Retrying)
            || (state == State::Running && status.job_status.is_empty()))
    {
        status.message.clone_from(&blocked.message);
    }
    let mut list = Setter { generation: status.observed_generation, conditions: &mut status.conditions, now };

    match &facts.problem {
        Some(problem) => list.set(SPEC_VALID, false, "InvalidSpec", &problem.message),
        None => list.set(SPEC_VALID, true, "Accepted", ""),
    }
    if unfinished {
        match (&facts.blocked, state) {
            (Some(blocked), _) => list.set(READY_TO_SUBMIT, false, &blocked.reason, &blocked.message),
            (None, State::Waiting | State::Running) => list.set(READY_TO_SUBMIT, true, "ClusterReady", ""),
            (None, _) => list.set(READY_TO_SUBMIT, false, word(state), ""),
        }
    }
    let in_ray = status.job_status.as_str();
    list.set(RUNNING, state == State::Running && in_ray == job_status::RUNNING, if in_ray.is_empty() { word(state) } else { in_ray }, "");
    let succeeded = state == State::Complete && in_ray == job_status::SUCCEEDED;
    list.set(
        SUCCEEDED,
        succeeded,
        if unfinished { "Unfinished" } else { outcome(in_ray, &status.reason) },
        if succeeded { &status.message } else { "" },
    );
    let failed = state == State::Failed;
    list.set(
        FAILED,
        failed,
        if unfinished { "Unfinished" } else { outcome(in_ray, &status.reason) },
        if failed { &status.message } else { "" },
    );
    list.set(SUSPENDED, state == State::Suspended, word(state), "");

    let asking = matches!(state, State::Running | State::Initializing);
    match &facts.logs {
        Logs::Unknown if asking => {}
        _ if !asking => list.gone(LOGS_FOLLOWED),
        Logs::Followed => list.set(LOGS_FOLLOWED, true, "SubmitterActive", ""),
        Logs::Unfollowed(why) => list.set(LOGS_FOLLOWED, false, SUBMITTER_ENDED, why),
        Logs::OldKubelet(why) => list.set(LOGS_FOLLOWED, false, OLD_KUBELET, why),
        Logs::Unknown | Logs::NotOffered => list.gone(LOGS_FOLLOWED),
    }
    match (&facts.outage, state) {
        (Some(problem), State::Running | State::Initializing) => list.once(DASHBOARD_REACHABLE, false, "NoAnswer", problem),
        (None, State::Running) if status.job_status_check_failure_start_time.is_none() && !in_ray.is_empty() => {
            list.set(DASHBOARD_REACHABLE, true, "Answered", "");
        }
        (None, State::Running) => {}
        _ => list.gone(DASHBOARD_REACHABLE),
    }
}

/// The outcome of an ended RayJob in one word.
fn outcome<'a>(in_ray: &'a str, reason: &'a str) -> &'a str {
    match (reason, in_ray) {
        ("", "") => "Ended",
        ("", in_ray) => in_ray,
        (reason, _) => reason,
    }
}

fn word(state: JobDeploymentStatus) -> &'static str {
    match state {
        JobDeploymentStatus::New => "New",
        other => other.as_str(),
    }
}

struct Setter<'a> {
    conditions: &'a mut Vec<Condition>,
    generation: i64,
    now: Timestamp,
}

impl Setter<'_> {
    /// Sets a condition. Its time changes only with its status.
    fn set(&mut self, name: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { "True" } else { "False" };
        let reason = as_reason(reason);
        if let Some(known) = self.conditions.iter_mut().find(|known| known.type_ == name) {
            if known.status != status {
                status.clone_into(&mut known.status);
                known.last_transition_time = Time(self.now);
            }
            (known.reason, known.message) = (reason, message.to_owned());
            known.observed_generation = Some(self.generation);
        } else {
            self.conditions.push(Condition {
                type_: name.to_owned(),
                status: status.to_owned(),
                reason,
                message: message.to_owned(),
                last_transition_time: Time(self.now),
                observed_generation: Some(self.generation),
            });
        }
    }

    /// Sets a condition whose words change all the time: the first ones stay.
    fn once(&mut self, name: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { "True" } else { "False" };
        let known = self.conditions.iter().find(|known| known.type_ == name && known.status == status).map(|known| known.message.clone());
        let message = known.as_deref().unwrap_or(message).to_owned();
        self.set(name, holds, reason, &message);
    }

    fn gone(&mut self, name: &str) {
        self.conditions.retain(|known| known.type_ != name);
    }
}

/// A reason as the API takes it: letters, digits and some marks, beginning with a letter.
fn as_reason(reason: &str) -> String {
    let cleaned: String = reason.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':')).collect();
    let trimmed = cleaned.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).trim_end_matches([',', ':']);
    if trimmed.is_empty() { "Unknown".to_owned() } else { trimmed.to_owned() }
}

/// A condition of a status.
pub fn find<'a>(status: &'a RayJobStatus, name: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == name)
}
