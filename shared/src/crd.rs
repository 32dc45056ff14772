//! CustomResourceDefinitions made from the types (RC-1, RJ-1, RCJ-1).
//!
//! [`generate`] makes them: kube-derive gives the raw definition; everything that Kubernetes itself adds to the schema of
//! embedded types (list keys, defaults, bounds) and that the Rust types cannot carry is put in here, in one place. That takes
//! a while, so `make crds` writes the result into the chart, and [`all`] reads it from there at build time; `make check` fails
//! where the two differ. `tests/crd_upstream.rs` compares the result with KubeRay's definitions.

mod embedded;

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::api::{RayCluster, RayCronJob, RayJob, RayService};

/// Most bytes that a definition may have as compact JSON: `kubectl apply` stores it in an annotation of at most 262,144 bytes.
pub const MAX_BYTES: usize = 250_000;

/// The chart's files. They hold JSON, which is YAML too, so that they need no YAML parser here.
const FILES: [(&str, &str); 4] = [
    ("RayCluster", include_str!("../../charts/kuberay-operator/crds/ray.io_rayclusters.yaml")),
    ("RayJob", include_str!("../../charts/kuberay-operator/crds/ray.io_rayjobs.yaml")),
    ("RayService", include_str!("../../charts/kuberay-operator/crds/ray.io_rayservices.yaml")),
    ("RayCronJob", include_str!("../../charts/kuberay-operator/crds/ray.io_raycronjobs.yaml")),
];

/// The definitions of the four kinds, ready to be applied.
pub fn all() -> Vec<Value> {
    FILES.iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect()
}

/// The definition of one kind. `None` for a kind that is not ours.
pub fn definition_of(kind: &str) -> Option<Value> {
    let (_, text) = FILES.iter().find(|(name, _)| *name == kind)?;
    serde_json::from_str(text).ok()
}

/// Schema of `kind` in version `v1`, as in the definition. `None` for a kind that is not ours.
pub fn schema(kind: &str) -> Option<Value> {
    schema_of(kind, "v1")
}

/// Schema of `kind` in a version. `None` when it is not served.
pub fn schema_of(kind: &str, version: &str) -> Option<Value> {
    let mut definition = definition_of(kind)?;
    let versions = definition.pointer_mut("/spec/versions")?.as_array_mut()?;
    let served = versions.iter_mut().find(|served| served.get("name").and_then(Value::as_str) == Some(version))?;
    served.pointer_mut("/schema/openAPIV3Schema").map(Value::take)
}

/// Makes the definitions from the types. Slow; [`all`] has the result.
pub fn generate() -> Vec<Value> {
    vec![
        finish(definition::<RayCluster>(), true),
        finish(definition::<RayJob>(), true),
        finish(definition::<RayService>(), true),
        finish(definition::<RayCronJob>(), false),
    ]
}

fn definition<K: CustomResourceExt>() -> Value {
    serde_json::to_value(K::crd()).unwrap_or_default()
}

fn finish(mut definition: Value, with_v1alpha1: bool) -> Value {
    let kind = definition.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(names) = definition.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
    if let Some(schema) = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        finish_root(schema);
    }
    if with_v1alpha1 {
        let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
        if let Some(versions) = versions
            && let Some(v1) = versions.first()
        {
            let v1alpha1 = v1alpha1(v1, &kind);
            versions.push(v1alpha1);
        }
    }
    definition
}

fn finish_root(schema: &mut Value) {
    let Some(root) = schema.as_object_mut() else { return };
    root.remove("title");
    let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, node) in properties.iter_mut() {
        own(node, name, name == "status");
    }
    properties.insert("apiVersion".into(), json!({"type": "string"}));
    properties.insert("kind".into(), json!({"type": "string"}));
    properties.insert("metadata".into(), json!({"type": "object"}));
}

/// Finishes a node of our own types and everything below it.
fn own(node: &mut Value, name: &str, in_status: bool) {
    let Some(schema) = node.as_object_mut() else { return };
    clean(schema, name);
    // Rust needs defaults to read an incomplete status; they are no business of the API server.
    if in_status && !matches!(name, "succeeded" | "failed") {
        schema.remove("default");
    }
    match name {
        "conditions" => return embedded::conditions(schema),
        "desiredCPU" | "desiredMemory" | "desiredGPU" | "desiredTPU" | "size" => embedded::quantity(schema),
        "minReplicas" | "maxReplicas" | "metadata" => {}
        _ if embedded::is_entry(name) && !is_string_map(schema) => return embedded::entry(schema),
        _ => {}
    }
    let has_replica_bounds = schema.get("properties").is_some_and(|properties| properties.get("minReplicas").is_some());
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut)
        && has_replica_bounds
    {
        // Defaulted before it is checked, so that the requirement only shows in the schema; kept for clients that read it.
        required.extend([json!("maxReplicas"), json!("minReplicas")]);
        required.sort_by_key(ToString::to_string);
    }
    for_each_child(schema, |child, child_name| own(child, child_name, in_status));
}

fn is_string_map(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties").and_then(|values| values.get("type")).and_then(Value::as_str) == Some("string")
}

/// Takes out what the schema generator adds and Kubernetes should not see.
fn clean(schema: &mut Map<String, Value>, name: &str) {
    schema.remove("title");
    // With `nullable` an explicit null is stored, and rejected for an enum; without it the API server drops nulls (rust: Option).
    if name != "lastUpdateTime" {
        schema.remove("nullable");
    }
    for bound in ["minimum", "maximum"] {
        // Whole numbers, as people write them.
        if let Some(value) = schema.get_mut(bound)
            && let Some(whole) = value.as_f64().filter(|number| number.fract() == 0.0)
        {
            #[allow(clippy::cast_possible_truncation)] // bounds of ours are small
            let whole = whole as i64;
            *value = whole.into();
        }
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint") || format == "double") {
        schema.remove("format");
    }
}

/// Calls `visit` with each schema directly below `schema`; items and values go by the name of their list or map.
fn for_each_child(schema: &mut Map<String, Value>, mut visit: impl FnMut(&mut Value, &str)) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, child) in properties.iter_mut() {
            visit(child, name);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(inner) {
            visit(child, "");
        }
    }
}

/// The deprecated version: the same fields, with embedded Kubernetes types left open so that the definition stays small.
fn v1alpha1(v1: &Value, kind: &str) -> Value {
    let mut version = v1.clone();
    if let Some(fields) = version.as_object_mut() {
        fields.insert("name".into(), "v1alpha1".into());
        fields.insert("storage".into(), false.into());
        fields.insert("deprecated".into(), true.into());
        fields.insert(
            "deprecationWarning".into(),
            format!("{kind} in ray.io/v1alpha1 is deprecated and will go away: write apiVersion: ray.io/v1, the fields are the same")
                .into(),
        );
    }
    if let Some(properties) = version.pointer_mut("/schema/openAPIV3Schema/properties").and_then(Value::as_object_mut) {
        properties.insert("status".into(), open());
        if let Some(spec) = properties.get_mut("spec") {
            loosen(spec, "spec");
        }
    }
    version
}

fn open() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn loosen(node: &mut Value, name: &str) {
    let Some(schema) = node.as_object_mut() else { return };
    for dropped in ["description", "x-kubernetes-validations"] {
        schema.remove(dropped);
    }
    if embedded::is_entry(name) && !is_string_map(schema) {
        *node = if schema.contains_key("items") { json!({"type": "array", "items": open()}) } else { open() };
        return;
    }
    for_each_child(schema, loosen);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_what_the_types_say() {
        assert!(generate() == all(), "the chart's definitions are stale: run `make crds`");
    }

    #[test]
    fn every_definition_fits_client_side_apply() {
        for definition in all() {
            let bytes = serde_json::to_string(&definition).unwrap().len();
            assert!(bytes < MAX_BYTES, "{}: {bytes} bytes", definition["metadata"]["name"]);
        }
    }

    #[test]
    fn own_fields_are_explained_and_embedded_types_are_not() {
        let schema = schema("RayJob").unwrap();
        let mode = schema.pointer("/properties/spec/properties/submissionMode/description").and_then(Value::as_str).unwrap();
        assert!(mode.contains("SidecarMode"));
        assert!(
            schema.pointer("/properties/spec/properties/submitterPodTemplate/properties/spec/properties/containers/description").is_none()
        );
    }

    #[test]
    fn nothing_of_the_generator_is_left() {
        fn walk(node: &Value, path: &str) {
            let Some(schema) = node.as_object() else { return };
            assert!(!schema.contains_key("nullable") || path.ends_with("lastUpdateTime"), "{path} is nullable");
            assert!(!schema.get("format").and_then(Value::as_str).unwrap_or_default().starts_with("uint"), "{path} is unsigned");
            for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                walk(child, &format!("{path}.{name}"));
            }
            for inner in ["items", "additionalProperties"] {
                walk(schema.get(inner).unwrap_or(&Value::Null), path);
            }
        }
        for definition in all() {
            for version in definition["spec"]["versions"].as_array().unwrap() {
                walk(&version["schema"]["openAPIV3Schema"], "");
            }
        }
    }
}
