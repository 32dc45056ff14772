//! Both programs under exactly the chart's roles: nothing that they ask for is refused, and nothing is granted in vain.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

#[path = "chart_rbac/operator.rs"]
mod operator;
#[path = "chart_rbac/webhook.rs"]
mod webhook;

use std::collections::BTreeSet;

use api_tests::chart::Rendered;
use api_tests::rbac::{self, Audit, Permission};

/// The chart's objects for one namespace, under names of its own.
fn render(namespace: &str, values: &[&str]) -> Rendered {
    let name = format!(r#"fullnameOverride="{namespace}""#);
    let account = format!(r#"serviceAccount.name="{namespace}""#);
    let own = format!(r#"webhook.namespaceSelector={{"matchLabels":{{"kubernetes.io/metadata.name":"{namespace}"}}}}"#);
    let values = [name.as_str(), account.as_str(), own.as_str()].into_iter().chain(values.iter().copied());
    let arguments: Vec<&str> = values.flat_map(|value| ["--set-json", value]).collect();
    api_tests::chart::render("kuberay-operator", "ray", namespace, &arguments).unwrap()
}

fn assert_nothing_refused(audit: &Audit) {
    let refused: Vec<String> = audit.refused().unwrap().iter().map(|asked| asked.permission.to_string()).collect();
    assert!(refused.is_empty(), "without a right: {refused:?}");
}

/// Rights that may stay unused: verbs, resource, reason.
type Excuse = (&'static str, &'static str, &'static str);

/// Compares the rights that nobody used with those that are excused. A reason that is out of date is an error, too, unless it speaks of
/// chance: `chance` are rights that one run needs and the next does not.
fn assert_unused(rights: &BTreeSet<Permission>, audit: &Audit, excused: &[Excuse], chance: &[Excuse]) {
    let list = |excuses: &[Excuse]| -> BTreeSet<String> {
        excuses.iter().flat_map(|(verbs, resource, _)| verbs.split(' ').map(move |verb| format!("{verb} {resource}"))).collect()
    };
    let (excused, chance) = (list(excused), list(chance));
    let asked = audit.asked().unwrap();
    let unused: BTreeSet<String> = rbac::unused(rights, &asked).iter().map(|right| format!("{} {}", right.verb, kind(right))).collect();
    let unused: BTreeSet<String> = unused.difference(&chance).cloned().collect();
    assert_eq!(unused, excused, "left: granted and never used; right: excused");
}

fn kind(right: &Permission) -> String {
    if right.group.is_empty() { right.resource.clone() } else { format!("{}.{}", right.resource, right.group) }
}
