//! The OpenShift Route, a kind without a cache: it is compared when what is wanted changes, and from time to time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use shared::api::RayCluster;

use super::{Applied, Of, children::foreign};
use crate::build::ingress::route_api;
use crate::controllers::raycluster::memory::ClusterMemory;
use crate::controllers::raycluster::notes::Note;
use crate::controllers::raycluster::plan::Wanted;
use crate::runtime::Context;
use crate::runtime::api::{FIELD_MANAGER, is_controlled_by};

/// How long a Route is trusted to be as it was.
const TRUST: SignedDuration = SignedDuration::from_secs(300);
/// How long the calls may take together.
const DEADLINE: Duration = Duration::from_secs(30);
/// Key in [`ClusterMemory::checked`].
const CHECKED: &str = "route";

/// Has the Route as it is wanted (RC-143).
pub(super) async fn apply(
    context: &Context,
    cluster: &RayCluster,
    wanted: Wanted<DynamicObject>,
    memory: &mut ClusterMemory,
    applied: &mut Applied,
    now: Timestamp,
) {
    let mut hasher = DefaultHasher::new();
    match &wanted {
        Wanted::Untouched => return,
        Wanted::Nowhere { name } => name.hash(&mut hasher),
        Wanted::Here(route) => serde_json::to_string(&**route).unwrap_or_default().hash(&mut hasher),
    }
    let mark = hasher.finish();
    if memory.checked.get(CHECKED).is_some_and(|(known, at)| *known == mark && now.duration_since(*at) < TRUST) {
        return;
    }
    let api = Api::namespaced_with(context.client.clone(), Of::cluster(cluster).namespace, &route_api());
    let outcome = tokio::time::timeout(DEADLINE, keep(&api, cluster, wanted)).await;
    match outcome {
        Ok(Ok(Outcome::Done(note))) => {
            applied.notes.extend(note);
            memory.checked.insert(CHECKED, (mark, now));
        }
        Ok(Ok(Outcome::Foreign(name))) => foreign(applied, "Route", &name, "FailedToCreateRoute", now),
        Ok(Err(error)) => disturbed(applied, error.to_string(), now),
        Err(_) => disturbed(applied, format!("no answer within {} s", DEADLINE.as_secs()), now),
    }
}

fn disturbed(applied: &mut Applied, error: String, now: Timestamp) {
    applied.notes.push(Note::warning("FailedToCreateRoute", "Create", error).about("Route"));
    applied.wake_at(now.saturating_add(SignedDuration::from_secs(10)).unwrap_or(now));
}

enum Outcome {
    Done(Option<Note>),
    /// A Route of this name belongs to somebody else.
    Foreign(String),
}

async fn keep(api: &Api<DynamicObject>, cluster: &RayCluster, wanted: Wanted<DynamicObject>) -> Result<Outcome, kube::Error> {
    let uid = Of::cluster(cluster).uid;
    let name = match &wanted {
        Wanted::Untouched => return Ok(Outcome::Done(None)),
        Wanted::Nowhere { name } => name.clone(),
        Wanted::Here(route) => route.name_any(),
    };
    let found = api.get_opt(&name).await?;
    let ours = found.as_ref().is_some_and(|found| is_controlled_by(&found.metadata, uid));
    match (wanted, found) {
        (Wanted::Here(route), None) => {
            let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            api.create(&params, &route).await?;
            Ok(Outcome::Done(Some(Note::normal("CreatedRoute", "Create", format!("Created Route {name}")))))
        }
        (Wanted::Here(_), Some(_)) if !ours => Ok(Outcome::Foreign(name)),
        (Wanted::Here(route), Some(found)) => {
            let mut body = serde_json::to_value(&*route).map_err(kube::Error::SerdeError)?;
            if let Some(metadata) = body.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
                metadata.insert("uid".to_owned(), json!(found.metadata.uid));
            }
            let answer = api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&body)).await?;
            let changed = answer.metadata.resource_version != found.metadata.resource_version;
            Ok(Outcome::Done(changed.then(|| Note::normal("UpdatedRoute", "Update", format!("Updated Route {name}")))))
        }
        (Wanted::Nowhere { .. }, Some(found)) if ours => {
            let only = Preconditions { uid: found.metadata.uid, resource_version: None };
            api.delete(&name, &DeleteParams::background().preconditions(only)).await?;
            Ok(Outcome::Done(Some(Note::normal("DeletedRoute", "Delete", format!("Deleted Route {name}, which is no longer wanted")))))
        }
        _ => Ok(Outcome::Done(None)),
    }
}
