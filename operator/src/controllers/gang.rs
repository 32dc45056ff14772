//! Has the PodGroup of a RayCluster or RayJob as it is wanted. Called by `apply` of both kinds, and by nobody else.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use serde_json::json;
use shared::labels::{OPERATOR_NAME, label};

use crate::build::scheduling::pod_group::{Family, Group, PodGroup};
use crate::runtime::Context;
use crate::runtime::api::{ApiError, Created, Deleted, Mirrored, controller_of, is_controlled_by};

/// What became of a PodGroup.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was made.
    Made,
    /// It was there, and was changed.
    Changed,
    /// There was nothing to do.
    Same,
    /// It is as large as wanted, but the scheduler does not take its new queue, priority or topology: those stay as they are (BS-17).
    Kept(String),
    /// A PodGroup of this name belongs to somebody else. It was not touched.
    Foreign,
}

/// Name of a group.
pub(super) fn name(group: &Group) -> String {
    match group {
        Group::Volcano(group) => group.name_any(),
        Group::Plugins(group) => group.name_any(),
    }
}

/// Whether a group of this name is there, as far as the cache knows.
pub(super) fn is_there(context: &Context, group: &Group) -> bool {
    match group {
        Group::Volcano(group) => known(context, group).is_some(),
        Group::Plugins(group) => known(context, group).is_some(),
    }
}

/// Has the group like this, and makes it where it is not there.
///
/// # Errors
/// When a call fails.
pub(super) async fn hold(context: &Context, group: &Group) -> Result<Outcome, ApiError> {
    match group {
        Group::Volcano(group) => hold_in(context, group).await,
        Group::Plugins(group) => hold_in(context, group).await,
    }
}

/// Has the group ask for this much, if it is there (BS-19).
///
/// # Errors
/// When a call fails.
pub(super) async fn settle(context: &Context, group: &Group) -> Result<Outcome, ApiError> {
    match group {
        Group::Volcano(group) => settle_in(context, group).await,
        Group::Plugins(group) => settle_in(context, group).await,
    }
}

/// Deletes the group of this name if the object of uid `owner` controls it. Answers whether it was there.
///
/// # Errors
/// When the call fails.
pub(super) async fn remove<F>(context: &Context, namespace: &str, name: &str, owner: &str) -> Result<bool, ApiError>
where
    F: Family,
    PodGroup<F>: Mirrored<View = PodGroup<F>>,
{
    let found = PodGroup::<F>::cache(context).get(namespace, name);
    let Some(found) = found.filter(|found| is_controlled_by(&found.metadata, owner)) else { return Ok(false) };
    let uid = found.metadata.uid.as_deref().unwrap_or_default();
    Ok(context.delete::<PodGroup<F>>(namespace, name, uid).await? == Deleted::Begun)
}

fn known<F>(context: &Context, group: &PodGroup<F>) -> Option<Arc<PodGroup<F>>>
where
    F: Family,
    PodGroup<F>: Mirrored<View = PodGroup<F>>,
{
    PodGroup::<F>::cache(context).get(&group.namespace().unwrap_or_default(), &group.name_any())
}

async fn hold_in<F>(context: &Context, group: &PodGroup<F>) -> Result<Outcome, ApiError>
where
    F: Family,
    PodGroup<F>: Mirrored<View = PodGroup<F>>,
{
    let found = match known(context, group) {
        Some(found) => Found::Seen(found),
        None => match context.create(group).await? {
            Created::New(_) => return Ok(Outcome::Made),
            // The watch has not told of it yet, or it lacks the label that the watch selects by.
            Created::Exists => match live(context, group).await? {
                Some(found) => found,
                None => {
                    // It has gone in between.
                    let again = context.create(group).await?;
                    return Ok(if matches!(again, Created::New(_)) { Outcome::Made } else { Outcome::Foreign });
                }
            },
        },
    };
    let Some((found, resized)) = resize(context, group, found).await? else { return Ok(Outcome::Foreign) };
    let outcome = if resized { Outcome::Changed } else { Outcome::Same };
    let Some(changes) = group.moved(&found) else { return Ok(outcome) };
    match context.patch::<PodGroup<F>>(&any_version(&found), changes).await {
        Ok(_) => Ok(Outcome::Changed),
        Err(error) if error.refusal().is_some() => Ok(Outcome::Kept(error.to_string())),
        Err(error) => Err(error),
    }
}

async fn settle_in<F>(context: &Context, group: &PodGroup<F>) -> Result<Outcome, ApiError>
where
    F: Family,
    PodGroup<F>: Mirrored<View = PodGroup<F>>,
{
    let found = match known(context, group) {
        Some(found) => Some(Found::Seen(found)),
        // One that KubeRay has made is not seen before it was changed once. Where it is to ask for nothing, KubeRay has seen to that.
        None if group.spec.min_member > 0 => live(context, group).await?,
        None => None,
    };
    let Some(found) = found else { return Ok(Outcome::Same) };
    Ok(match resize(context, group, found).await? {
        Some((_, true)) => Outcome::Changed,
        Some((_, false)) => Outcome::Same,
        None => Outcome::Foreign,
    })
}

/// A group that is there.
enum Found<F> {
    /// As the watch tells of it.
    Seen(Arc<PodGroup<F>>),
    /// The watch does not tell of it, because it lacks the label.
    Unseen(Arc<PodGroup<F>>),
}

async fn live<F>(context: &Context, group: &PodGroup<F>) -> Result<Option<Found<F>>, ApiError>
where
    F: Family,
    PodGroup<F>: Mirrored<View = PodGroup<F>>,
{
    let (namespace, name) = (group.namespace().unwrap_or_default(), group.name_any());
    let found = context.calls.get::<PodGroup<F>, PodGroup<F>>(&namespace, &name).await?;
    Ok(found.map(|found| match found.labels().get(label::K8S_CREATED_BY) {
        Some(maker) if maker == OPERATOR_NAME => Found::Seen(context.observe::<PodGroup<F>>(found)),
        _ => Found::Unseen(Arc::new(found)),
    }))
}

/// Has the group ask for as much as wanted. Answers with it and whether it was changed; `None` if it belongs to somebody else.
async fn resize<F>(context: &Context, wanted: &PodGroup<F>, found: Found<F>) -> Result<Option<(Arc<PodGroup<F>>, bool)>, ApiError>
where
    F: Family,
    PodGroup<F>: Mirrored<View = PodGroup<F>>,
{
    let (found, unseen) = match found {
        Found::Seen(found) => (found, false),
        Found::Unseen(found) => (found, true),
    };
    let Some(owner) = controller_of(&wanted.metadata) else { return Ok(None) };
    // KubeRay does not mark the owner as controller (BS-51).
    if !found.owner_references().iter().any(|known| known.uid == owner.uid) {
        return Ok(None);
    }
    let mut changes = wanted.resized(&found);
    if unseen {
        let owners: Vec<_> = found.owner_references().iter().filter(|known| known.uid != owner.uid).chain([owner]).collect();
        let metadata = json!({ "labels": wanted.metadata.labels, "ownerReferences": owners });
        changes.get_or_insert_with(|| json!({}))["metadata"] = metadata;
    }
    let Some(changes) = changes else { return Ok(Some((found, false))) };
    let known = if unseen { found.metadata.clone() } else { any_version(&found) };
    Ok(Some((context.patch::<PodGroup<F>>(&known, changes).await?, true)))
}

/// The group whatever its version: schedulers write into its status all the time, and what is wanted does not depend on that.
fn any_version<F: Family>(group: &PodGroup<F>) -> ObjectMeta {
    ObjectMeta { resource_version: None, ..group.metadata.clone() }
}
