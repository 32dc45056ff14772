//! Leaves out the parts of metadata that nobody here reads: they are half of what a cache would hold.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};
use shared::labels::label;

/// Reads metadata without what the API server keeps for itself. Its record of who set which field is a large part of each object, and
/// more work to decode than everything else that is kept.
///
/// # Errors
/// When this is no metadata.
pub(crate) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Read {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        owner_references: Option<Vec<OwnerReference>>,
        finalizers: Option<Vec<String>>,
    }
    let mut read = Read::deserialize(deserializer)?;
    // Lists are read into vectors with room for four.
    read.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
    read.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        deletion_grace_period_seconds: read.deletion_grace_period_seconds,
        labels: read.labels,
        annotations: read.annotations,
        owner_references: read.owner_references,
        finalizers: read.finalizers,
        ..ObjectMeta::default()
    })
}

/// Keeps the annotations whose key passes.
pub(crate) fn retain_annotations(meta: &mut ObjectMeta, keep: impl Fn(&str) -> bool) {
    if let Some(annotations) = &mut meta.annotations {
        annotations.retain(|key, _| keep(key));
        if annotations.is_empty() {
            meta.annotations = None;
        }
    }
}

/// Keeps of an object that the operator has made what says that it is there and whose it is: names and owners.
pub(crate) fn to_identity(meta: &mut ObjectMeta) {
    meta.labels = None;
    meta.annotations = None;
}

/// Takes the label that names the RayCluster. A map of labels takes half a kilobyte and more; there are many objects.
pub(crate) fn take_cluster(meta: &mut ObjectMeta) -> Option<Box<str>> {
    meta.labels.take()?.remove(label::CLUSTER).map(String::into_boxed_str)
}

/// Whether this is another version of an object of which only a part is kept: what changed may be something else, so each counts.
pub(crate) fn is_other_version(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    new.resource_version != old.resource_version
}

/// Whether two versions of an object differ in metadata that somebody here reads. A new resourceVersion alone is no difference.
pub(crate) fn metadata_differs(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    new.uid != old.uid
        || new.generation != old.generation
        || new.deletion_timestamp != old.deletion_timestamp
        || new.labels != old.labels
        || new.annotations != old.annotations
        || new.owner_references != old.owner_references
        || new.finalizers != old.finalizers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_read_but_for_what_the_api_server_keeps_for_itself() {
        let kept = json!({
            "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:06Z", "deletionGracePeriodSeconds": 3,
            "labels": { "a": "b" }, "annotations": { "c": "d" }, "finalizers": ["f"],
            "ownerReferences": [{ "apiVersion": "v1", "kind": "K", "name": "o", "uid": "p", "controller": true }],
        });
        let mut object = kept.clone();
        let more = json!({
            "managedFields": [{ "manager": "m", "operation": "Update", "fieldsV1": { "f:spec": {} } }],
            "selfLink": "/x", "generateName": "n-", "somethingNew": [1],
        });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(serde_json::to_value(metadata(object).unwrap()).unwrap(), kept);
        assert_eq!(metadata(json!({})).unwrap(), ObjectMeta::default());
        assert_eq!(metadata(json!({ "labels": null })).unwrap(), ObjectMeta::default());
        metadata(json!({ "generation": "two" })).unwrap_err();
    }
}
