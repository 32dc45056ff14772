//! The RayJob is being deleted: its Ray job is told to stop, once, and nothing that the user can break holds the object (RJ-22,
//! WEAK-1).

use jiff::SignedDuration;
use shared::api::rayjob::job_status;

use super::{Action, Draft, instant, later};
use crate::dashboard::{Occasion, Purpose, Reply};

/// Longest wait for an answer of Ray. The cluster goes with the RayJob, and the job with the cluster.
const OWN: SignedDuration = SignedDuration::from_secs(10);
/// The same on a shared cluster, where the job would go on.
const SHARED: SignedDuration = SignedDuration::from_secs(30);

pub(super) fn plan(draft: &mut Draft<'_>) {
    if !draft.has_finalizer() {
        return;
    }
    // A submitter that has not submitted yet must not do so behind our back.
    if !draft.is_known()
        && let Some(submitter) = draft.view.seen.own_submitter(draft.view.job)
        && submitter.metadata.deletion_timestamp.is_none()
    {
        let uid = submitter.metadata.uid.clone().unwrap_or_default();
        draft.act(Action::DeleteSubmitter { uid });
    }
    if !waits_for_stop(draft) {
        draft.plan.inquiry = None;
        draft.act(Action::RemoveFinalizer);
    }
}

fn waits_for_stop(draft: &mut Draft<'_>) -> bool {
    if job_status::is_terminal(&draft.plan.status.job_status) || !draft.ask(Purpose::Stop, Occasion::Routine) {
        return false;
    }
    let shared = draft.terms.selector.is_some();
    let since = instant(draft.view.job.metadata.deletion_timestamp.as_ref()).unwrap_or(draft.view.now);
    let until = later(since, if shared { SHARED } else { OWN });
    if until <= draft.view.now {
        return false;
    }
    draft.look_at(until);
    let told = draft.answer().filter(|answer| answer.inquiry.purpose == Purpose::Stop).map(|answer| &answer.reply);
    match told {
        None => true,
        Some(Reply::NoAnswer(_)) => shared,
        Some(_) => false,
    }
}
