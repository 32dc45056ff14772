//! Upstream's sample manifests are admitted, with every feature gate on: what KubeRay shows to its users is right.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests

mod common;

use serde_json::Value;
use shared::{
    defaults::{self, Settings},
    features::FeatureGates,
    schema::{NoRules, Schema},
    validation::{self, Kind, Request},
    yaml,
};

/// Ray objects among the documents of a file.
fn objects(text: &str) -> Vec<(Kind, Value)> {
    let documents = yaml::documents(text).into_iter().map(|document| document.expect("YAML").value);
    documents.filter_map(|value| Some((value["kind"].as_str()?.parse().ok()?, value))).collect()
}

#[test]
fn all_samples_are_admitted() {
    let Some(directory) = common::shared_directory("upstream/samples") else { return };
    let gates: FeatureGates = "AllAlpha=true".parse().unwrap();
    let (mut complaints, mut advice, mut count) = (Vec::new(), 0, 0);
    for file in common::yaml_files(&directory) {
        let text = std::fs::read_to_string(&file).expect("a readable sample");
        for (kind, mut object) in objects(&text) {
            let name = format!("{} ({kind})", file.file_name().unwrap_or_default().to_string_lossy());
            let Some(schema) = Schema::of(kind, object["apiVersion"].as_str().unwrap_or_default().trim_start_matches("ray.io/")) else {
                complaints.push(format!("{name}: version not served"));
                continue;
            };
            schema.settle(&mut object);
            defaults::apply(kind, &mut object, None, &Settings::default());
            let once = object.clone();
            defaults::apply(kind, &mut object, None, &Settings::default());
            assert_eq!(once, object, "{name}: defaults are filled in once");
            complaints
                .extend(schema.check(&object, None, &NoRules).iter().map(|error| format!("{name}: {} {}", error.path, error.message)));
            let report = validation::validate(&Request::create(kind, &object, &gates));
            complaints.extend(report.errors.iter().map(|error| format!("{name}: {} {} [{}]", error.path, error.message, error.rule)));
            advice += report.warnings.len();
            for warning in &report.warnings {
                println!("{name}: {} {} [{}]", warning.path, warning.message, warning.rule);
            }
            count += 1;
        }
    }
    println!("{count} objects, {advice} warnings");
    assert!(count >= 80, "only {count} objects found");
    assert!(complaints.is_empty(), "{complaints:#?}");
    // Advice that nearly every good manifest gets is noise.
    assert!(advice <= 2 * count, "{advice} warnings on {count} objects");
}
