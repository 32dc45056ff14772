//! What Ray's answer and the state of the submitter mean together. The one place where a job that Ray has not ended is given up.

use jiff::{SignedDuration, Timestamp};
use shared::api::rayjob::{RayJobInfo, SubmissionMode};

use super::{Draft, ending, field, instant, later};
use crate::{
    build::gcs_store,
    controllers::rayjob::submitter::Submitter,
    dashboard::{JobInfo, Occasion, Reply},
    runtime::pod_view::{Phase, PodView},
};

/// How long Ray must deny a job that it has known before the job counts as lost.
const CONFIRM: SignedDuration = SignedDuration::from_secs(5);
/// How long after the end of the submitter a job counts as lost when there is nobody to ask (RJ-66).
const NOBODY_TO_ASK: SignedDuration = SignedDuration::from_secs(30);

/// Takes what Ray says into the status (RJ-46..RJ-48). Any answer ends an outage, "I do not know this job" included (WEAK-26).
pub(super) fn absorb(draft: &mut Draft<'_>) {
    let now = draft.view.now;
    match draft.reply() {
        None => {}
        Some(Reply::NoAnswer(problem)) => {
            draft.facts.outage = Some(problem.clone());
            let status = draft.status();
            if status.job_status_check_failure_start_time.is_none() {
                status.job_status_check_failure_start_time = field(now);
            }
        }
        Some(reply) => {
            draft.status().job_status_check_failure_start_time = None;
            if let Reply::Job(info) = reply {
                show(draft, info);
            }
        }
    }
}

fn show(draft: &mut Draft<'_>, info: &JobInfo) {
    let status = draft.status();
    status.job_status = info.status.clone();
    status.message = info.message.clone();
    status.reason.clear();
    let RayJobInfo { start_time, end_time } = &mut status.ray_job_info;
    *start_time = info.start.and_then(field).or_else(|| start_time.take());
    *end_time = info.end.and_then(field).or_else(|| end_time.take());
}

/// Gives the job up if what is known leaves no doubt; otherwise asks for a look when doubt ends.
pub(super) fn judge(draft: &mut Draft<'_>) {
    match draft.reply().cloned() {
        Some(Reply::Job(_) | Reply::Submitted | Reply::StopSent) => {
            if draft.submitter == Submitter::HeadGone {
                head_gone(draft);
            }
        }
        Some(Reply::Refused(text)) => ending::fail(draft, ending::SUBMISSION_FAILED, format!("Ray does not take the job: {text}")),
        Some(Reply::NotFound) => unknown(draft),
        Some(Reply::NoAnswer(problem)) => silent(draft, &problem),
        None => {
            if draft.submitter == Submitter::HeadGone {
                head_gone(draft);
            }
        }
    }
}

/// RJ-143: nothing replaces the head, and nothing is left to ask.
fn head_gone(draft: &mut Draft<'_>) {
    let cluster = draft.plan.status.ray_cluster_name.clone();
    ending::lose(draft, format!("the head Pod of RayCluster {cluster} is gone, and the job with it"));
}

/// Ray answers, and does not know the job (RJ-46).
fn unknown(draft: &mut Draft<'_>) {
    let id = draft.plan.status.job_id.clone();
    let now = draft.view.now;
    let since = draft.answer().map_or(now, |answer| answer.since);
    if draft.is_known() {
        if is_head_replaced(draft) && draft.is_answered_for(Occasion::HeadReplaced) {
            return head_replaced(draft);
        }
        return when(draft, later(since, CONFIRM), |draft| {
            let text = format!("Ray no longer knows job {id}: the head was started anew, and without fault tolerance it forgets its jobs");
            ending::lose(draft, text);
        });
    }
    // An answer from before the submitter ended says nothing: the submitter may have handed the job over after it (WEAK-18).
    let asked_after_end = draft.is_answered_for(Occasion::SubmitterEnded) || draft.is_answered_for(Occasion::DeadlinePassed);
    match draft.submitter.clone() {
        Submitter::HeadGone => head_gone(draft),
        Submitter::Ended { failed: true, how, .. } if asked_after_end => {
            ending::fail(draft, ending::SUBMISSION_FAILED, format!("job {id} did not reach Ray: {how}"));
        }
        Submitter::Ended { failed: false, how, .. } if asked_after_end => {
            ending::fail(draft, ending::APP_FAILED, format!("Ray does not know job {id}, although {how}"));
        }
        // A wrong id would be asked for for ever (WEAK-26).
        Submitter::None if draft.terms.mode == SubmissionMode::Interactive => {
            let patience = patience(draft);
            when(draft, later(since, patience), |draft| {
                let text = format!("Ray has not known job {id} of spec.jobId for {} s", patience.as_secs());
                ending::fail(draft, ending::SUBMISSION_FAILED, text);
            });
        }
        _ => {}
    }
}

/// Nothing answers. That says nothing about the job; only time, or the loss of what could answer, ends it (RJ-47, RJ-65, RJ-66).
fn silent(draft: &mut Draft<'_>, problem: &str) {
    if draft.submitter == Submitter::HeadGone {
        return head_gone(draft);
    }
    if is_head_replaced(draft) {
        return head_replaced(draft);
    }
    let now = draft.view.now;
    let nobody = !draft.view.seen.live_head().is_some_and(|head| head.status.phase == Phase::Running);
    if let (Submitter::Ended { at: Some(at), .. }, true) = (draft.submitter.clone(), nobody) {
        let until = later(at, NOBODY_TO_ASK);
        if until <= now {
            // The submitter is gone, the head is gone: there is no job any more.
            draft.status().job_status = shared::api::rayjob::job_status::FAILED.to_owned();
            let text = format!(
                "the submitter ended at {at:.0}, and for {} s there has been no head Pod to ask about the job",
                NOBODY_TO_ASK.as_secs()
            );
            return ending::fail(draft, ending::GRACE_EXCEEDED, text);
        }
        draft.look_at(until);
    }
    let patience = patience(draft);
    let start = instant(draft.plan.status.job_status_check_failure_start_time.as_ref()).unwrap_or(now);
    let text = format!("Ray has not answered since {start:.0}, for more than {} s: {problem}", patience.as_secs());
    when(draft, later(start, patience), |draft| ending::fail(draft, ending::STATUS_CHECK_TIMEOUT, text));
}

/// RJ-65.
fn patience(draft: &Draft<'_>) -> SignedDuration {
    SignedDuration::from_secs(draft.view.settings.switches.job_status_check_timeout_seconds)
}

/// Whether the head Pod from which Ray's last word about a known job came is not there any more. Its name was noted with that word.
pub(super) fn is_head_changed(draft: &Draft<'_>) -> bool {
    let noted = noted_head(draft);
    draft.is_known() && !noted.is_empty() && head_name(draft) != Some(noted)
}

/// Whether Ray's word came from the head Pod of now. That Pod is then noted, so it must not be said too soon: a Pod that is gone for
/// Kubernetes may still answer for a while, through a connection that was open before.
pub(super) fn is_from_this_head(draft: &Draft<'_>) -> bool {
    let answers = |head: &PodView| head.ray_container().is_some_and(|ray| ray.ready);
    let is_new_word = || draft.is_answered_for(Occasion::HeadReplaced) && draft.view.seen.live_head().is_some_and(|head| answers(head));
    !is_head_changed(draft) || is_new_word()
}

/// Whether another head Pod is in its place, and nothing kept the job's state.
fn is_head_replaced(draft: &Draft<'_>) -> bool {
    let keeps_state = draft.view.seen.cluster.as_deref().is_some_and(|cluster| gcs_store(cluster).is_some());
    is_head_changed(draft) && head_name(draft).is_some() && !keeps_state
}

fn head_replaced(draft: &mut Draft<'_>) {
    let (old, new) = (noted_head(draft), head_name(draft).unwrap_or_default());
    let text = format!("head Pod {old}, which ran the job, was replaced by {new}, and without fault tolerance its jobs are lost");
    ending::lose(draft, text);
}

fn noted_head<'d>(draft: &'d Draft<'_>) -> &'d str {
    &draft.plan.status.ray_cluster_status.head.pod_name
}

fn head_name<'d>(draft: &'d Draft<'_>) -> Option<&'d str> {
    draft.view.seen.head.as_ref().and_then(|head| head.metadata.name.as_deref())
}

/// Acts if the time has come; otherwise asks for a look then.
fn when<'a>(draft: &mut Draft<'a>, time: Timestamp, act: impl FnOnce(&mut Draft<'a>)) {
    if time <= draft.view.now { act(draft) } else { draft.look_at(time) }
}
