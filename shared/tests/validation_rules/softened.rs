//! Rules that the configuration turns into warnings.

use std::collections::BTreeMap;

use serde_json::json;
use shared::{
    features::FeatureGates,
    validation::{self, ErrorType, Kind, RuleConfig, render},
};

use crate::build::*;

#[test]
fn a_softened_rule_warns_and_the_others_still_refuse() {
    let case = groups(&[group("headgroup", &json!({"minReplicas": -1}))]);
    let config = RuleConfig::parse("warnOnly: [{rules: [C-02], namespaces: {names: [old]}}]").unwrap();
    let softened = config.for_namespace("old", &BTreeMap::new());
    let rules = |report: &shared::validation::Report| report.errors.iter().map(|error| error.rule).collect::<Vec<_>>();
    let report = case.report_softened(softened);
    assert_eq!(rules(&report), ["V-C-16"]);
    assert!(report.warnings.iter().any(|warning| warning.rule == "C-02" && warning.path == "spec.workerGroupSpecs[0].groupName"));
    assert_eq!(rules(&case.report_softened(config.for_namespace("new", &BTreeMap::new()))), ["C-02", "V-C-16"]);
}

#[test]
fn the_submitter_config_of_sidecar_mode_can_be_let_through() {
    let case = job(&json!({"submissionMode": "SidecarMode", "submitterConfig": {"backoffLimit": 5}})).gates("SidecarSubmitterRestart=true");
    let softened = RuleConfig::parse("warnOnly: [{rules: [V-J-29]}]").unwrap().for_namespace("x", &BTreeMap::new());
    assert!(!case.report().allowed());
    assert!(case.report_softened(softened).allowed());
}

#[test]
fn an_operator_can_be_as_lenient_as_the_webhook() {
    let object = cluster_object(&json!({"workerGroupSpecs": [group("headgroup", &json!({}))]}));
    let gates = FeatureGates::default();
    let softened = RuleConfig::parse("warnOnly: [{rules: ['*']}]").unwrap().for_namespace("x", &BTreeMap::new());
    assert!(!validation::validate_stored(Kind::RayCluster, &object, &gates).allowed());
    let report = validation::validate_stored_softened(Kind::RayCluster, &object, &gates, softened);
    assert!(report.allowed() && report.warnings.is_empty());
}

#[test]
fn the_number_of_errors_is_bounded_and_the_rest_is_counted() {
    let many: Vec<_> = (0..10_000).map(|index| group(&format!("g{index}"), &json!({"minReplicas": -1}))).collect();
    let report = groups(&many).report();
    assert!(report.errors.len() <= 500 && report.errors.len() + report.omitted == 10_000 && !report.allowed());
    let text = render(&report, 32);
    assert_eq!(text.lines().count(), 34);
    assert!(text.starts_with("10000 problems\n* ") && text.ends_with("… and 9968 more"), "{text}");
}

#[test]
fn kinds_and_error_types_have_the_names_of_the_api() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(kind.plural(), format!("{}s", kind.as_str().to_lowercase()));
    }
    assert!("Raycluster".parse::<Kind>().is_err());
    assert_eq!(ErrorType::Required.reason(), "FieldValueRequired");
    assert_eq!(ErrorType::NotSupported.reason(), "FieldValueNotSupported");
    assert_eq!(ErrorType::TypeInvalid.as_str(), "TypeInvalid");
}
