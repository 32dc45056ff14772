//! Suspending and Retrying: everything that the try made goes, then the next thing begins (RJ-50..RJ-53).

use shared::api::rayjob::JobDeploymentStatus;

use super::{Action, Draft, start};
use crate::dashboard::{Occasion, Purpose};

/// How often it is looked whether all is gone, in seconds, in case a watch has missed it.
const LOOK_AGAIN: i64 = 10;

pub(super) fn plan(draft: &mut Draft<'_>) {
    let cluster_gone = remove_cluster(draft);
    let submitter_gone = remove_submitter(draft);
    if !(cluster_gone && submitter_gone) {
        return draft.look_in(LOOK_AGAIN);
    }
    let suspending = draft.state() == JobDeploymentStatus::Suspending;
    start::forget_try(draft);
    if suspending || draft.terms.suspend {
        draft.go(JobDeploymentStatus::Suspended);
    } else if draft.view.problem.is_some() {
        start::reject(draft);
    } else {
        start::begin(draft);
    }
}

/// Whether no cluster is left that the RayJob made. A shared one is not touched.
fn remove_cluster(draft: &mut Draft<'_>) -> bool {
    let Some(cluster) = draft.view.seen.own_cluster(draft.view.job).filter(|_| draft.terms.selector.is_none()) else { return true };
    if cluster.metadata.deletion_timestamp.is_some() {
        return false;
    }
    // A job that is stopped rather than killed can end what it began; it has as long as Ray takes to answer (WEAK-27).
    let told = draft.answer().is_some_and(|answer| answer.inquiry.purpose == Purpose::Stop);
    if draft.is_known() && !draft.is_over() && !told && draft.ask(Purpose::Stop, Occasion::Routine) {
        return false;
    }
    let (name, uid) = (cluster.metadata.name.clone().unwrap_or_default(), cluster.metadata.uid.clone().unwrap_or_default());
    draft.act(Action::DeleteCluster { name, uid });
    false
}

/// Whether no submitter Job is left that the RayJob made.
fn remove_submitter(draft: &mut Draft<'_>) -> bool {
    let Some(submitter) = draft.view.seen.own_submitter(draft.view.job) else { return true };
    if submitter.metadata.deletion_timestamp.is_none() {
        let uid = submitter.metadata.uid.clone().unwrap_or_default();
        draft.act(Action::DeleteSubmitter { uid });
    }
    false
}
