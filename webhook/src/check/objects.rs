//! Which documents are ours.

use serde_json::Value;
use shared::nearest::nearest;
use shared::schema::Schema;
use shared::validation::{ErrorType, Kind};
use shared::yaml::{Document, Duplicate, Place, Step};

/// Lists in lists are followed this far.
const MAX_LISTS: usize = 4;

/// What a document is.
pub(super) enum Identity {
    /// One of our kinds, in a version that is served.
    Ray(Kind, &'static Schema),
    /// Something else.
    Other,
    /// Meant to be ours, but named so that no API server takes it: the field, the type of error and the message.
    Misnamed(&'static str, ErrorType, String),
}

/// A part of a document that is an object by itself.
pub(super) struct Object<'d> {
    pub(super) value: Value,
    pub(super) place: &'d Place,
    /// Duplicate keys in it, by their path in the object.
    pub(super) duplicates: Vec<Duplicate>,
}

/// The objects of a document: itself, or the items of a list.
pub(super) fn objects(document: &mut Document) -> Vec<Object<'_>> {
    let mut found = Vec::new();
    let Document { value, place, duplicates } = document;
    collect(value.take(), place, std::mem::take(duplicates), MAX_LISTS, &mut found);
    found
}

fn collect<'d>(mut value: Value, place: &'d Place, duplicates: Vec<Duplicate>, depth: usize, found: &mut Vec<Object<'d>>) {
    let list = text(&value, "kind").ends_with("List") && depth > 0;
    let Some(Value::Array(items)) = value.get_mut("items").filter(|_| list) else {
        return found.push(Object { value, place, duplicates });
    };
    for (index, item) in std::mem::take(items).into_iter().enumerate() {
        let prefix = [Step::Key("items".to_owned()), Step::Index(index)];
        let inner = duplicates.iter().filter_map(|duplicate| {
            let path = duplicate.path.strip_prefix(prefix.as_slice())?.to_vec();
            Some(Duplicate { path, ..duplicate.clone() })
        });
        collect(item, place.find(&prefix).place, inner.collect(), depth - 1, found);
    }
}

/// A text field at the top of an object; empty when it is not there.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A text field of `metadata`; empty when it is not there.
pub(super) fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").map_or("", |metadata| text(metadata, field))
}

/// Says what an object is from its `apiVersion` and `kind`.
pub(super) fn identify(object: &Value) -> Identity {
    if let Value::Array(items) = object {
        let ours = items.iter().any(|item| item.is_object() && !matches!(identify(item), Identity::Other));
        let message = "a list is no manifest: leave out the `- `, and put `---` between the objects".to_owned();
        return if ours { Identity::Misnamed("", ErrorType::Invalid, message) } else { Identity::Other };
    }
    let (api_version, kind_text) = (text(object, "apiVersion"), text(object, "kind"));
    let kind = kind_text.parse::<Kind>().ok();
    let version = api_version.strip_prefix("ray.io/");
    match (kind, version) {
        (Some(kind), Some(version)) => match Schema::of(kind, version) {
            Some(schema) => Identity::Ray(kind, schema),
            None => misnamed("apiVersion", format!("there is no {kind} in {api_version:?}: write ray.io/v1")),
        },
        (None, Some(_)) if kind_text.is_empty() => {
            Identity::Misnamed("kind", ErrorType::Required, format!("is required, and missing: write one of {}", kinds()))
        }
        (None, Some(_)) => {
            let meant = nearest(kind_text, Kind::ALL.into_iter().map(Kind::as_str));
            let remedy = meant.map_or_else(|| format!("the kinds are {}", kinds()), |kind| format!("did you mean {kind}?"));
            misnamed("kind", format!("there is no kind {kind_text:?} in {api_version}; {remedy}"))
        }
        (Some(kind), None) if api_version.is_empty() => {
            Identity::Misnamed("apiVersion", ErrorType::Required, format!("is required, and missing: a {kind} is in ray.io/v1"))
        }
        // Groups of other people may have kinds with our names.
        (Some(kind), None) if !api_version.contains('/') || api_version.to_ascii_lowercase().contains("ray") => {
            misnamed("apiVersion", format!("there is no {kind} in {api_version:?}: write ray.io/v1"))
        }
        _ => Identity::Other,
    }
}

fn misnamed(field: &'static str, message: String) -> Identity {
    Identity::Misnamed(field, ErrorType::NotSupported, message)
}

fn kinds() -> String {
    Kind::ALL.map(Kind::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::yaml;

    use super::*;

    #[test]
    fn documents_are_told_by_group_version_and_kind() {
        let table = [
            ("ray.io/v1", "RayJob", "RayJob"),
            ("ray.io/v1alpha1", "RayCluster", "RayCluster"),
            ("ray.io/v1alpha1", "RayCronJob", "apiVersion"),
            ("ray.io/v2", "RayJob", "apiVersion"),
            ("ray.io/v1", "Rayjob", "kind did you mean RayJob?"),
            ("ray.io/v1", "Deployment", "kind"),
            ("ray.io/v1", "", "kind"),
            ("", "RayJob", "apiVersion"),
            ("v1", "RayJob", "apiVersion"),
            ("rayio/v1", "RayService", "apiVersion"),
            ("acme.example/v1", "RayCluster", "other"),
            ("config.ray.io/v1alpha1", "Configuration", "other"),
            ("v1", "Service", "other"),
            ("", "", "other"),
        ];
        for (api_version, kind, wanted) in table {
            let said = match identify(&json!({"apiVersion": api_version, "kind": kind})) {
                Identity::Ray(kind, _) => kind.to_string(),
                Identity::Other => "other".to_owned(),
                Identity::Misnamed(field, _, message) => format!("{field} {message}"),
            };
            let mut words = wanted.split(' ');
            assert!(said.starts_with(words.next().unwrap()), "{api_version} {kind}: {said}");
            assert!(said.ends_with(words.next_back().unwrap_or_default()), "{api_version} {kind}: {said}");
        }
        assert!(matches!(identify(&json!([1])), Identity::Other));
        assert!(matches!(identify(&json!([{"apiVersion": "v1", "kind": "Pod"}])), Identity::Other));
        assert!(matches!(identify(&json!([{"apiVersion": "ray.io/v1", "kind": "RayJob"}])), Identity::Misnamed("", ..)));
    }

    #[test]
    fn items_of_lists_are_objects_with_their_own_lines() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  x: 1\n  x: 2\n- kind: BList\n  items:\n  - kind: C\n";
        let mut document = yaml::parse_document(text).unwrap().unwrap();
        let found = objects(&mut document);
        let told: Vec<_> = found
            .iter()
            .map(|o| (super::text(&o.value, "kind"), o.place.pos.line, Step::join(o.duplicates.first().map_or(&[], |d| &d.path))))
            .collect();
        assert_eq!(told, [("A", 4, "x".to_owned()), ("C", 9, String::new())]);
    }
}
