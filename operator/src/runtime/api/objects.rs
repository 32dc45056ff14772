//! Creating, comparing, repairing and deleting objects, in step with the caches.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{DeleteParams, Patch},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ApiError, FIELD_MANAGER, Mirrored, calls::Target, controller_of};
use crate::runtime::Context;

/// What became of a create.
#[derive(Clone, Debug)]
pub enum Created<V> {
    /// The object was made.
    New(Arc<V>),
    /// An object of this name was there already, whoever it belongs to.
    Exists,
}

/// What became of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object goes, or is going.
    Begun,
    /// The object of this uid was gone already.
    Gone,
}

/// What was needed to have an object as it is wanted.
#[derive(Clone, Debug)]
pub enum Ensured<V> {
    /// It was made.
    Created(Arc<V>),
    /// It was there and differed.
    Updated(Arc<V>),
    /// It was there and as wanted.
    Unchanged(Arc<V>),
    /// An object of this name is there and belongs to somebody else. It was not touched.
    Foreign,
}

impl<V> Ensured<V> {
    /// The object, unless it is somebody else's.
    pub fn object(&self) -> Option<&Arc<V>> {
        match self {
            Self::Created(object) | Self::Updated(object) | Self::Unchanged(object) => Some(object),
            Self::Foreign => None,
        }
    }
}

impl Context {
    /// Makes an object. For kinds that are never changed afterwards, such as Pods and Jobs, and for children that are edited by
    /// others, such as a RayJob's RayCluster.
    ///
    /// # Errors
    /// When the call fails for any reason but an object of the same name. If [`ApiError::is_outcome_unknown`], the object may exist.
    pub async fn create<K: Mirrored + Serialize>(&self, object: &K) -> Result<Created<K::View>, ApiError> {
        match self.calls.create::<K, K::View>(object).await {
            Ok(made) => Ok(Created::New(self.observe::<K>(made))),
            Err(error) if error.is_already_exists() => Ok(Created::Exists),
            Err(error) => Err(error),
        }
    }

    /// Makes an object, or makes an existing one of the same controller as it is wanted. Fields that others set and `wanted` does
    /// not speak of stay. Costs nothing while neither `wanted` nor the object has changed since the last look.
    ///
    /// `wanted` must name its controller.
    ///
    /// # Errors
    /// When a call fails.
    pub async fn ensure<K: Mirrored + Serialize>(&self, wanted: &K) -> Result<Ensured<K::View>, ApiError> {
        let target = Target::of(wanted.meta());
        let form = |error| ApiError::form(("apply", K::kind(&()).into_owned(), target.namespace.to_owned(), target.name.to_owned()), error);
        let body = with_type::<K>(serde_json::to_value(wanted).map_err(form)?);
        let fingerprint = fingerprint(&body);
        let cache = K::cache(self);

        let Some(known) = cache.get(target.namespace, target.name) else {
            if let Created::New(object) = self.create(wanted).await? {
                cache.set_verified(&object, fingerprint);
                return Ok(Ensured::Created(object));
            }
            // The watch has not told of it yet, or it lacks the label that the watch selects by.
            return match self.calls.get::<K, K::View>(target.namespace, target.name).await? {
                Some(found) if same_controller(found.meta(), wanted.meta()) => {
                    self.repair::<K>(&target, &body, fingerprint, found.meta()).await
                }
                _ => Ok(Ensured::Foreign),
            };
        };
        if !same_controller(known.meta(), wanted.meta()) {
            return Ok(Ensured::Foreign);
        }
        if cache.verified(&known) == Some(fingerprint) {
            return Ok(Ensured::Unchanged(known));
        }
        self.repair::<K>(&target, &body, fingerprint, known.meta()).await
    }

    /// Applies `body` to the object that `known` describes.
    async fn repair<K: Mirrored>(
        &self,
        target: &Target<'_>,
        body: &Value,
        fingerprint: u64,
        known: &ObjectMeta,
    ) -> Result<Ensured<K::View>, ApiError> {
        let mut body = body.clone();
        if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            // Never makes the object anew, and never touches a successor of the same name.
            meta.insert("uid".to_owned(), json!(known.uid));
        }
        let apply = Patch::Apply(&body);
        let mut answer: Value = self.calls.patch::<K, _, _>(target, None, &apply).await?;
        if let Some(merge) = adopt_created_fields(&answer) {
            // The object was made by a create, here or by KubeRay. Fields set by that stay when they are no longer wanted, unless
            // they are first handed over to the applier.
            let _: Value = self.calls.patch::<K, _, _>(target, None, &Patch::Merge(merge)).await?;
            answer = self.calls.patch::<K, _, _>(target, None, &apply).await?;
        }
        let form = |error| ApiError::form(("apply", K::kind(&()).into_owned(), target.namespace.to_owned(), target.name.to_owned()), error);
        let view: K::View = serde_json::from_value(answer).map_err(form)?;
        let unchanged = view.meta().resource_version == known.resource_version;
        let object = self.observe::<K>(view);
        K::cache(self).set_verified(&object, fingerprint);
        Ok(if unchanged { Ensured::Unchanged(object) } else { Ensured::Updated(object) })
    }

    /// Deletes the object of this name if it still has this uid. Its own objects go in the background.
    ///
    /// # Errors
    /// When the call fails for any reason but that the object is gone.
    pub async fn delete<K: Mirrored>(&self, namespace: &str, name: &str, uid: &str) -> Result<Deleted, ApiError> {
        let target = Target { namespace, name };
        let answer = self.calls.delete::<K, Value>(&target, uid, DeleteParams::background()).await;
        match answer {
            Ok(answer) => {
                // A Status says that the object is gone; an object that it will be, or that it was like this at its end.
                let view = serde_json::from_value::<K::View>(answer).ok();
                if let Some(view) = view.filter(|view| view.meta().uid.as_deref() == Some(uid) && view.meta().deletion_timestamp.is_some())
                {
                    self.observe::<K>(view);
                }
                Ok(Deleted::Begun)
            }
            // With a precondition, a conflict means that the name has a new owner.
            Err(error) if error.is_not_found() || error.is_conflict() => {
                K::cache(self).forget(namespace, name, uid);
                Ok(Deleted::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Changes single fields of an object (JSON merge patch), such as finalizers, under the condition that it is still at the
    /// version that `known` says, if it says one. Returns the object now.
    ///
    /// # Errors
    /// A conflict if the object has been changed since, or any other failure of the call.
    pub async fn patch<K: Mirrored>(&self, known: &ObjectMeta, mut changes: Value) -> Result<Arc<K::View>, ApiError> {
        let target = Target::of(known);
        if let Some(meta) = changes.as_object_mut().and_then(|all| all.entry("metadata").or_insert_with(|| json!({})).as_object_mut()) {
            meta.insert("uid".to_owned(), json!(known.uid));
            if let Some(version) = &known.resource_version {
                meta.insert("resourceVersion".to_owned(), json!(version));
            }
        }
        let view: K::View = self.calls.patch::<K, _, _>(&target, None, &Patch::Merge(changes)).await?;
        Ok(self.observe::<K>(view))
    }
}

impl Context {
    /// Takes in the answer to an own write.
    pub fn observe<K: Mirrored>(&self, answer: K::View) -> Arc<K::View> {
        let (object, change) = K::cache(self).observe(answer);
        if let Some(change) = change {
            K::wake_others(&self.queues, &change);
        }
        object
    }
}

fn same_controller(found: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    controller_of(wanted).is_some_and(|owner| controller_of(found).is_some_and(|found| found.uid == owner.uid))
}

/// Apply wants the kind in the body.
fn with_type<K: Resource<DynamicType = ()>>(mut body: Value) -> Value {
    if let Some(body) = body.as_object_mut() {
        body.insert("apiVersion".to_owned(), json!(K::api_version(&())));
        body.insert("kind".to_owned(), json!(K::kind(&())));
    }
    body
}

fn fingerprint(body: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

/// A merge patch that makes fields which the operator (or KubeRay, under the same name) set by create or update belong to what it
/// applies; `None` if there are none.
pub(super) fn adopt_created_fields(object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let ours = |entry: &&Value, operation: &str| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        text("manager") == FIELD_MANAGER && text("operation") == operation && text("subresource").is_empty()
    };
    let mut created = entries.iter().filter(|entry| ours(entry, "Update")).peekable();
    created.peek()?;
    let mut joined = entries.iter().find(|entry| ours(entry, "Apply"))?.clone();
    for fields in created.filter_map(|entry| entry.get("fieldsV1")) {
        unite(joined.get_mut("fieldsV1")?, fields);
    }
    let others = entries.iter().filter(|entry| !ours(entry, "Update") && !ours(entry, "Apply")).cloned();
    let entries: Vec<Value> = others.chain([joined]).collect();
    let version = object.pointer("/metadata/resourceVersion")?;
    Some(json!({ "metadata": { "resourceVersion": version, "managedFields": entries } }))
}

/// Adds the field paths of `more` to `set`.
fn unite(set: &mut Value, more: &Value) {
    if let (Some(set), Some(more)) = (set.as_object_mut(), more.as_object()) {
        for (path, below) in more {
            unite(set.entry(path.clone()).or_insert_with(|| json!({})), below);
        }
    }
}
