//! Objects without any fault, and ways to give them one.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::validation::{self, Kind, Report, Request, Softened};

/// One row of a table.
#[derive(Clone)]
pub(crate) struct Case {
    kind: Kind,
    object: Value,
    old: Option<Value>,
    gates: &'static str,
    errors: Vec<(&'static str, String)>,
    warnings: Vec<(&'static str, String)>,
    quiet: Vec<&'static str>,
    stored: bool,
}

impl Case {
    pub(crate) fn of(kind: Kind, object: Value) -> Self {
        Self { kind, object, old: None, gates: "", errors: Vec::new(), warnings: Vec::new(), quiet: Vec::new(), stored: false }
    }

    /// Feature gates that differ from the defaults.
    pub(crate) fn gates(self, gates: &'static str) -> Self {
        Self { gates, ..self }
    }

    /// An UPDATE of this object.
    pub(crate) fn replaces(self, old: Value) -> Self {
        Self { old: Some(old), ..self }
    }

    /// Judged as the operator does it.
    pub(crate) fn stored(self) -> Self {
        Self { stored: true, ..self }
    }

    /// One of the errors it must get; a case without any must get none.
    pub(crate) fn denied(mut self, rule: &'static str, path: impl Into<String>) -> Self {
        self.errors.push((rule, path.into()));
        self
    }

    /// A warning it must get.
    pub(crate) fn warned(mut self, rule: &'static str, path: impl Into<String>) -> Self {
        self.warnings.push((rule, path.into()));
        self
    }

    /// A rule that must not warn of it.
    pub(crate) fn not_warned(mut self, rule: &'static str) -> Self {
        self.quiet.push(rule);
        self
    }

    pub(crate) fn report(&self) -> Report {
        self.report_softened(Softened::none())
    }

    pub(crate) fn report_softened(&self, softened: Softened) -> Report {
        let gates = self.gates.parse().expect("gates");
        if self.stored {
            return validation::validate_stored(self.kind, &self.object, &gates);
        }
        let mut request = Request::create(self.kind, &self.object, &gates).softened(softened);
        if let Some(old) = &self.old {
            request = request.update(old);
        }
        validation::validate(&request)
    }

    pub(crate) fn complaint(&self) -> Option<String> {
        let report = self.report();
        let found: BTreeSet<(&str, &str)> = report.errors.iter().map(|error| (error.rule, error.path.as_str())).collect();
        let wanted: BTreeSet<(&str, &str)> = self.errors.iter().map(|(rule, path)| (*rule, path.as_str())).collect();
        let advice: BTreeSet<(&str, &str)> = report.warnings.iter().map(|warning| (warning.rule, warning.path.as_str())).collect();
        let missing: Vec<_> = self.warnings.iter().filter(|(rule, path)| !advice.contains(&(*rule, path.as_str()))).collect();
        let noise: Vec<_> = report.warnings.iter().filter(|warning| self.quiet.contains(&warning.rule)).collect();
        let twice = report.errors.len() != found.len();
        (found != wanted || !missing.is_empty() || !noise.is_empty() || twice)
            .then(|| format!("{}\n  wanted {wanted:?} {missing:?}\n  found  {:#?}\n  advice {advice:?}", self.object, report.errors))
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static str> {
        self.errors.iter().chain(&self.warnings).map(|(rule, _)| *rule)
    }
}

pub(crate) fn merged(mut base: Value, patch: &Value) -> Value {
    json_patch::merge(&mut base, patch);
    base
}

pub(crate) fn container(patch: &Value) -> Value {
    let resources = json!({"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}});
    merged(json!({"name": "ray", "image": "rayproject/ray:2.53.0", "resources": resources}), patch)
}

/// A Pod template whose Ray container is patched.
pub(crate) fn template(patch: &Value) -> Value {
    json!({"spec": {"containers": [container(patch)]}})
}

pub(crate) fn group(name: &str, patch: &Value) -> Value {
    let base = json!({"groupName": name, "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {}, "template": template(&json!({}))});
    merged(base, patch)
}

/// A cluster spec.
pub(crate) fn spec(patch: &Value) -> Value {
    let head = json!({"rayStartParams": {}, "template": template(&json!({}))});
    merged(json!({"rayVersion": "2.53.0", "headGroupSpec": head, "workerGroupSpecs": [group("a", &json!({}))]}), patch)
}

pub(crate) fn object(kind: Kind, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "ray.io/v1", "kind": kind.as_str(), "metadata": {"name": name, "namespace": "ns"}, "spec": spec})
}

pub(crate) fn cluster_object(patch: &Value) -> Value {
    object(Kind::RayCluster, "c", &spec(patch))
}

pub(crate) fn job_spec(patch: &Value) -> Value {
    merged(json!({"entrypoint": "python main.py", "rayClusterSpec": spec(&json!({}))}), patch)
}

pub(crate) fn job_object(patch: &Value) -> Value {
    object(Kind::RayJob, "j", &job_spec(patch))
}

pub(crate) fn service_object(patch: &Value) -> Value {
    let config = "applications:\n- name: a\n  route_prefix: /a\n  import_path: m:a\n";
    object(Kind::RayService, "s", &merged(json!({"serveConfigV2": config, "rayClusterConfig": spec(&json!({}))}), patch))
}

pub(crate) fn cron_object(patch: &Value) -> Value {
    let template = job_spec(&json!({"shutdownAfterJobFinishes": true}));
    object(Kind::RayCronJob, "k", &merged(json!({"schedule": "30 4 * * *", "jobTemplate": template}), patch))
}

pub(crate) fn cluster(patch: &Value) -> Case {
    Case::of(Kind::RayCluster, cluster_object(patch))
}

/// A cluster with a patched head group.
pub(crate) fn head(patch: &Value) -> Case {
    cluster(&json!({"headGroupSpec": patch}))
}

/// A cluster with a patched head container.
pub(crate) fn head_container(patch: &Value) -> Case {
    head(&json!({"template": template(patch)}))
}

/// A cluster with these worker groups.
pub(crate) fn groups(groups: &[Value]) -> Case {
    cluster(&json!({"workerGroupSpecs": groups}))
}

/// A cluster with one patched worker group.
pub(crate) fn worker(patch: &Value) -> Case {
    groups(&[group("a", patch)])
}

pub(crate) fn job(patch: &Value) -> Case {
    Case::of(Kind::RayJob, job_object(patch))
}

pub(crate) fn service(patch: &Value) -> Case {
    Case::of(Kind::RayService, service_object(patch))
}

pub(crate) fn cron(patch: &Value) -> Case {
    Case::of(Kind::RayCronJob, cron_object(patch)).gates("RayCronJob=true")
}

pub(crate) fn env(name: &str, value: &str) -> Value {
    json!({"env": [{"name": name, "value": value}]})
}

/// The object under another name.
pub(crate) fn named(kind: Kind, name: &str) -> Case {
    let base = match kind {
        Kind::RayCluster => cluster_object(&json!({})),
        Kind::RayJob => job_object(&json!({})),
        Kind::RayService => service_object(&json!({})),
        Kind::RayCronJob => cron_object(&json!({})),
    };
    Case::of(kind, merged(base, &json!({"metadata": {"name": name}})))
}

pub(crate) const HEAD: &str = "spec.headGroupSpec";
pub(crate) const HEAD_BOX: &str = "spec.headGroupSpec.template.spec.containers[0]";
pub(crate) const GROUP: &str = "spec.workerGroupSpecs[0]";
pub(crate) const GROUP_BOX: &str = "spec.workerGroupSpecs[0].template.spec.containers[0]";

/// `below(HEAD, "labels[a]")` is `spec.headGroupSpec.labels[a]`.
pub(crate) fn below(base: &str, path: &str) -> String {
    format!("{base}.{path}")
}
