//! Running: the job was handed to Ray, or is about to be. Ray's word decides (RJ-41..RJ-48; WEAK-5, 6, 16, 18, 26..29).

use std::sync::Arc;

use jiff::SignedDuration;
use shared::api::{
    RayCluster,
    rayjob::{JobDeploymentStatus, SubmissionMode},
};

use super::{Action, Draft, deadlines, ending, initializing, instant, later, verdict};
use crate::{
    build::{service, submitter},
    controllers::rayjob::{conditions::Logs, submitter::Submitter},
    dashboard::{Occasion, Purpose, Reply},
};

/// Longest wait for a last word of Ray after a deadline has passed.
const LAST_WORD: SignedDuration = SignedDuration::from_secs(30);

pub(super) fn plan(draft: &mut Draft<'_>) {
    adopt_new_id(draft);
    let cluster = draft.view.seen.live_cluster().cloned();
    if !draft.is_over() {
        verdict::absorb(draft);
    }
    if draft.is_over() {
        return after_the_job(draft, cluster.as_ref());
    }
    if draft.terms.suspend {
        return draft.go(JobDeploymentStatus::Suspending);
    }
    let Some(cluster) = cluster else {
        // Making it anew would show the old job's state for a cluster that never had the job (WEAK-28).
        let name = draft.plan.status.ray_cluster_name.clone();
        return ending::lose(draft, format!("RayCluster {name} is gone, and the job with it"));
    };
    if matches!(draft.reply(), Some(Reply::Job(_))) && verdict::is_from_this_head(draft) {
        draft.mirror(&cluster);
    }
    follow(draft);
    verdict::judge(draft);
    if draft.state() != JobDeploymentStatus::Running {
        return;
    }
    if deadline_passed(draft) {
        return;
    }
    keep_head_service(draft, &cluster);
    keep_submitter(draft, &cluster);
}

/// A user who wrote a wrong id may write the right one, as long as Ray knows no job (InteractiveMode).
fn adopt_new_id(draft: &mut Draft<'_>) {
    let chosen = draft.view.job.spec.job_id.as_deref().filter(|id| !id.is_empty());
    if draft.terms.mode == SubmissionMode::Interactive
        && !draft.is_known()
        && let Some(id) = chosen
    {
        draft.status().job_id = id.to_owned();
    }
}

/// Has Ray asked about the job, for the occasion of the moment.
pub(super) fn follow(draft: &mut Draft<'_>) {
    let occasion = if deadlines::active(draft).is_some_and(|deadline| deadline <= draft.view.now) {
        Occasion::DeadlinePassed
    } else if verdict::is_head_changed(draft) {
        if draft.view.seen.head.is_some() { Occasion::HeadReplaced } else { Occasion::HeadGone }
    } else if draft.submitter.is_over() {
        Occasion::SubmitterEnded
    } else {
        Occasion::Routine
    };
    let purpose = match draft.terms.mode {
        // Once Ray has known the job, one that Ray no longer knows is lost, not new (WEAK-29).
        SubmissionMode::Http if !draft.is_known() && draft.view.problem.is_none() => {
            match submitter::request(&draft.view.job.spec, &draft.plan.status.job_id) {
                Ok(request) => Purpose::Submit(Arc::new(request)),
                Err(error) => return ending::fail(draft, ending::SUBMISSION_FAILED, error.to_string()),
            }
        }
        _ => Purpose::Follow,
    };
    draft.ask(purpose, occasion);
    draft.facts.logs = logs(draft);
}

/// Whether somebody follows the logs.
fn logs(draft: &Draft<'_>) -> Logs {
    // A submitter ends with its job; whether the job goes on without it is known once Ray was asked again.
    let asked_since = draft.answer().is_some_and(|answer| answer.inquiry.occasion != Occasion::Routine);
    match &draft.submitter {
        Submitter::None => Logs::NotOffered,
        Submitter::Active => Logs::Followed,
        Submitter::Absent | Submitter::Taken { .. } => Logs::Unfollowed("there is no submitter".to_owned()),
        Submitter::HeadGone => Logs::Unfollowed("the head Pod is gone".to_owned()),
        Submitter::Ended { how, old_kubelet: Some(version), .. } => Logs::OldKubelet(format!(
            "{how}, and the kubelet of its node ({version}) does not restart single containers, which takes Kubernetes 1.35; the job itself goes on"
        )),
        Submitter::Ended { .. } if !asked_since => Logs::Unknown,
        Submitter::Ended { how, .. } => Logs::Unfollowed(format!("{how}; the job itself goes on")),
    }
}

/// RJ-62. Before the verdict Ray is asked once more: the job may have ended in time while nobody looked (WEAK-6).
fn deadline_passed(draft: &mut Draft<'_>) -> bool {
    let Some(deadline) = deadlines::active(draft) else { return false };
    let now = draft.view.now;
    if now < deadline {
        draft.look_at(deadline);
        return false;
    }
    let last_word = later(deadline, LAST_WORD);
    // An operator that has just started knows nothing at all, however long ago the deadline was.
    let may_come = draft.answer().is_none() || (!draft.is_answered_for(Occasion::DeadlinePassed) && now < last_word);
    let may_come = may_come && draft.plan.inquiry.is_some();
    if may_come {
        draft.look_at(last_word.max(later(now, LAST_WORD)));
        return false;
    }
    deadlines::exceed(draft);
    true
}

/// Ray has ended the job. The RayJob ends when the submitter has shown the rest of the logs, or has had enough time for it
/// (RJ-48, RJ-64).
fn after_the_job(draft: &mut Draft<'_>, cluster: Option<&Arc<RayCluster>>) {
    if let Some(cluster) = cluster {
        draft.mirror(cluster);
    }
    let waits_for_logs = draft.submitter == Submitter::Active && cluster.is_some() && !draft.terms.suspend;
    if !waits_for_logs {
        return ending::conclude(draft, "", None);
    }
    draft.facts.logs = Logs::Followed;
    let grace = SignedDuration::from_secs(draft.view.settings.switches.job_transition_grace_seconds);
    let told = instant(draft.plan.status.ray_job_info.end_time.as_ref());
    if told.is_none() {
        // Ray gave no time: what counts is since when its answer has been this one, so the question has to stay.
        draft.ask(Purpose::Follow, Occasion::Routine);
    }
    let Some(since) = told.or_else(|| draft.answer().map(|answer| answer.since)) else { return };
    let until = later(since, grace);
    if until <= draft.view.now {
        let message = format!("the submitter did not end within {} s of the job's end", grace.as_secs());
        ending::conclude(draft, ending::GRACE_EXCEEDED, Some(message));
    } else {
        draft.look_at(until);
    }
}

/// RJ-43, RJ-90: clients keep one name over retries.
fn keep_head_service(draft: &mut Draft<'_>, cluster: &RayCluster) {
    if draft.terms.selector.is_none() {
        let service = service::head_for_owner(draft.view.job, cluster, draft.view.settings);
        draft.act(Action::EnsureHeadService(Box::new(service)));
    }
}

/// A submitter that is gone before Ray got the job is made again; it submits at most once (WEAK-5).
fn keep_submitter(draft: &mut Draft<'_>, cluster: &RayCluster) {
    if draft.is_known() || draft.view.problem.is_some() {
        return;
    }
    match draft.submitter {
        Submitter::Absent => {
            initializing::make_submitter(draft, cluster);
        }
        Submitter::Taken { going } => initializing::blocked_by_name(draft, going),
        _ => {}
    }
}
