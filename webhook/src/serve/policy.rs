//! Settings that an organisation may change while the webhook runs: fleet defaults and rules that only warn, from two files.
//!
//! The files are read every few seconds and compared by content (a mounted ConfigMap is swapped by a symbolic link). A file that
//! cannot be used leaves what was in force before, and says so in the log and in a metric.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use prometheus_client::metrics::gauge::Gauge;
use shared::defaults::FleetDefaults;
use shared::validation::RuleConfig;
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

use super::metrics::Metrics;

/// How often the files are read.
const POLL: Duration = Duration::from_secs(10);
/// No ConfigMap is larger; a mistaken path must not fill the memory.
const LARGEST: u64 = 1 << 20;

/// What is in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    pub(super) fleet: Arc<FleetDefaults>,
    pub(super) rules: Arc<RuleConfig>,
}

impl Policy {
    /// Whether a decision may depend on the labels of a namespace.
    pub(super) fn reads_labels(&self) -> bool {
        self.fleet.reads_labels() || self.rules.reads_labels()
    }
}

/// The policy in force, shared by everything that asks for it.
#[derive(Debug, Default)]
pub(super) struct CurrentPolicy {
    policy: ArcSwap<Policy>,
    /// Wakes whoever has to do something when the policy changes.
    pub(super) changed: Notify,
}

impl CurrentPolicy {
    pub(super) fn get(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    pub(super) fn set(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
        self.changed.notify_one();
    }
}

/// A file whose content is followed.
struct Followed {
    flag: &'static str,
    path: PathBuf,
    /// The text that was last looked at, good or bad.
    seen: Option<Result<String, String>>,
    valid: Gauge,
}

impl Followed {
    /// The text if it differs from what the last call saw, or the error if that is new.
    async fn news(&mut self) -> Option<Result<String, String>> {
        let found = read(&self.path).await.map_err(|error| error.to_string());
        if self.seen.as_ref() == Some(&found) {
            return None;
        }
        self.seen = Some(found.clone());
        Some(found)
    }

    /// Takes what `parse` makes of new content; `None` if there is nothing new, or nothing usable.
    async fn take<T, E: ToString>(&mut self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<Arc<T>> {
        let parsed = self.news().await?.and_then(|text| parse(&text).map_err(|error| error.to_string()));
        let (flag, file) = (self.flag, self.path.display());
        match parsed {
            Ok(value) => {
                tracing::info!(flag, %file, "configuration loaded");
                self.valid.set(1);
                Some(Arc::new(value))
            }
            Err(error) => {
                tracing::error!(flag, %file, error, "configuration cannot be used; what was in force stays so");
                self.valid.set(0);
                None
            }
        }
    }
}

async fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    tokio::fs::File::open(path).await?.take(LARGEST).read_to_string(&mut text).await?;
    Ok(text)
}

/// The loop that keeps the policy in force equal to the files.
pub(super) struct PolicyFiles {
    defaults: Option<Followed>,
    rules: Option<Followed>,
    current: Arc<CurrentPolicy>,
}

impl PolicyFiles {
    /// Reads the files once. A file that is not there is an error; one that cannot be understood is only reported, so that a mistake
    /// in it never keeps the webhook, and with it every change in the cluster, from working.
    pub(super) async fn load(
        defaults: Option<&Path>,
        rules: Option<&Path>,
        metrics: &Metrics,
    ) -> anyhow::Result<(Self, Arc<CurrentPolicy>)> {
        let followed = |flag, path: Option<&Path>, name| {
            path.map(|path| Followed { flag, path: path.to_owned(), seen: None, valid: metrics.configuration_valid(name) })
        };
        let current = Arc::new(CurrentPolicy::default());
        let mut files = Self {
            defaults: followed("--defaults-file", defaults, "defaults"),
            rules: followed("--rules-file", rules, "rules"),
            current: current.clone(),
        };
        for file in files.defaults.iter().chain(&files.rules) {
            read(&file.path).await.with_context(|| format!("{} {}", file.flag, file.path.display()))?;
        }
        files.refresh().await;
        Ok((files, current))
    }

    /// Works until it is dropped.
    pub(super) async fn run(mut self) {
        if self.defaults.is_none() && self.rules.is_none() {
            return;
        }
        loop {
            tokio::time::sleep(POLL).await;
            self.refresh().await;
        }
    }

    async fn refresh(&mut self) {
        let (mut fleet, mut rules) = (None, None);
        if let Some(file) = &mut self.defaults {
            fleet = file.take(FleetDefaults::parse).await;
        }
        if let Some(file) = &mut self.rules {
            rules = file.take(RuleConfig::parse).await;
        }
        if fleet.is_some() || rules.is_some() {
            let before = self.current.get();
            self.current
                .set(Policy { fleet: fleet.unwrap_or_else(|| before.fleet.clone()), rules: rules.unwrap_or_else(|| before.rules.clone()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use certs::Status;
    use tokio::sync::watch;

    use super::*;

    #[tokio::test]
    async fn a_bad_file_keeps_what_was_in_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("defaults.yaml");
        let metrics = Metrics::new(watch::channel(Status::default()).1);
        let valid = |value: u8| metrics.text().contains(&format!(r#"kuberay_webhook_configuration_valid{{file="defaults"}} {value}"#));

        let missing = PolicyFiles::load(Some(&path), None, &metrics).await.err().expect("missing").to_string();
        assert!(missing.contains("--defaults-file") && missing.contains("defaults.yaml"), "{missing}");

        std::fs::write(&path, "defaults: {").expect("written");
        let (mut files, current) = PolicyFiles::load(Some(&path), None, &metrics).await.expect("a mistake in it is no reason not to start");
        assert!(current.get().fleet.is_empty() && valid(0));

        let good = "defaults: [{namespaces: {matchLabels: {tier: gpu}}, pods: {nodeSelector: {pool: ray}}}]";
        std::fs::write(&path, good).expect("written");
        files.refresh().await;
        assert!(current.get().reads_labels() && valid(1));

        let in_force = current.get();
        for bad in ["defaults: 7", "no: such\nkey: x", "\u{0}"] {
            std::fs::write(&path, bad).expect("written");
            files.refresh().await;
            assert!(Arc::ptr_eq(&in_force, &current.get()) && valid(0), "{bad}");
        }
        std::fs::remove_file(&path).expect("there");
        files.refresh().await;
        assert!(Arc::ptr_eq(&in_force, &current.get()), "a file that is gone changes nothing");

        std::fs::write(&path, "").expect("written");
        files.refresh().await;
        assert!(current.get().fleet.is_empty() && valid(1), "an empty file is a decision");
    }

    #[tokio::test]
    async fn rules_are_softened_by_their_own_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rules.yaml");
        std::fs::write(&path, "warnOnly: [{rules: [\"*\"], namespaces: {names: [\"dev-*\"]}}]").expect("written");
        let metrics = Metrics::new(watch::channel(Status::default()).1);
        let (_, current) = PolicyFiles::load(None, Some(&path), &metrics).await.expect("loaded");
        let policy = current.get();
        assert!(!policy.rules.for_namespace("dev-a", &Default::default()).is_empty());
        assert!(policy.rules.for_namespace("prod", &Default::default()).is_empty());
        assert!(!policy.reads_labels());
    }
}
