//! Rules that only warn, from the file that the webhook reads, too (`--rules-file`): what the webhook lets in is worked on.
//!
//! The file is read when a stored object breaks a rule, which is seldom. So what it says now always counts, and nothing follows it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use shared::features::FeatureGates;
use shared::validation::{self, Kind, Report, RuleConfig};

/// Labels of a namespace.
pub type Labels = BTreeMap<String, String>;

/// The rules that only warn.
#[derive(Debug, Default)]
pub struct Softening {
    file: Option<PathBuf>,
    last: Mutex<Last>,
}

/// The content of the file that was last looked at, good or bad, and the last one that could be used.
#[derive(Clone, Debug, Default)]
struct Last {
    seen: String,
    rules: Arc<RuleConfig>,
}

/// What the rules have against a stored object.
#[derive(Debug)]
pub struct Judgement {
    /// The problems that count.
    pub report: Report,
    /// Whether the same object will be judged like this for ever. The file may change, and so may the labels of namespaces.
    pub lasting: bool,
}

impl Softening {
    /// Rules that only warn according to `file`; without one there are none.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, last: Mutex::default() }
    }

    /// Judges a stored object. `labels` tells the labels of a namespace and is asked only if they matter.
    pub async fn judge(&self, kind: Kind, object: &Value, features: &FeatureGates, labels: impl AsyncFnOnce(&str) -> Labels) -> Judgement {
        let report = validation::validate_stored(kind, object, features);
        if report.allowed() || self.file.is_none() {
            return Judgement { report, lasting: true };
        }
        let rules = self.rules().await;
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        let labels = if rules.reads_labels() { labels(namespace).await } else { Labels::new() };
        let softened = rules.for_namespace(namespace, &labels);
        let report = if softened.is_empty() { report } else { validation::validate_stored_softened(kind, object, features, softened) };
        Judgement { report, lasting: false }
    }

    /// What the file says. One that cannot be used changes nothing.
    async fn rules(&self) -> Arc<RuleConfig> {
        let Some(file) = &self.file else { return Arc::default() };
        let read = tokio::fs::read_to_string(file).await;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match read {
            Ok(text) => text,
            Err(error) => {
                tracing::error!("--rules-file {}: {error}; what was in force stays so", file.display());
                return last.rules.clone();
            }
        };
        if text != last.seen {
            match RuleConfig::parse(&text) {
                Ok(rules) => last.rules = Arc::new(rules),
                Err(error) => tracing::error!("--rules-file {}: {error}; what was in force stays so", file.display()),
            }
            last.seen = text;
        }
        last.rules.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// N-C-7: a rule of our own, which may only warn; the other of KubeRay's, which may not.
    fn cluster(parameter: &str, max_replicas: i32) -> Value {
        let template = json!({"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.53.0"}]}});
        let worker = json!({"groupName": "a", "minReplicas": 1, "maxReplicas": max_replicas, "rayStartParams": {}, "template": template});
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "x", "namespace": "team-a"},
            "spec": {"headGroupSpec": {"rayStartParams": {"num-cpus": parameter}, "template": template}, "workerGroupSpecs": [worker]},
        })
    }

    async fn judged(softening: &Softening, object: &Value, tier: &str) -> (Vec<&'static str>, bool) {
        let features = FeatureGates::default();
        let labels = async |namespace: &str| {
            assert_eq!(namespace, "team-a");
            Labels::from([("tier".to_owned(), tier.to_owned())])
        };
        let Judgement { report, lasting } = softening.judge(Kind::RayCluster, object, &features, labels).await;
        (report.errors.iter().map(|error| error.rule).collect(), lasting)
    }

    #[tokio::test]
    async fn the_file_that_the_webhook_reads_counts_here_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.yaml");
        let (good, ours, theirs) = (cluster("1", 2), cluster("two", 2), cluster("two", 0));
        let softening = Softening::new(Some(file.clone()));
        for (what, text, expected) in [
            ("no file yet", None, vec!["N-C-7"]),
            ("by name", Some("warnOnly: [{rules: [N-C-7], namespaces: {names: [team-*]}}]"), vec![]),
            ("another rule", Some("warnOnly: [{rules: [C-02]}]"), vec!["N-C-7"]),
            ("another namespace", Some("warnOnly: [{rules: ['*'], namespaces: {names: [team-b]}}]"), vec!["N-C-7"]),
            ("by label", Some("warnOnly: [{rules: ['*'], namespaces: {matchLabels: {tier: gpu}}}]"), vec![]),
            ("a mistake in it", Some("warnOnly: ["), vec![]),
            ("nothing", Some(""), vec!["N-C-7"]),
        ] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            assert_eq!(judged(&softening, &ours, "gpu").await, (expected, false), "{what}");
            assert_eq!(judged(&softening, &good, "gpu").await, (vec![], true), "{what}: an object in order needs no file");
        }
        std::fs::write(&file, "warnOnly: [{rules: ['*'], namespaces: {matchLabels: {tier: gpu}}}]").unwrap();
        assert_eq!(judged(&softening, &ours, "cpu").await.0, ["N-C-7"]);
        let (left, _) = judged(&softening, &theirs, "gpu").await;
        assert!(!left.is_empty() && !left.contains(&"N-C-7"), "KubeRay's own rules stay: {left:?}");
    }

    #[tokio::test]
    async fn without_a_file_everything_counts_and_nobody_is_asked() {
        let unasked = async |_: &str| panic!("nobody asks for labels");
        let judged = Softening::default().judge(Kind::RayCluster, &cluster("two", 2), &FeatureGates::default(), unasked).await;
        assert!(!judged.report.allowed() && judged.lasting);
    }
}
