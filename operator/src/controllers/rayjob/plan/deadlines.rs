//! How long a try may take (RJ-62, RJ-63, RJ-67). Both clocks belong to the try: a retry and a resume start them again.

use jiff::Timestamp;

use super::{Draft, ending, instant, later};

/// Reasons (RJ-8).
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
const PRE_RUNNING_DEADLINE_EXCEEDED: &str = "PreRunningDeadlineExceeded";

/// When the try has taken too long, if it may.
pub(super) fn active(draft: &Draft<'_>) -> Option<Timestamp> {
    Some(later(start(draft)?, draft.terms.active_deadline?))
}

/// When the job must have begun, if there is such a time.
fn pre_running(draft: &Draft<'_>) -> Option<Timestamp> {
    Some(later(start(draft)?, draft.terms.pre_running_deadline?))
}

/// Fails a try that has taken too long and has no job in Ray that could have ended meanwhile. Whether it did.
pub(super) fn end_without_job(draft: &mut Draft<'_>) -> bool {
    if let Some(deadline) = active(draft) {
        if deadline <= draft.view.now {
            exceed(draft);
            return true;
        }
        draft.look_at(deadline);
    }
    if let Some(deadline) = pre_running(draft) {
        if deadline <= draft.view.now {
            let waited_for = std::mem::take(&mut draft.status().message);
            let waited_for = if waited_for.is_empty() { String::new() } else { format!("; it waited for this: {waited_for}") };
            let limit = draft.terms.pre_running_deadline.unwrap_or_default().as_secs();
            ending::fail(
                draft,
                PRE_RUNNING_DEADLINE_EXCEEDED,
                format!("the job did not begin within the {limit} s of preRunningDeadlineSeconds{waited_for}"),
            );
            return true;
        }
        draft.look_at(deadline);
    }
    false
}

/// Fails a try that has taken too long.
pub(super) fn exceed(draft: &mut Draft<'_>) {
    let limit = draft.terms.active_deadline.unwrap_or_default().as_secs();
    let start = start(draft).map(|start| format!(", counted from {start:.0}")).unwrap_or_default();
    ending::fail(draft, DEADLINE_EXCEEDED, format!("the try took longer than the {limit} s of activeDeadlineSeconds{start}"));
}

/// Start of the try; a status without one has not started (RJ-67).
fn start(draft: &Draft<'_>) -> Option<Timestamp> {
    instant(draft.plan.status.start_time.as_ref())
}
