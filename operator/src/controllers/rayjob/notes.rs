//! Events about what became of a RayJob (WEAK-19): pure, from its status before and after. Events about single objects are told where
//! those are written.

use shared::api::{
    RayJobStatus,
    rayjob::{JobDeploymentStatus, job_status},
};

use super::{
    conditions::{self, find},
    seen::Problem,
};

/// Something to be told about a RayJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether somebody may have to look at it.
    pub warning: bool,
    /// What happened, in one word.
    pub reason: String,
    /// What was done, in one word.
    pub action: &'static str,
    /// What happened.
    pub text: String,
}

impl Note {
    /// Something went as it should.
    pub fn normal(reason: &str, action: &'static str, text: impl Into<String>) -> Self {
        Self { warning: false, reason: reason.to_owned(), action, text: text.into() }
    }

    /// Something that somebody may have to look at.
    pub fn warning(reason: &str, action: &'static str, text: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, action, text) }
    }
}

/// What is news in `new`.
pub fn between(old: &RayJobStatus, new: &RayJobStatus) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(outage(old, new));
    notes.extend(logs(old, new));
    notes.extend(blocked(old, new));
    if old.job_status != new.job_status && !new.job_status.is_empty() && !job_status::is_terminal(&new.job_status) {
        notes.push(Note::normal("JobStatusChanged", "Follow", format!("Ray says that job {} is {}", new.job_id, new.job_status)));
    }
    if old.job_deployment_status != new.job_deployment_status {
        notes.extend(change(old, new));
    }
    notes
}

fn change(old: &RayJobStatus, new: &RayJobStatus) -> Option<Note> {
    use JobDeploymentStatus as State;
    let why = || match (new.reason.as_str(), new.message.as_str()) {
        ("", "") => String::new(),
        (reason, "") => format!(": {reason}"),
        ("", message) => format!(": {message}"),
        (reason, message) => format!(": {reason}: {message}"),
    };
    let try_number = new.failed.unwrap_or_default() + 1;
    Some(match new.job_deployment_status {
        State::Initializing if old.job_deployment_status == State::Suspended => {
            Note::normal("Resumed", "Resume", format!("no longer held: waiting for RayCluster {}", new.ray_cluster_name))
        }
        State::Initializing => {
            Note::normal("Started", "Start", format!("try {try_number}: waiting for RayCluster {}", new.ray_cluster_name))
        }
        State::Waiting => Note::normal("ReadyToSubmit", "Wait", "the cluster is ready: submit the job and write its id to spec.jobId"),
        State::Running => Note::normal("Running", "Submit", format!("following job {}", new.job_id)),
        State::Complete if new.reason.is_empty() => {
            Note::normal("Completed", "Finish", format!("job {} ended: {}", new.job_id, new.job_status))
        }
        State::Complete => Note::normal("Completed", "Finish", format!("job {} ended: {}{}", new.job_id, new.job_status, why())),
        State::Failed => Note::warning("Failed", "Finish", format!("job {} failed{}", new.job_id, why())),
        State::Retrying => Note::warning("Retrying", "Retry", format!("try {} failed{}", new.failed.unwrap_or_default(), why())),
        State::Suspending => Note::normal("Suspending", "Suspend", "held: removing the cluster"),
        State::Suspended => Note::normal("Suspended", "Suspend", "held: nothing of it runs"),
        // What the rules have against it is told by itself.
        State::ValidationFailed | State::New | State::Unknown => return None,
    })
}

fn outage(old: &RayJobStatus, new: &RayJobStatus) -> Option<Note> {
    let (before, after) = (&old.job_status_check_failure_start_time, &new.job_status_check_failure_start_time);
    match (before, after) {
        (None, Some(_)) => {
            let problem = find(new, conditions::DASHBOARD_REACHABLE).map(|condition| condition.message.as_str()).unwrap_or_default();
            Some(Note::warning("DashboardUnreachable", "Follow", format!("no answer about job {}: {problem}", new.job_id)))
        }
        (Some(_), None) if !new.job_id.is_empty() && new.job_id == old.job_id => {
            Some(Note::normal("DashboardReachable", "Follow", "the dashboard answers again"))
        }
        _ => None,
    }
}

fn logs(old: &RayJobStatus, new: &RayJobStatus) -> Option<Note> {
    let after = find(new, conditions::LOGS_FOLLOWED).filter(|condition| condition.status == "False")?;
    let before = find(old, conditions::LOGS_FOLLOWED);
    let known = before.is_some_and(|before| before.status == "False" && before.reason == after.reason);
    let ended = matches!(after.reason.as_str(), conditions::SUBMITTER_ENDED | conditions::OLD_KUBELET);
    (ended && !known && new.job_deployment_status == JobDeploymentStatus::Running)
        .then(|| Note::warning(&after.reason, "Follow", format!("nobody follows the logs: {}", after.message)))
}

/// A shared cluster that does not exist, or a name that is taken: the user has to do something (RJ-81, WEAK-10).
fn blocked(old: &RayJobStatus, new: &RayJobStatus) -> Option<Note> {
    let after = find(new, conditions::READY_TO_SUBMIT).filter(|condition| condition.status == "False")?;
    let before = find(old, conditions::READY_TO_SUBMIT).map(|condition| condition.reason.as_str()).unwrap_or_default();
    if before == after.reason {
        return None;
    }
    match after.reason.as_str() {
        "ClusterNotFound" => Some(Note::warning("RayClusterNotFound", "Validate", after.message.clone())),
        "SubmitterNameTaken" | "NameConflict" => Some(Note::warning(&after.reason, "Create", after.message.clone())),
        _ => None,
    }
}

/// The event about what the rules have against a RayJob, if that is news (RJ-23).
pub fn objection(old: &RayJobStatus, problem: Option<&Problem>) -> Option<Note> {
    let problem = problem?;
    let known = find(old, conditions::SPEC_VALID).is_some_and(|known| known.status == "False" && known.message == problem.message);
    (!known).then(|| Note::warning(problem.reason, "Validate", problem.message.clone()))
}
