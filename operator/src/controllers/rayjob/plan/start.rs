//! States in which nothing exists yet: New, ValidationFailed, Suspended (RJ-23, RJ-24, RJ-30..RJ-32, RJ-54).

use shared::api::rayjob::{JobDeploymentStatus, RayJobInfo, SubmissionMode, job_status};

use super::{Action, Draft, field};

/// Word for a spec that breaks a rule (RJ-8).
const VALIDATION_FAILED: &str = "ValidationFailed";

/// RJ-30..RJ-32. A RayJob that is held from the start goes straight to Suspended.
pub(super) fn new(draft: &mut Draft<'_>) {
    if draft.view.problem.is_some() {
        return reject(draft);
    }
    if !draft.has_finalizer() {
        draft.act(Action::AddFinalizer);
    }
    if draft.terms.suspend {
        forget_try(draft);
        draft.go(JobDeploymentStatus::Suspended);
    } else {
        begin(draft);
    }
}

/// RJ-23, C-20: says what is wrong; goes on as soon as nothing is (WEAK-2).
pub(super) fn invalid(draft: &mut Draft<'_>) {
    if draft.view.problem.is_some() {
        return reject(draft);
    }
    draft.status().reason.clear();
    draft.status().message.clear();
    let cluster = draft.view.seen.live_cluster().is_some();
    let own = draft.view.seen.own_cluster(draft.view.job).is_some();
    let status = draft.status();
    if cluster && !status.dashboard_url.is_empty() && !status.job_id.is_empty() {
        // KubeRay rejects running jobs, too: this one may still run.
        draft.go(JobDeploymentStatus::Running);
    } else if cluster && own {
        draft.go(JobDeploymentStatus::Initializing);
    } else {
        forget_try(draft);
        new(draft);
    }
}

/// RJ-54: a RayJob that is no longer held starts anew.
pub(super) fn suspended(draft: &mut Draft<'_>) {
    if draft.view.job.spec.suspend == Some(true) {
        return;
    }
    if draft.view.problem.is_some() {
        return reject(draft);
    }
    draft.status().job_status = job_status::NEW.to_owned();
    begin(draft);
}

/// Shows what is wrong. Used only where nothing was made that would be left alone.
pub(super) fn reject(draft: &mut Draft<'_>) {
    let message = draft.view.problem.map(|problem| problem.message.clone()).unwrap_or_default();
    let status = draft.status();
    status.reason = VALIDATION_FAILED.to_owned();
    status.message = message;
    draft.go(JobDeploymentStatus::ValidationFailed);
}

/// Begins a try. Names are written down before anything is made, so that nothing is made twice (RJ-31).
pub(super) fn begin(draft: &mut Draft<'_>) {
    let name = draft.view.job.metadata.name.as_deref().unwrap_or_default();
    let [job_suffix, cluster_suffix] = draft.view.suffixes;
    let chosen_id = draft.view.job.spec.job_id.as_deref().filter(|id| !id.is_empty());
    let (mode, selector, now) = (draft.terms.mode, draft.terms.selector, draft.view.now);
    let status = draft.status();
    if status.job_id.is_empty() && mode != SubmissionMode::Interactive {
        status.job_id = chosen_id.map_or_else(|| format!("{name}-{job_suffix}"), str::to_owned);
    }
    if status.ray_cluster_name.is_empty() {
        status.ray_cluster_name = selector.map_or_else(|| format!("{name}-{cluster_suffix}"), str::to_owned);
    }
    status.job_status = job_status::NEW.to_owned();
    status.start_time = field(now);
    status.end_time = None;
    status.succeeded.get_or_insert(0);
    status.failed.get_or_insert(0);
    draft.go(JobDeploymentStatus::Initializing);
}

/// Forgets everything about the last try but when it was and how many there were (RJ-53).
pub(super) fn forget_try(draft: &mut Draft<'_>) {
    let status = draft.status();
    status.job_id.clear();
    status.ray_cluster_name.clear();
    status.dashboard_url.clear();
    status.job_status.clear();
    status.reason.clear();
    status.message.clear();
    status.ray_job_info = RayJobInfo::default();
    status.ray_cluster_status = Default::default();
    status.job_status_check_failure_start_time = None;
}
