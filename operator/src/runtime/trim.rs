//! Drops the parts of metadata that nobody here reads: they are half of what a cache would hold.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared::labels::GROUP;

/// Drops what the API server keeps for itself.
pub(crate) fn bookkeeping(meta: &mut ObjectMeta) {
    meta.managed_fields = None;
    meta.self_link = None;
    meta.generate_name = None;
    // Lists are read into vectors with room for four.
    meta.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
    meta.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
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

/// Keeps of an object that the operator has made what says that it is there and whose it is: names, owners, labels of `ray.io/`.
pub(crate) fn to_identity(meta: &mut ObjectMeta) {
    bookkeeping(meta);
    if let Some(labels) = &mut meta.labels {
        labels.retain(|key, _| key.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with('/')));
    }
    meta.annotations = None;
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
