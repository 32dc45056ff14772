//! The PodGroup of a cluster, for schedulers that want one.

use jiff::{SignedDuration, Timestamp};
use shared::api::RayCluster;

use super::{Applied, Of, children::foreign};
use crate::build::scheduling::Gang;
use crate::build::scheduling::pod_group::{Group, Plugins};
use crate::controllers::gang::{self, Outcome};
use crate::controllers::raycluster::notes::Note;
use crate::controllers::raycluster::pods::Trouble;
use crate::runtime::Context;
use crate::runtime::api::ApiError;

const FAILED_TO_CREATE: &str = "FailedToCreatePodGroup";
const FAILED_TO_UPDATE: &str = "FailedToUpdatePodGroup";
/// How long until a scheduler is asked again to take what it has refused.
const REFUSAL_RETRY: SignedDuration = SignedDuration::from_secs(60);

/// Has the group as it is wanted. Answers with what keeps Pods from being made: without their group they would start one by one, or
/// never.
pub(super) async fn apply(context: &Context, cluster: &RayCluster, wanted: Gang, applied: &mut Applied, now: Timestamp) -> Option<Trouble> {
    match wanted {
        Gang::Leave => {}
        Gang::Hold(group) => return hold(context, &group, applied, now).await,
        Gang::Settle(group) => {
            let name = gang::name(&group);
            match gang::settle(context, &group).await {
                Ok(Outcome::Changed) => applied.notes.push(updated(&name)),
                Ok(_) => {}
                Err(error) => failed(applied, FAILED_TO_UPDATE, "Update", &name, error),
            }
        }
        Gang::Remove { name } => {
            let Of { namespace, uid } = Of::cluster(cluster);
            match gang::remove::<Plugins>(context, namespace, &name, uid).await {
                Ok(true) => {
                    let text = format!("Deleted PodGroup {name}, which is no longer wanted");
                    applied.notes.push(Note::normal("DeletedPodGroup", "Delete", text));
                }
                Ok(false) => {}
                Err(error) => failed(applied, "FailedToDeletePodGroup", "Delete", &name, error),
            }
        }
        Gang::Impossible { problem } => {
            applied.notes.push(Note::warning(FAILED_TO_CREATE, "Create", problem.clone()).about("PodGroup"));
            return Some(Trouble { reason: "InvalidPodGroup".to_owned(), message: problem });
        }
    }
    None
}

async fn hold(context: &Context, group: &Group, applied: &mut Applied, now: Timestamp) -> Option<Trouble> {
    let name = gang::name(group);
    match gang::hold(context, group).await {
        Ok(Outcome::Made) => applied.notes.push(Note::normal("CreatedPodGroup", "Create", format!("Created PodGroup {name}"))),
        Ok(Outcome::Changed) => applied.notes.push(updated(&name)),
        Ok(Outcome::Same) => {}
        Ok(Outcome::Kept(refusal)) => {
            let text = format!("PodGroup {name} keeps its queue, priority and topology: {refusal}");
            applied.notes.push(Note::warning(FAILED_TO_UPDATE, "Update", text).about("PodGroup"));
            applied.wake_at(now.saturating_add(REFUSAL_RETRY).unwrap_or(now));
        }
        Ok(Outcome::Foreign) => {
            foreign(applied, "PodGroup", &name, FAILED_TO_CREATE, now);
            return applied.conflict.clone();
        }
        Err(error) if gang::is_there(context, group) => failed(applied, FAILED_TO_UPDATE, "Update", &name, error),
        Err(error) => {
            let trouble = Trouble { reason: "FailedCreatePodGroup".to_owned(), message: error.to_string() };
            failed(applied, FAILED_TO_CREATE, "Create", &name, error);
            return Some(trouble);
        }
    }
    None
}

fn updated(name: &str) -> Note {
    Note::normal("UpdatedPodGroup", "Update", format!("Updated PodGroup {name}"))
}

fn failed(applied: &mut Applied, reason: &'static str, action: &'static str, name: &str, error: ApiError) {
    applied.notes.push(Note::warning(reason, action, error.to_string()).about(&format!("PodGroup {name}")));
    applied.fail(error);
}
