//! Every rule, on both sides of its boundary: tables of objects with the errors and warnings they must get, exactly.
//!
//! [`every_rule_has_a_case`] proves that no rule is without a case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests

mod build;
mod cluster;
mod cluster_options;
mod cronjob;
mod job;
mod job_deletion;
mod service;
mod softened;
mod updates;

use std::collections::BTreeSet;

use build::Case;
use shared::validation::RULES;

fn all() -> Vec<Case> {
    [cluster::cases(), cluster_options::cases(), job::cases(), job_deletion::cases(), service::cases(), cronjob::cases(), updates::cases()]
        .concat()
}

#[test]
fn every_case_gets_exactly_its_errors() {
    let complaints: Vec<_> = all().iter().filter_map(Case::complaint).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_rule_has_a_case() {
    let covered: BTreeSet<&str> = all().iter().flat_map(Case::rules).collect();
    let missing: Vec<_> = RULES.iter().map(|rule| rule.id).filter(|id| !covered.contains(id)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let unknown: Vec<_> = covered.iter().filter(|id| !RULES.iter().any(|rule| rule.id == **id)).collect();
    assert!(unknown.is_empty(), "not in the list of rules: {unknown:?}");
}

/// A message ends with what to do, behind a colon; it is half a sentence, and never quotes an endless value.
#[test]
fn messages_say_what_to_do_and_stay_short() {
    let mut complaints = BTreeSet::new();
    for error in all().iter().flat_map(|case| case.report().errors) {
        let remedy = error.message.split_once(": ").map_or("", |(_, remedy)| remedy);
        if remedy.len() < 5 || error.message.len() > 400 || error.message.ends_with('.') || error.message.contains('\n') {
            complaints.insert(format!("{}: {}", error.rule, error.message));
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}
