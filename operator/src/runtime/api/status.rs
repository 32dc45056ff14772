//! Status writes: only what changed, and only if nobody else has written in between.

use std::sync::Arc;

use kube::{ResourceExt as _, api::Patch};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ApiError, calls::Target};
use crate::runtime::{
    Context,
    api::Mirrored,
    cache::{Lazy, Root},
};

/// What became of a status write.
#[derive(Clone, Debug)]
pub enum StatusWrite<T> {
    /// Old and new status are the same: nothing was sent.
    Unchanged,
    /// It was written; this is the object now. `None` if it cannot be read back, which is logged.
    Written(Option<Arc<T>>),
}

impl Context {
    /// Replaces the status of `object`, which has been read from a cache, by `new`. Only differences are sent, under the condition
    /// that the object is still at the version that was read.
    ///
    /// # Errors
    /// A conflict if the object has been changed or deleted since it was read, or any other failure of the call.
    pub async fn write_status<T>(&self, object: &T, new: &T::Status) -> Result<StatusWrite<T>, ApiError>
    where
        T: Root + Mirrored<View = Lazy<T>> + HasStatus,
        T::Status: Serialize,
    {
        let target = Target::of(object.meta());
        let form =
            |error| ApiError::form(("patch_status", T::kind(&()).into_owned(), target.namespace.to_owned(), target.name.to_owned()), error);
        let old = object.status().map(serde_json::to_value).transpose().map_err(form)?.unwrap_or_else(|| json!({}));
        let new = serde_json::to_value(new).map_err(form)?;
        let Some(difference) = merge_diff(&old, &new) else { return Ok(StatusWrite::Unchanged) };
        let body = json!({
            "metadata": { "uid": object.uid(), "resourceVersion": object.resource_version() },
            "status": difference,
        });
        let written: Lazy<T> = self.calls.patch::<T, _, _>(&target, Some("status"), &Patch::Merge(body)).await?;
        let seen = self.observe::<T>(written);
        Ok(StatusWrite::Written(seen.decode().ok().map(Arc::new)))
    }
}

/// Access to the status of a kind.
pub trait HasStatus: Root {
    /// The status as it was read.
    fn status(&self) -> Option<&Self::Status>;
}

macro_rules! has_status {
    ($($kind:ident),+) => {$(
        impl HasStatus for shared::api::$kind {
            fn status(&self) -> Option<&Self::Status> {
                self.status.as_ref()
            }
        }
    )+};
}
has_status!(RayCluster, RayJob, RayCronJob);

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; `None` if they are equal. A `null` inside `new` cannot be expressed
/// by a merge patch and removes the field.
pub fn merge_diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut difference = Map::new();
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                difference.insert(key.clone(), Value::Null);
            }
            for (key, value) in new {
                let changed = match old.get(key) {
                    Some(before) => merge_diff(before, value),
                    None => Some(value.clone()),
                };
                if let Some(changed) = changed {
                    difference.insert(key.clone(), changed);
                }
            }
            if difference.is_empty() { None } else { Some(Value::Object(difference)) }
        }
        (old, new) if old == new => None,
        (_, new) => Some(new.clone()),
    }
}
