//! The schema compiler against KubeRay's own definitions, which use more of the schema language than ours do, and its samples.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod common;

use std::collections::BTreeMap;

use serde_json::Value;
use shared::schema::{NoRules, Schema};
use shared::yaml;

#[test]
fn kuberays_definitions_are_understood_and_admit_its_samples() {
    let Some(definitions) = common::shared_directory("upstream/crds") else { return };
    let Some(samples) = common::shared_directory("upstream/samples") else { return };
    let mut schemas = BTreeMap::new();
    for file in common::yaml_files(&definitions) {
        let definition = yaml::parse_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let schema = Schema::compile(&version["schema"]["openAPIV3Schema"]);
            assert_eq!(schema.unsupported(), [], "{kind}");
            schemas.insert((version["name"].as_str().unwrap().to_owned(), kind.clone()), schema);
        }
    }
    assert_eq!(schemas.len(), 7);
    let mut objects = 0;
    for file in common::yaml_files(&samples) {
        for document in yaml::documents(&std::fs::read_to_string(&file).unwrap()) {
            let mut object = document.unwrap().value;
            let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
            let version = text("apiVersion").trim_start_matches("ray.io/").to_owned();
            let Some(schema) = schemas.get(&(version, text("kind"))) else { continue };
            // Its definitions leave metadata to the API server.
            object["metadata"] = Value::Object(serde_json::Map::new());
            let unknown: Vec<_> = schema.settle(&mut object).into_iter().map(|field| field.path).collect();
            assert_eq!(unknown, [""; 0], "{}", file.display());
            let errors: Vec<_> = schema.check(&object, None, &NoRules).into_iter().map(|error| error.path).collect();
            assert_eq!(errors, [""; 0], "{}", file.display());
            objects += 1;
        }
    }
    assert!(objects >= 85, "only {objects} objects found");
}
