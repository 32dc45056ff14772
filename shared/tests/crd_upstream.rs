//! Our CustomResourceDefinitions against KubeRay's: nothing of theirs may be missing, and what is ours alone is listed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests are tests

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

/// Fields that KubeRay's definitions do not have.
const ADDITIONS: &[&str] = &[
    // Pod fields of a newer Kubernetes.
    ".bindMountOptions",
    ".httpGet.protocol",
    ".grpc.mode",
    ".evictionResponders",
    ".defaultUser",
    ".user",
    ".emptyDir.mode",
    // RayJobs have conditions here.
    "rayjobs .status.conditions",
    // RayCronJobs follow batch/v1 CronJobs.
    "raycronjobs .spec.concurrencyPolicy",
    "raycronjobs .spec.startingDeadlineSeconds",
    "raycronjobs .spec.successfulJobsHistoryLimit",
    "raycronjobs .spec.failedJobsHistoryLimit",
    "raycronjobs .status.active",
    "raycronjobs .status.conditions",
    "raycronjobs .status.lastSuccessfulTime",
    "raycronjobs .status.observedGeneration",
];

/// Where ours says something else on purpose: path, key, why.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("", "required", "an object without spec means nothing, and no controller could read it"),
    (
        ".headService.status.loadBalancer.ingress[].ports[]",
        "required",
        "`error` is optional in newer Kubernetes; nobody writes this status",
    ),
    (".status.lastUpdateTime", "nullable", "one type of status serves RayClusters and RayServices"),
    (".serveService.status.loadBalancer.ingress[].ports[]", "required", "as above"),
];

fn upstream() -> Option<PathBuf> {
    let shared =
        std::env::var_os("KUBERAY_SHARED").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let folder = shared.join("upstream/crds");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: {} is not there", folder.display());
    None
}

/// What a schema says about one field, by path. Descriptions and messages are free.
fn facts(schema: &Value) -> BTreeMap<String, BTreeMap<String, Value>> {
    fn walk(node: &Value, path: &str, into: &mut BTreeMap<String, BTreeMap<String, Value>>) {
        let Some(schema) = node.as_object() else { return };
        let mut said = BTreeMap::new();
        for (key, value) in schema {
            match key.as_str() {
                "properties" | "items" | "description" | "additionalProperties" => {}
                // `x-kubernetes-int-or-string` says the same in fewer bytes.
                "anyOf" if schema.contains_key("x-kubernetes-int-or-string") => {}
                "x-kubernetes-validations" => {
                    let rules: BTreeSet<String> = value.as_array().into_iter().flatten().map(|rule| rule["rule"].to_string()).collect();
                    said.insert(key.clone(), Value::from(rules.into_iter().collect::<Vec<_>>()));
                }
                "required" => {
                    let names: BTreeSet<String> = value.as_array().into_iter().flatten().map(ToString::to_string).collect();
                    said.insert(key.clone(), Value::from(names.into_iter().collect::<Vec<_>>()));
                }
                _ => {
                    said.insert(key.clone(), value.clone());
                }
            }
        }
        into.insert(path.to_owned(), said);
        for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(child, &format!("{path}.{name}"), into);
        }
        if let Some(items) = schema.get("items") {
            walk(items, &format!("{path}[]"), into);
        }
        if let Some(values) = schema.get("additionalProperties") {
            walk(values, &format!("{path}{{}}"), into);
        }
    }
    let mut into = BTreeMap::new();
    walk(schema, "", &mut into);
    into
}

fn version<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    definition["spec"]["versions"].as_array()?.iter().find(|version| version["name"] == name)
}

#[test]
fn nothing_of_upstream_is_missing() {
    let Some(folder) = upstream() else { return };
    let mut problems = Vec::new();
    let mut unused: BTreeSet<&str> = ADDITIONS.iter().copied().collect();
    for ours in shared::crd::all() {
        let plural = ours["spec"]["names"]["plural"].as_str().unwrap();
        let text = std::fs::read_to_string(folder.join(format!("ray.io_{plural}.yaml"))).unwrap();
        let theirs: Value = serde_saphyr::from_str(&text).unwrap();
        for field in ["group", "scope", "names"] {
            if ours["spec"][field] != theirs["spec"][field] {
                problems.push(format!("{plural}: spec.{field} is {}, upstream {}", ours["spec"][field], theirs["spec"][field]));
            }
        }
        for their_version in theirs["spec"]["versions"].as_array().unwrap() {
            let name = their_version["name"].as_str().unwrap();
            let Some(our_version) = version(&ours, name) else {
                problems.push(format!("{plural}: version {name} is missing"));
                continue;
            };
            for field in ["served", "storage", "subresources", "additionalPrinterColumns", "deprecated"] {
                if our_version[field] != their_version[field] && !their_version[field].is_null() {
                    problems.push(format!("{plural} {name}: {field} is {}, upstream {}", our_version[field], their_version[field]));
                }
            }
            let our_facts = facts(&our_version["schema"]["openAPIV3Schema"]);
            let their_facts = facts(&their_version["schema"]["openAPIV3Schema"]);
            for (path, their_said) in &their_facts {
                if name == "v1alpha1" {
                    // Embedded types are open there, and nothing is demanded of them.
                    continue;
                }
                let Some(our_said) = our_facts.get(path) else {
                    problems.push(format!("{plural} {name}: {path} is missing"));
                    continue;
                };
                let keys: BTreeSet<&String> = our_said.keys().chain(their_said.keys()).collect();
                for key in keys {
                    let intended = DIFFERENCES
                        .iter()
                        .any(|(at, what, _)| what == key && if at.is_empty() { path.is_empty() } else { path.ends_with(at) });
                    if our_said.get(key) != their_said.get(key) && !intended {
                        problems.push(format!(
                            "{plural} {name}: {path}: {key} is {:?}, upstream {:?}",
                            our_said.get(key),
                            their_said.get(key)
                        ));
                    }
                }
            }
            for path in our_facts.keys().filter(|path| name == "v1" && !their_facts.contains_key(*path)) {
                match ADDITIONS.iter().find(|addition| format!("{plural} {path}").contains(*addition)) {
                    Some(addition) => drop(unused.remove(addition)),
                    None => problems.push(format!("{plural} {name}: {path} is an addition that is not listed")),
                }
            }
        }
    }
    problems.extend(unused.into_iter().map(|addition| format!("{addition} is listed as an addition but is none")));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
