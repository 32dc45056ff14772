//! The end of a try: outcome, counters, another try (RJ-60, RJ-71, RJ-170).

use jiff::{SignedDuration, Timestamp};
use shared::api::rayjob::{JobDeploymentStatus, job_status};

use super::{Draft, Ended, field, instant};
use crate::controllers::rayjob::submitter::Submitter;

/// The job in Ray failed, or is lost (RJ-8).
pub(super) const APP_FAILED: &str = "AppFailed";
/// The job never reached Ray (RJ-8).
pub(super) const SUBMISSION_FAILED: &str = "SubmissionFailed";
/// Ray gave no answer for too long (RJ-8).
pub(super) const STATUS_CHECK_TIMEOUT: &str = "JobStatusCheckTimeoutExceeded";
/// The submitter did not end after the job, or Ray cannot be asked after the submitter ended (RJ-8).
pub(super) const GRACE_EXCEEDED: &str = "JobDeploymentStatusTransitionGracePeriodExceeded";
/// Reasons after which there is no other try (RJ-60).
const FINAL: [&str; 2] = ["DeadlineExceeded", STATUS_CHECK_TIMEOUT];

/// The try failed.
pub(super) fn fail(draft: &mut Draft<'_>, reason: &str, message: impl Into<String>) {
    let status = draft.status();
    status.reason = reason.to_owned();
    status.message = message.into();
    draft.go(JobDeploymentStatus::Failed);
}

/// What ran the job is gone, and the job with it. A job that Ray has known has then failed, whatever Ray said last: nothing of it runs,
/// and nobody is left to say so (C-59).
pub(super) fn lose(draft: &mut Draft<'_>, message: impl Into<String>) {
    if draft.is_known() {
        job_status::FAILED.clone_into(&mut draft.status().job_status);
    }
    fail(draft, APP_FAILED, message);
}

/// Ray has ended the job: so it ended (RJ-48, RJ-49). `reason` is given where something else is to be said about it.
pub(super) fn conclude(draft: &mut Draft<'_>, reason: &str, message: Option<String>) {
    let failed = draft.plan.status.job_status == job_status::FAILED;
    let status = draft.status();
    status.reason = if reason.is_empty() && failed { APP_FAILED.to_owned() } else { reason.to_owned() };
    if let Some(message) = message {
        status.message = message;
    }
    status.job_status_check_failure_start_time = None;
    draft.go(if failed { JobDeploymentStatus::Failed } else { JobDeploymentStatus::Complete });
}

/// Counts a try that has just ended, and decides whether there is another one.
pub(super) fn count(draft: &mut Draft<'_>) {
    let before = draft.old().map(|old| old.job_deployment_status).unwrap_or_default();
    if before.is_terminal() || before == JobDeploymentStatus::Retrying || !draft.state().is_terminal() {
        return;
    }
    let end = end(draft);
    let limit = draft.terms.backoff_limit;
    let status = draft.status();
    let failed_before = status.failed.unwrap_or_default();
    let (mut failed, mut succeeded) = (failed_before, status.succeeded.unwrap_or_default());
    if status.job_deployment_status == JobDeploymentStatus::Failed {
        failed = failed.saturating_add(1);
        if failed <= limit && !FINAL.contains(&status.reason.as_str()) {
            status.job_deployment_status = JobDeploymentStatus::Retrying;
        }
    } else if status.job_status == job_status::SUCCEEDED {
        succeeded = succeeded.saturating_add(1);
    }
    (status.failed, status.succeeded) = (Some(failed), Some(succeeded));
    if status.job_deployment_status.is_terminal() {
        status.end_time = field(end);
    }
    let took = instant(status.start_time.as_ref()).map_or(SignedDuration::ZERO, |start| end.duration_since(start));
    let state = status.job_deployment_status;
    draft.plan.ended = Some(Ended { status: state, retry: failed_before, took });
}

/// When a try ended that is found to have ended now. Where Ray has ended the job, that is when the job and then its submitter ended,
/// however long nobody looked (RJ-71); clocks that differ do not lead out of the time between the start of the try and now.
fn end(draft: &Draft<'_>) -> Timestamp {
    let now = draft.view.now;
    let status = &draft.plan.status;
    let by_ray = instant(status.ray_job_info.end_time.as_ref()).filter(|_| draft.is_over());
    let by_submitter = match draft.submitter {
        Submitter::Active => Some(now),
        Submitter::Ended { at, .. } => at,
        _ => None,
    };
    let Some(end) = by_ray.map(|end| by_submitter.map_or(end, |at| at.max(end))) else { return now };
    let start = instant(status.start_time.as_ref()).unwrap_or(end);
    end.max(start).min(now)
}
