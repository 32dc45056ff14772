//! The knowledge base's admission cases: every verdict, and every field path of a denial, as the head of each file says.
//!
//! The object goes the way it goes in a cluster: schema defaults, mutation, schema, rules. CEL rules are evaluated by the
//! webhook crate, not here: a denial that its header ascribes to the schema may go unnoticed by this test, never a wrong denial.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests

mod common;

use std::collections::BTreeMap;

use serde_json::Value;
use shared::{
    defaults::{self, Settings},
    features::FeatureGates,
    schema::{NoRules, Schema},
    validation::{self, Kind, Request},
    yaml,
};

#[derive(Debug, Default)]
struct Header {
    deny: bool,
    /// One entry an error, each with the paths that are equally good.
    paths: Vec<Vec<String>>,
    warnings: Vec<String>,
    gates: String,
    update: bool,
    schema: bool,
}

fn header(text: &str) -> Header {
    let mut header = Header::default();
    for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
        let (key, value) = line.split_once(": ").expect("header lines are `# key: value`");
        match key {
            "expect" => header.deny = value == "deny",
            "path" => header.paths.push(value.split(" | ").map(str::to_owned).collect()),
            "warn" => header.warnings.push(value.to_owned()),
            "gates" => header.gates = value.to_owned(),
            "operation" => header.update = value == "UPDATE",
            "rule" => header.schema = value.contains("schema"),
            _ => {}
        }
    }
    header
}

/// Paths of errors, and of warnings.
fn judge(documents: &[Value], header: &Header) -> (Vec<String>, Vec<String>) {
    let gates: FeatureGates = header.gates.parse().expect("gates of the header");
    let kind: Kind = documents[0]["kind"].as_str().expect("kind").parse().expect("a kind of ray.io");
    let schema = Schema::of(kind, "v1").expect("v1 is served");
    let (mut object, mut old) = (documents[documents.len() - 1].clone(), header.update.then(|| documents[0].clone()));
    schema.settle(&mut object);
    if let Some(old) = &mut old {
        schema.settle(old);
    }
    defaults::apply(kind, &mut object, old.as_ref(), &Settings::default());
    let mut paths: Vec<String> = schema.check(&object, old.as_ref(), &NoRules).into_iter().map(|error| error.path).collect();
    let mut request = Request::create(kind, &object, &gates);
    if let Some(old) = &old {
        request = request.update(old);
    }
    let report = validation::validate(&request);
    paths.extend(report.errors.into_iter().map(|error| error.path));
    (paths, report.warnings.into_iter().map(|warning| warning.path).collect())
}

/// What is wrong with the answer, if anything. A denial by a CEL rule of the schema is not seen here.
fn complaint(header: &Header, errors: &[String], warnings: &[String]) -> Option<String> {
    if !header.deny {
        if !errors.is_empty() {
            return Some(format!("denied at {errors:?}"));
        }
        let missing: Vec<_> = header.warnings.iter().filter(|path| !warnings.contains(path)).collect();
        return (!missing.is_empty()).then(|| format!("no warning at {missing:?}, only at {warnings:?}"));
    }
    let found = |paths: &Vec<String>| paths.iter().any(|path| errors.contains(path));
    let missing: Vec<_> = header.paths.iter().filter(|paths| !found(paths)).collect();
    if !missing.is_empty() {
        return (!(header.schema && errors.is_empty())).then(|| format!("no error at {missing:?}, only at {errors:?}"));
    }
    let extra: Vec<_> = errors.iter().filter(|path| !header.paths.iter().flatten().any(|wanted| wanted == *path)).collect();
    (!extra.is_empty()).then(|| format!("more errors than the header has: {extra:?}"))
}

#[test]
fn every_case_gets_its_verdict() {
    let Some(directory) = common::shared_directory("cases/admission") else { return };
    let mut complaints = BTreeMap::new();
    let (mut count, mut left_to_rules) = (0, Vec::new());
    for file in common::yaml_files(&directory) {
        let text = std::fs::read_to_string(&file).expect("a readable case");
        let header = header(&text);
        let documents: Vec<Value> = yaml::documents(&text).into_iter().map(|document| document.expect("YAML").value).collect();
        let (errors, warnings) = judge(&documents, &header);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if header.deny && errors.is_empty() && header.schema {
            left_to_rules.push(name.clone());
        }
        if let Some(complaint) = complaint(&header, &errors, &warnings) {
            complaints.insert(name, complaint);
        }
        count += 1;
    }
    assert!(count >= 100, "only {count} cases found");
    assert!(complaints.is_empty(), "{} of {count} cases:\n{complaints:#?}", complaints.len());
    println!("{count} cases; left to CEL rules: {left_to_rules:?}");
    assert!(left_to_rules.len() <= 3, "{left_to_rules:?}");
}

#[test]
fn a_header_that_is_not_met_is_noticed() {
    let deny = header("# expect: deny\n# path: a | b\n# path: c\nkind: x\n");
    assert_eq!((deny.deny, deny.paths.len()), (true, 2));
    let paths = |list: &[&str]| list.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    assert_eq!(complaint(&deny, &paths(&["b", "c"]), &[]), None);
    assert!(complaint(&deny, &paths(&["b"]), &[]).is_some());
    assert!(complaint(&deny, &paths(&["b", "c", "d"]), &[]).is_some());
    let accept = header("# expect: accept\n# warn: w\n");
    assert_eq!(complaint(&accept, &[], &paths(&["w"])), None);
    assert!(complaint(&accept, &[], &[]).is_some());
    assert!(complaint(&accept, &paths(&["e"]), &paths(&["w"])).is_some());
}
