//! Oracle: what KubeRay 1.7.0 made at a real API server for its own samples, compared field by field with what is built here.
//!
//! Every difference that is wanted stands in [`INTENDED`] with its reason; any other difference fails, and so does an entry that
//! explains nothing any more.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests are tests

mod compare;
mod served;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use operator::build::{self, auth, pod, pvc, rbac, resources, secret, service};
use operator::settings::{Settings, VERSION};
use serde_json::Value;
use shared::api::{RayCluster, RayJob, RayService};
use shared::features::{Feature, FeatureGates};
use shared::labels::{env, label, node_type};

use compare::Difference;

/// A difference that is wanted.
struct Intended {
    why: &'static str,
    explains: fn(&Difference) -> bool,
}

/// Every difference that is wanted.
const INTENDED: &[Intended] = &[
    Intended {
        why: "the operator reports a version of its own, so that Pods made by KubeRay are refreshed instead of replaced (RC-157)",
        explains: |d| d.path.ends_with("annotations.ray.io/kuberay-version") && d.is("v1.7.0", VERSION),
    },
    Intended {
        why: "the spec hash does not depend on the order of Go's struct fields (RC-157)",
        explains: |d| d.path.ends_with("annotations.ray.io/upgrade-strategy-recreate-hash") && d.ours_text().len() == 32,
    },
    Intended {
        why: "Ray's usage statistics get the operator's own version (RC-55.12)",
        explains: |d| {
            d.path.ends_with(&format!("env[{}].value", env::RAY_USAGE_STATS_EXTRA_TAGS))
                && d.theirs_text().replace("kuberay_version=v1.7.0;", &format!("kuberay_version={VERSION};")) == d.ours_text()
        },
    },
    Intended {
        why: "the recorded objects leave long generated scripts out",
        explains: |d| d.path.ends_with(".args[0]") && d.theirs_text() == "<generated script: see the spec>" && !d.ours_text().is_empty(),
    },
    Intended {
        why: "a plain value keeps the name of the namespace that the objects were recorded in",
        explains: |d| {
            d.path.ends_with(&format!("env[{}].value", env::RAY_CLUSTER_NAMESPACE))
                && d.ours_text() == "NAMESPACE"
                && d.theirs_text().strip_prefix('g').is_some_and(|number| number.parse::<u32>().is_ok())
        },
    },
    Intended {
        why: "headless and serve Services carry the cluster's label, so that the operator watches them and repairs them (RC-24)",
        explains: |d| {
            d.path == format!("Service.metadata.labels.{}", label::CLUSTER) && d.theirs_text().is_empty() && !d.ours_text().is_empty()
        },
    },
    Intended {
        why: "the command takes Redis credentials in quotes, so that they may hold what a shell would take apart (RC-83)",
        explains: |d| {
            let quoted = |text: &str, variable: &str| text.replace(&format!("=${variable} "), &format!("=\"${variable}\" "));
            let theirs = quoted(&quoted(d.theirs_text(), env::REDIS_PASSWORD), env::REDIS_USERNAME);
            theirs != d.theirs_text() && theirs == d.ours_text()
        },
    },
    Intended {
        why: "the recorded objects leave the generated token out",
        explains: |d| d.path == "Secret.stringData.auth_token" && d.theirs_text() == "<generated>" && d.ours_text().len() == 44,
    },
];

#[test]
fn builds_what_kuberay_builds() {
    let Some(upstream) = upstream() else {
        println!("skipped: KubeRay's recorded objects are not here");
        return;
    };
    let mut used = vec![0_usize; INTENDED.len()];
    let mut unexpected = Vec::new();
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    let mut files = 0;
    for path in yaml_files(&upstream.join("golden")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let golden = read(&path);
        let sample = read(&upstream.join("samples").join(&name));
        files += 1;
        for scene in scenes(&name, &golden, &sample) {
            for (kind, theirs, ours) in scene.pairs() {
                *compared.entry(kind.to_owned()).or_default() += 1;
                for difference in compare::differences(kind, &served::normal(kind, theirs), &served::normal(kind, &ours)) {
                    match INTENDED.iter().position(|intended| (intended.explains)(&difference)) {
                        Some(index) => used[index] += 1,
                        None => unexpected.push(format!("{name}: {difference}")),
                    }
                }
            }
        }
    }
    println!("{files} files; compared: {compared:?}");
    for (intended, count) in INTENDED.iter().zip(&used) {
        println!("{count:5} x {}", intended.why);
    }
    assert!(unexpected.is_empty(), "{} differences that nobody wanted:\n{}", unexpected.len(), unexpected.join("\n"));
    for (intended, count) in INTENDED.iter().zip(&used) {
        assert!(*count > 0, "explains nothing any more: {}", intended.why);
    }
    for kind in ["Pod", "Service", "ServiceAccount", "Role", "RoleBinding", "Secret", "PersistentVolumeClaim"] {
        assert!(compared.contains_key(kind), "no {kind} was compared");
    }
}

/// A cluster, what KubeRay made for it, and what it stands under.
struct Scene<'a> {
    cluster: RayCluster,
    settings: Settings,
    theirs: Vec<&'a Value>,
    owner: Option<Owner>,
}

enum Owner {
    Job(Box<RayJob>),
    Service(Box<RayService>),
}

/// The clusters of one file: those of the sample, and those that KubeRay made from its RayJobs and RayServices.
fn scenes<'a>(file: &str, golden: &'a [Value], sample: &[Value]) -> Vec<Scene<'a>> {
    let clusters = sample.iter().chain(golden).filter(|object| kind(object) == "RayCluster");
    let found: Vec<Scene<'a>> = clusters
        .map(|object| {
            let mut object = object.clone();
            object["metadata"]["namespace"] = "NAMESPACE".into();
            let name = name(&object).to_owned();
            let theirs: Vec<&Value> = golden
                .iter()
                .filter(|other| owned_by(other, "RayCluster", &name) || kind(other) == "Service" && owner_kind(other) != "RayCluster")
                .collect();
            // Redis keys are kept apart by the cluster's uid, which the API server gave.
            let annotation = |pod: &&Value| pod["metadata"]["annotations"]["ray.io/external-storage-namespace"].as_str().map(str::to_owned);
            object["metadata"]["uid"] = theirs.iter().find_map(annotation).unwrap_or_default().into();
            let owner = match owner_kind(&object) {
                "RayJob" => sample.iter().chain(golden).find(|o| kind(o) == "RayJob").map(|job| Owner::Job(Box::new(typed(job)))),
                "RayService" => sample.iter().find(|o| kind(o) == "RayService").map(|service| Owner::Service(Box::new(typed(service)))),
                _ => None,
            };
            Scene { cluster: typed(&object), settings: settings(), theirs, owner }
        })
        .collect();
    assert!(!found.is_empty(), "{file}: no cluster");
    found
}

impl<'a> Scene<'a> {
    /// Each of KubeRay's objects with ours.
    fn pairs(&self) -> Vec<(&'static str, &'a Value, Value)> {
        let mut pairs = Vec::new();
        let mut workers: BTreeMap<&str, i32> = BTreeMap::new();
        for theirs in &self.theirs {
            let (kind, ours) = match kind(theirs) {
                "Pod" => {
                    let group = text(theirs, &["metadata", "labels", label::GROUP]);
                    if text(theirs, &["metadata", "labels", label::NODE_TYPE]) == node_type::WORKER {
                        *workers.entry(group).or_default() += 1;
                    }
                    ("Pod", json(&self.pod(theirs, group)))
                }
                "Service" => ("Service", self.service(theirs)),
                "ServiceAccount" => ("ServiceAccount", json(&rbac::service_account(&self.cluster, &self.settings))),
                "Role" => ("Role", json(&rbac::role(&self.cluster, &self.settings))),
                "RoleBinding" => ("RoleBinding", json(&rbac::role_binding(&self.cluster, &self.settings))),
                "Secret" => {
                    assert!(secret::wanted(&self.cluster) && auth::uses_tokens(&self.cluster));
                    ("Secret", json(&secret::auth_token(&self.cluster, &[7; 32])))
                }
                "PersistentVolumeClaim" => ("PersistentVolumeClaim", json(&pvc::gcs(&self.cluster))),
                // Made by a controller of its own.
                "NetworkPolicy" => continue,
                other => panic!("a {other} made for a cluster that nothing here compares"),
            };
            pairs.push((kind, *theirs, ours));
        }
        // A Pod that admission refused (a ServiceAccount that the sample does not bring) is missing in the record, head and all.
        let all = self.theirs.iter().any(|object| kind(object) == "Pod");
        for group in self.cluster.spec.worker_groups().iter().filter(|_| all) {
            assert_eq!(
                workers.get(group.group_name.as_str()).copied().unwrap_or(0),
                resources::desired_pods(group),
                "workers of {}",
                group.group_name
            );
        }
        assert_eq!(self.theirs.iter().any(|object| kind(object) == "Role"), self.cluster.spec.autoscaling());
        pairs
    }

    fn pod(&self, theirs: &Value, group: &str) -> Pod {
        let labels = &theirs["metadata"]["labels"];
        if labels[label::NODE_TYPE] == node_type::HEAD {
            return pod::head(&self.cluster, &self.settings).unwrap();
        }
        let number = |key: &str| labels[key].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        let replica = pod::Replica {
            index: number(label::WORKER_GROUP_REPLICA_INDEX),
            name: labels[label::WORKER_GROUP_REPLICA_NAME].as_str().unwrap_or_default().to_owned(),
            host_index: number(label::REPLICA_HOST_INDEX),
        };
        let group = self.cluster.spec.worker_groups().iter().find(|known| known.group_name == group).unwrap();
        pod::worker(&self.cluster, group, Some(&replica), &self.settings).unwrap()
    }

    fn service(&self, theirs: &Value) -> Value {
        if owner_kind(theirs) != "RayCluster" {
            // The API server made the name of a sample without one.
            let name = theirs["metadata"]["ownerReferences"][0]["name"].as_str().map(str::to_owned);
            return match self.owner.as_ref().expect("a Service of an owner") {
                Owner::Job(job) => {
                    let mut job = job.clone();
                    job.metadata.name = name;
                    json(&service::head_for_owner(job.as_ref(), &self.cluster, &self.settings))
                }
                Owner::Service(owner) => {
                    let mut owner = owner.clone();
                    owner.metadata.name = name;
                    json(&service::head_for_owner(owner.as_ref(), &self.cluster, &self.settings))
                }
            };
        }
        if name(theirs) == build::head_service_name(&self.cluster) {
            return json(&service::head(&self.cluster, &self.settings));
        }
        assert!(service::needs_headless_workers(&self.cluster), "{}", name(theirs));
        json(&service::headless_workers(&self.cluster, &self.settings))
    }
}

/// The gates that were on when the objects were recorded.
fn settings() -> Settings {
    let features =
        Feature::ALL.iter().filter(|f| **f != Feature::KubernetesWAS).fold(FeatureGates::default(), |gates, f| gates.with(*f, true));
    Settings { features, ..Settings::default() }
}

fn upstream() -> Option<PathBuf> {
    let shared = std::env::var_os("KUBERAY_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"));
    let upstream = shared.join("upstream");
    upstream.join("golden").is_dir().then_some(upstream)
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    shared::yaml::documents(&text).into_iter().map(|document| document.unwrap().value).collect()
}

fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn json(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(value, |value, key| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

fn kind(object: &Value) -> &str {
    text(object, &["kind"])
}

fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

fn owner_kind(object: &Value) -> &str {
    object["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap_or_default()
}

fn owned_by(object: &Value, kind: &str, name: &str) -> bool {
    owner_kind(object) == kind && object["metadata"]["ownerReferences"][0]["name"] == name
}
