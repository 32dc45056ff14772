//! The knowledge base's admission cases: every verdict, and every field path of a denial, as the head of each file says.
//!
//! The object goes the way it goes in a cluster: schema defaults, mutation, schema, rules. CEL rules are evaluated by the
//! webhook crate, not here: a denial that its header ascribes to the schema may go unnoticed by this test, never a wrong denial.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests

mod common;

use std::collections::BTreeMap;

use common::cases::{Answer, Header};
use serde_json::Value;
use shared::{
    defaults::{self, Settings},
    features::FeatureGates,
    schema::{NoRules, Schema},
    validation::{self, Kind, Request},
    yaml,
};

fn judge(documents: &[Value], header: &Header<'_>) -> Answer {
    let gates: FeatureGates = header.gates.parse().expect("gates of the header");
    let kind: Kind = documents[0]["kind"].as_str().expect("kind").parse().expect("a kind of ray.io");
    let schema = Schema::of(kind, "v1").expect("v1 is served");
    let (mut object, mut old) = (documents[documents.len() - 1].clone(), header.update.then(|| documents[0].clone()));
    schema.settle(&mut object);
    if let Some(old) = &mut old {
        schema.settle(old);
    }
    defaults::apply(kind, &mut object, old.as_ref(), &Settings::default());
    let mut errors: Vec<String> = schema.check(&object, old.as_ref(), &NoRules).into_iter().map(|error| error.path).collect();
    let mut request = Request::create(kind, &object, &gates);
    if let Some(old) = &old {
        request = request.update(old);
    }
    let report = validation::validate(&request);
    errors.extend(report.errors.into_iter().map(|error| error.path));
    let warnings = report.warnings.into_iter().map(|warning| warning.path).collect();
    Answer { denied: !errors.is_empty(), errors, warnings }
}

#[test]
fn every_case_gets_its_verdict() {
    let Some(directory) = common::shared_directory("cases/admission") else { return };
    let mut complaints = BTreeMap::new();
    let (mut count, mut left_to_rules) = (0, Vec::new());
    for (name, text) in common::yaml_texts(&directory) {
        count += 1;
        let header = Header::parse(&text);
        let documents: Vec<Value> = yaml::documents(&text).into_iter().map(|document| document.expect("YAML").value).collect();
        let answer = judge(&documents, &header);
        // What a CEL rule refuses is not seen here.
        if header.deny && header.schema && !answer.denied {
            left_to_rules.push(name);
        } else if let Some(complaint) = header.complaint(&answer) {
            complaints.insert(name, complaint);
        }
    }
    assert!(count >= 100, "only {count} cases found");
    assert!(complaints.is_empty(), "{} of {count} cases:\n{complaints:#?}", complaints.len());
    println!("{count} cases; left to CEL rules: {left_to_rules:?}");
    assert!(left_to_rules.len() <= 3, "{left_to_rules:?}");
}

#[test]
fn a_header_that_is_not_met_is_noticed() {
    let said = |errors: &[&str], warnings: &[&str]| {
        let paths = |list: &[&str]| list.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        Answer { denied: !errors.is_empty(), errors: paths(errors), warnings: paths(warnings) }
    };
    let deny = Header::parse("# expect: deny\n# path: a | b\n# path: c\nkind: x\n");
    assert_eq!((deny.deny, deny.paths.len()), (true, 2));
    assert_eq!(deny.complaint(&said(&["b", "c"], &[])), None);
    for errors in [&[][..], &["b"], &["b", "c", "d"]] {
        assert!(deny.complaint(&said(errors, &[])).is_some(), "{errors:?}");
    }
    let accept = Header::parse("# expect: accept\n# warn: w\n");
    assert_eq!(accept.complaint(&said(&[], &["w"])), None);
    assert!(accept.complaint(&said(&[], &[])).is_some());
    assert!(accept.complaint(&said(&["e"], &["w"])).is_some());
}
