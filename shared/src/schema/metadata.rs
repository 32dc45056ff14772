//! The rules of the API server about `metadata`, the same for every kind.

use serde_json::{Value, json};

use crate::validation::{
    ErrorType, FieldError, Path,
    json::{Json, Shown},
    names::{is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name},
};

/// Characters of a generated name that `generateName` may fill; five random ones follow.
pub const MAX_GENERATED_BASE: usize = 58;
/// Bytes that all annotations of an object may have together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Fields of `metadata`, with the types that the API server decodes. They are not part of a CustomResourceDefinition.
pub(super) fn schema() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let whole = json!({"type": "integer"});
    let time = json!({"type": "string", "format": "date-time"});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "type": "object",
        "properties": {
            "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
            "generation": whole, "deletionGracePeriodSeconds": whole, "creationTimestamp": time, "deletionTimestamp": time,
            "labels": texts, "annotations": texts,
            "finalizers": {"type": "array", "items": text},
            "managedFields": {"type": "array", "items": open},
            "ownerReferences": {"type": "array", "items": {
                "type": "object",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": text, "kind": text, "name": text, "uid": text,
                    "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
                },
            }},
        },
    })
}

/// Everything the API server has against an object's metadata. Values of a wrong type are left to the schema.
#[must_use]
pub fn check(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = object.at("metadata");
    let root = Path::root("metadata");
    let mut error =
        |path: &Path<'_>, kind, message: String| errors.push(FieldError { path: path.to_string(), kind, message, rule: "metadata" });
    name(metadata, &root, &mut error);
    if let Some(namespace) = metadata.at("namespace").filled()
        && !is_dns1123_label(namespace)
    {
        let message = format!(
            "{} is not a namespace: use at most 63 lower-case letters, digits and \"-\", with a letter or digit at both ends",
            Shown(namespace)
        );
        error(&root.field("namespace"), ErrorType::Invalid, message);
    }
    let labels = root.field("labels");
    for (key, value) in metadata.at("labels").entries() {
        if !is_qualified_name(key) {
            error(&labels.key(key), ErrorType::Invalid, not_a_key(key));
        }
        if value.text().is_some_and(|value| !is_label_value(value)) {
            let message = format!(
                "{} is not a label value: use at most 63 letters, digits, \"-\", \"_\" and \".\", with a letter or digit at both ends",
                Shown(value.text().unwrap_or_default())
            );
            error(&labels.key(key), ErrorType::Invalid, message);
        }
    }
    let annotations = root.field("annotations");
    let mut size = 0;
    for (key, value) in metadata.at("annotations").entries() {
        // Annotation keys may have upper-case letters in their prefix, too.
        if !is_qualified_name(&key.to_lowercase()) {
            error(&annotations.key(key), ErrorType::Invalid, not_a_key(key));
        }
        size += key.len() + value.text().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        error(&annotations, ErrorType::TooLong, format!("all annotations together have {size} bytes: use at most {MAX_ANNOTATIONS}"));
    }
    let finalizers = root.field("finalizers");
    for (index, finalizer) in metadata.at("finalizers").items().iter().enumerate() {
        if finalizer.text().is_some_and(|finalizer| !is_qualified_name(finalizer)) {
            error(&finalizers.index(index), ErrorType::Invalid, not_a_key(finalizer.text().unwrap_or_default()));
        }
    }
    errors
}

fn name(metadata: &Value, root: &Path<'_>, error: &mut impl FnMut(&Path<'_>, ErrorType, String)) {
    let (path, name, shown) = match (metadata.at("name").filled(), metadata.at("generateName").filled()) {
        (Some(name), _) => ("name", name.to_owned(), name),
        (None, Some(base)) => ("generateName", generated_name(base), base),
        (None, None) => {
            return error(&root.field("name"), ErrorType::Required, "a name (or generateName) is required, and missing".to_owned());
        }
    };
    if !is_dns1123_subdomain(&name) {
        let message = format!(
            "{} cannot be a name: use at most 253 lower-case letters, digits, \"-\" and \".\", with a letter or digit at both ends",
            Shown(shown)
        );
        error(&root.field(path), ErrorType::Invalid, message);
    }
}

/// A name as the API server makes it from `generateName`; the random part is shown as `x`.
#[must_use]
pub fn generated_name(base: &str) -> String {
    let kept = base.char_indices().nth(MAX_GENERATED_BASE).map_or(base, |(end, _)| base.get(..end).unwrap_or_default());
    format!("{kept}xxxxx")
}

fn not_a_key(key: &str) -> String {
    format!(
        "{} is not a key: write \"name\" or \"domain/name\", the name of at most 63 letters, digits, \"-\", \"_\" and \".\"",
        Shown(key)
    )
}
