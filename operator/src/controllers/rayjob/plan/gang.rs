//! The PodGroup of a RayJob, for schedulers that want one (RJ-35, RJ-52, RJ-100, RJ-180). It follows from the states before and after a
//! look, so that no state has to think of it.

use std::sync::Arc;

use shared::api::{RayCluster, rayjob::JobDeploymentStatus as State};

use super::{Action, Draft};
use crate::build::scheduling::{self, Gang};

pub(super) fn plan(draft: &mut Draft<'_>) {
    if draft.view.settings.scheduler.is_none() {
        return;
    }
    let before = draft.old().map(|old| old.job_deployment_status).unwrap_or_default();
    let after = draft.state();
    let goes_on = |state| matches!(state, State::Initializing | State::Waiting | State::Running);
    let wanted = match (before, after) {
        _ if goes_on(before) && goes_on(after) => {
            // A cluster that is gone or not ours decides by itself what becomes of the job.
            let cluster = live_cluster(draft);
            (cluster.is_some() || makes_cluster(draft)).then_some((cluster, true))
        }
        (_, State::Complete | State::Failed) => Some((live_cluster(draft), false)),
        // Everything of a try is gone; the next one begins with the next look.
        (State::Suspending | State::Retrying, after) if after != before => Some((None, false)),
        (State::Suspended, State::Suspended) => Some((None, false)),
        _ => None,
    };
    let Some((cluster, goes_on)) = wanted else { return };
    match scheduling::of_job(draft.view.job, draft.terms.mode, cluster.as_deref(), goes_on, draft.view.settings) {
        Gang::Hold(group) if makes_cluster(draft) => draft.plan.actions.insert(0, Action::HoldGroup { group, needed: true }),
        Gang::Hold(group) => draft.act(Action::HoldGroup { group, needed: false }),
        Gang::Settle(group) if !deletes_self(draft) => draft.act(Action::SettleGroup(group)),
        Gang::Impossible { problem } if makes_cluster(draft) => {
            draft.plan.actions.retain(|action| !matches!(action, Action::CreateCluster(_)));
            draft.blocked("InvalidPodGroup", problem);
        }
        Gang::Leave | Gang::Settle(_) | Gang::Remove { .. } | Gang::Impossible { .. } => {}
    }
}

/// The cluster that the RayJob made, unless it is about to go, be it by this very look.
fn live_cluster(draft: &Draft<'_>) -> Option<Arc<RayCluster>> {
    let goes = draft.plan.actions.iter().any(|action| matches!(action, Action::DeleteCluster { .. }));
    let own = draft.view.seen.own_cluster(draft.view.job).filter(|cluster| !goes && cluster.metadata.deletion_timestamp.is_none());
    own.cloned()
}

fn makes_cluster(draft: &Draft<'_>) -> bool {
    draft.plan.actions.iter().any(|action| matches!(action, Action::CreateCluster(_)))
}

fn deletes_self(draft: &Draft<'_>) -> bool {
    draft.plan.actions.contains(&Action::DeleteSelf)
}
