//! A small cluster that each test changes in the one place that it is about.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use operator::build::pod::{self, Replica};
use operator::settings::Settings;
use serde_json::{Value, json};
use shared::api::RayCluster;
use shared::features::{Feature, FeatureGates};

/// A change of the cluster's JSON, for tables of changes.
pub(crate) type Edit<'a> = &'a dyn Fn(&mut Value);

/// The cluster `demo` of namespace `ml` with one group `cpu`, after `edit`.
pub(crate) fn cluster(edit: impl FnOnce(&mut Value)) -> RayCluster {
    let container = |name: &str| {
        json!({
            "name": name,
            "image": "rayproject/ray:2.52.0",
            "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}},
        })
    };
    let mut value = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ml", "uid": "5f3c9e1a-0000-4000-8000-000000000001"},
        "spec": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container("ray-head")]}}},
            "workerGroupSpecs": [{
                "groupName": "cpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 5, "numOfHosts": 1,
                "rayStartParams": {},
                "template": {"spec": {"containers": [container("ray-worker")]}},
            }],
        },
    });
    edit(&mut value);
    serde_json::from_value(value).expect("a RayCluster")
}

/// The head group.
pub(crate) fn head_group(cluster: &mut Value) -> &mut Value {
    &mut cluster["spec"]["headGroupSpec"]
}

/// The first worker group.
pub(crate) fn worker_group(cluster: &mut Value) -> &mut Value {
    &mut cluster["spec"]["workerGroupSpecs"][0]
}

/// The Ray container of a group.
pub(crate) fn ray(group: &mut Value) -> &mut Value {
    &mut group["template"]["spec"]["containers"][0]
}

/// Sets limits of a group's Ray container, and nothing else of its resources.
pub(crate) fn limits(group: &mut Value, limits: &Value) {
    ray(group)["resources"] = json!({"limits": limits});
}

/// Default settings with some gates on.
pub(crate) fn gates(on: &[Feature]) -> Settings {
    Settings { features: on.iter().fold(FeatureGates::default(), |gates, gate| gates.with(*gate, true)), ..Settings::default() }
}

/// Default settings after `edit`.
pub(crate) fn settings(edit: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    edit(&mut settings);
    settings
}

/// The head Pod with default settings.
pub(crate) fn head(edit: impl FnOnce(&mut Value)) -> Pod {
    head_with(edit, &Settings::default())
}

/// The head Pod.
pub(crate) fn head_with(edit: impl FnOnce(&mut Value), settings: &Settings) -> Pod {
    pod::head(&cluster(edit), settings).expect("a head")
}

/// The first worker of the first group with default settings.
pub(crate) fn worker(edit: impl FnOnce(&mut Value)) -> Pod {
    worker_with(edit, &Settings::default())
}

/// The first worker of the first group.
pub(crate) fn worker_with(edit: impl FnOnce(&mut Value), settings: &Settings) -> Pod {
    let cluster = cluster(edit);
    let replica = Replica { index: 0, name: "cpu-bcdfg".to_owned(), host_index: 0 };
    pod::worker(&cluster, &cluster.spec.worker_groups()[0], Some(&replica), settings).expect("a worker")
}

/// What a test asks of a Pod.
pub(crate) trait PodExt {
    fn ray(&self) -> &Container;
    fn container(&self, name: &str) -> &Container;
    fn init(&self, name: &str) -> &Container;
    fn labels(&self) -> Value;
    fn annotations(&self) -> Value;
    /// The `ray start` command line.
    fn start(&self) -> &str;
    fn volume(&self, name: &str) -> Value;
}

impl PodExt for Pod {
    fn ray(&self) -> &Container {
        &self.spec.as_ref().unwrap().containers[0]
    }

    fn container(&self, name: &str) -> &Container {
        self.spec.as_ref().unwrap().containers.iter().find(|container| container.name == name).unwrap()
    }

    fn init(&self, name: &str) -> &Container {
        self.spec.as_ref().unwrap().init_containers.iter().flatten().find(|container| container.name == name).unwrap()
    }

    fn labels(&self) -> Value {
        json!(self.metadata.labels)
    }

    fn annotations(&self) -> Value {
        json!(self.metadata.annotations)
    }

    fn start(&self) -> &str {
        self.ray().value("KUBERAY_GEN_RAY_START_CMD").unwrap()
    }

    fn volume(&self, name: &str) -> Value {
        json!(self.spec.as_ref().unwrap().volumes.iter().flatten().find(|volume| volume.name == name))
    }
}

/// What a test asks of a container.
pub(crate) trait ContainerExt {
    /// The variable as Kubernetes resolves it: the last of its name.
    fn variable(&self, name: &str) -> Option<&EnvVar>;
    /// Its literal value.
    fn value(&self, name: &str) -> Option<&str>;
    /// How often it is set.
    fn count(&self, name: &str) -> usize;
    /// Names of all variables, in order.
    fn names(&self) -> Vec<&str>;
    /// Mounts as `volume:path`.
    fn mounted(&self) -> Vec<String>;
}

impl ContainerExt for Container {
    fn variable(&self, name: &str) -> Option<&EnvVar> {
        self.env.iter().flatten().rev().find(|variable| variable.name == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.variable(name)?.value.as_deref()
    }

    fn count(&self, name: &str) -> usize {
        self.env.iter().flatten().filter(|variable| variable.name == name).count()
    }

    fn names(&self) -> Vec<&str> {
        self.env.iter().flatten().map(|variable| variable.name.as_str()).collect()
    }

    fn mounted(&self) -> Vec<String> {
        self.volume_mounts.iter().flatten().map(|mount| format!("{}:{}", mount.name, mount.mount_path)).collect()
    }
}
