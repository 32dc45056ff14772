//! Installs the CustomResourceDefinitions and keeps them current (`--manage-crds`). Done by the leader, at start.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client, Resource as _,
    api::{Patch, PatchParams},
    core::Request,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{api::FIELD_MANAGER, controller::with_causes};
use crate::settings::VERSION;

/// Annotation that says which version of the operator a definition comes from.
pub const VERSION_ANNOTATION: &str = "ray.io/crd-version";

/// What is read of an installed definition.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
struct Installed {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    status: InstalledStatus,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct InstalledStatus {
    stored_versions: Vec<String>,
}

/// Brings every definition to what this version of the operator knows. What cannot be done is logged and left as it is: the operator
/// then works with what is there.
pub async fn keep_current(client: &Client) {
    for definition in shared::crd::all() {
        let name = definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        match apply(client, &name, definition).await {
            Ok(true) => tracing::info!(definition = %name, "the definition is current"),
            Ok(false) => {}
            Err(error) => tracing::error!(definition = %name, "cannot bring the definition up to date: {error}"),
        }
    }
}

async fn apply(client: &Client, name: &str, mut definition: Value) -> Result<bool, String> {
    let text = |error: &dyn std::error::Error| with_causes(error);
    let path = CustomResourceDefinition::url_path(&(), None);
    let request = Request::new(&path).get(name, &kube::api::GetParams::default()).map_err(|error| text(&error))?;
    let installed = match client.request::<Installed>(request).await {
        Ok(installed) => Some(installed),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(text(&error)),
    };
    if let Some(reason) = installed.and_then(|installed| obstacle(&installed, &definition, VERSION)) {
        tracing::warn!(definition = %name, "the definition is left as it is: {reason}");
        return Ok(false);
    }
    if let Some(meta) = definition.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(VERSION_ANNOTATION.to_owned(), json!(VERSION));
        }
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let request = Request::new(&path).patch_metadata(name, &params, &Patch::Apply(definition)).map_err(|error| text(&error))?;
    // The answer repeats at least the names; its content does not matter.
    client.request_text(request).await.map(|_| true).map_err(|error| text(&error))
}

/// Why an installed definition must not be replaced, if it must not.
fn obstacle(installed: &Installed, definition: &Value, own: &str) -> Option<String> {
    let from = installed.metadata.annotations.as_ref().and_then(|annotations| annotations.get(VERSION_ANNOTATION));
    if let Some(from) = from.filter(|from| numbers(from) > numbers(own)) {
        return Some(format!("it comes from {from}, which is newer than {own}; a downgrade would drop fields"));
    }
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let known = |stored: &&String| versions.iter().any(|version| version.get("name").and_then(Value::as_str) == Some(stored.as_str()));
    let unknown = installed.status.stored_versions.iter().find(|stored| !known(stored))?;
    Some(format!("objects may be stored in version {unknown}, which this operator does not know"))
}

/// The numbers in a version, for comparing.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(version: Option<&str>, stored: &[&str]) -> Installed {
        let annotations = version.map(|version| json!({ VERSION_ANNOTATION: version }));
        serde_json::from_value(json!({ "metadata": { "annotations": annotations }, "status": { "storedVersions": stored } })).unwrap()
    }

    #[test]
    fn newer_definitions_and_unknown_stored_versions_are_left_alone() {
        let definition = json!({ "spec": { "versions": [{ "name": "v1" }, { "name": "v1alpha1" }] } });
        let reason = |version, stored: &[&str]| obstacle(&installed(version, stored), &definition, "rs-v0.9.1");
        assert_eq!(reason(None, &["v1"]), None);
        assert_eq!(reason(Some("rs-v0.9.1"), &["v1", "v1alpha1"]), None);
        assert_eq!(reason(Some("rs-v0.9.0"), &[]), None);
        assert!(reason(Some("rs-v0.10.0"), &["v1"]).unwrap().contains("newer"));
        assert!(reason(None, &["v1", "v2"]).unwrap().contains("v2"));
    }
}
