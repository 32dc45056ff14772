//! Fleet defaults: what an organisation wants in every Ray object, by namespace.
//!
//! ```yaml
//! defaults:
//! - namespaces: {names: ["ml-*"], matchLabels: {tier: gpu}}   # every namespace when left out
//!   kinds: [RayJob, RayCluster]                               # every kind when left out
//!   object:                                                   # metadata of the object itself
//!     labels: {kueue.x-k8s.io/queue-name: shared}
//!     annotations: {}
//!   pods:                                                     # every Pod template: head, workers, submitter
//!     labels: {cost-center: "2204"}
//!     annotations: {}
//!     nodeSelector: {pool: ray}
//!     tolerations: [{key: ray, operator: Exists, effect: NoSchedule}]
//!     imagePullSecrets: [{name: registry}]
//!     priorityClassName: batch
//!     env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]  # of the Ray container, or the submitter
//!   head: {}                                                  # as pods, for the head alone; before pods
//!   workers: {}
//!   submitter: {}
//!   resources:                                                # of containers that the operator adds
//!     autoscaler: {requests: {cpu: 250m}, limits: {memory: 512Mi}}
//!     submitter: {}
//!     historyCollector: {}
//! ```
//!
//! All entries that fit are used; of two that give the same value the later one counts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::merge::{Metadata, Pods, Role};
use crate::{
    quantity::Quantity,
    selector::NamespaceSelector,
    validation::{Kind, names},
    yaml,
};

/// The configuration of an organisation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetDefaults {
    entries: Vec<Entry>,
}

/// Why a configuration cannot be used. A webhook that is given such a file keeps the one before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// It is not YAML, or not of the documented form.
    #[error("the fleet defaults cannot be read: {0}")]
    Form(String),
    /// A value that Kubernetes would refuse in every object.
    #[error("defaults[{entry}]: {message}")]
    Value {
        /// Position of the entry.
        entry: usize,
        /// What is wrong with it.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    defaults: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "EntryFile")]
struct Entry {
    namespaces: NamespaceSelector,
    kinds: Vec<String>,
    settings: Sections,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Sections {
    object: Metadata,
    pods: Pods,
    head: Pods,
    workers: Pods,
    submitter: Pods,
    resources: Injected,
}

/// An entry as it stands in the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EntryFile {
    namespaces: NamespaceSelector,
    kinds: Vec<String>,
    object: Metadata,
    pods: Pods,
    head: Pods,
    workers: Pods,
    submitter: Pods,
    resources: Injected,
}

impl From<EntryFile> for Entry {
    fn from(file: EntryFile) -> Self {
        let EntryFile { namespaces, kinds, object, pods, head, workers, submitter, resources } = file;
        Self { namespaces, kinds, settings: Sections { object, pods, head, workers, submitter, resources } }
    }
}

/// Resources of the containers that an operator adds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Injected {
    autoscaler: Option<Resources>,
    submitter: Option<Resources>,
    history_collector: Option<Resources>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resources {
    #[serde(default)]
    requests: Map<String, Value>,
    #[serde(default)]
    limits: Map<String, Value>,
}

impl Resources {
    fn to_json(&self) -> Value {
        let mut all = Map::new();
        for (section, values) in [("requests", &self.requests), ("limits", &self.limits)] {
            if !values.is_empty() {
                all.insert(section.to_owned(), Value::Object(values.clone()));
            }
        }
        Value::Object(all)
    }

    fn problem(&self) -> Option<String> {
        let mut values = self.requests.iter().chain(&self.limits);
        let wrong = values.find(|(_, value)| Quantity::of_json(value).is_none_or(Quantity::is_negative));
        wrong.map(|(name, value)| format!("{value} is not a quantity of {name}"))
    }
}

impl FleetDefaults {
    /// Reads the configuration from YAML or JSON text; empty text means no defaults.
    ///
    /// # Errors
    /// If it is not of the documented form, or holds a value that Kubernetes would refuse.
    pub fn parse(text: &str) -> Result<Self, FleetError> {
        Self::from_value(yaml::parse_str(text).map_err(|error| FleetError::Form(error.to_string()))?)
    }

    /// Reads the configuration from a part of a larger file.
    ///
    /// # Errors
    /// As [`FleetDefaults::parse`].
    pub fn from_value(value: Value) -> Result<Self, FleetError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let File { defaults: entries } = serde_json::from_value(value).map_err(|error| FleetError::Form(error.to_string()))?;
        for (index, entry) in entries.iter().enumerate() {
            if let Some(message) = entry.problem() {
                return Err(FleetError::Value { entry: index, message });
            }
        }
        Ok(Self { entries })
    }

    /// Whether there is nothing to fill in anywhere.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether any entry chooses namespaces by label, so that their labels must be known.
    pub fn reads_labels(&self) -> bool {
        self.entries.iter().any(|entry| entry.namespaces.reads_labels())
    }

    /// What is to be filled in in a namespace, for one kind. `labels` are those of the namespace.
    pub fn settings(&self, kind: Kind, namespace: &str, labels: &BTreeMap<String, String>) -> Settings {
        let mut all = Settings::default();
        for entry in &self.entries {
            let kind_fits = entry.kinds.is_empty() || entry.kinds.iter().any(|name| name == kind.as_str());
            if kind_fits && entry.namespaces.matches(namespace, labels) {
                all.add(&entry.settings);
            }
        }
        all
    }
}

impl Entry {
    /// The first value that could never be right.
    fn problem(&self) -> Option<String> {
        if let Some(unknown) = self.kinds.iter().find(|kind| kind.parse::<Kind>().is_err()) {
            return Some(format!("{unknown} is not a kind of ray.io"));
        }
        let sections = &self.settings;
        let metadata =
            [&sections.object, &sections.pods.metadata, &sections.head.metadata, &sections.workers.metadata, &sections.submitter.metadata];
        for (key, value) in metadata.iter().flat_map(|metadata| &metadata.labels) {
            if !names::is_qualified_name(key) || !names::is_label_value(value) {
                return Some(format!("{key}: {value} is not a label"));
            }
        }
        if let Some((key, _)) =
            metadata.iter().flat_map(|metadata| &metadata.annotations).find(|(key, _)| !names::is_qualified_name(&key.to_lowercase()))
        {
            return Some(format!("{key} cannot be the key of an annotation"));
        }
        let pods = [&sections.pods, &sections.head, &sections.workers, &sections.submitter];
        let injected = &sections.resources;
        let resources = [&injected.autoscaler, &injected.submitter, &injected.history_collector];
        pods.iter().find_map(|pods| pods.problem()).or_else(|| resources.into_iter().flatten().find_map(Resources::problem))
    }
}

/// The defaults that are in force for an object: those of its namespace and kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    sections: Sections,
    /// Resources as they are written into objects.
    autoscaler: Option<Value>,
    submitter: Option<Value>,
    collector: Option<Value>,
}

impl Settings {
    fn add(&mut self, more: &Sections) {
        self.sections.object.add(&more.object);
        let Sections { pods, head, workers, submitter, .. } = &mut self.sections;
        for (own, more) in [(pods, &more.pods), (head, &more.head), (workers, &more.workers), (submitter, &more.submitter)] {
            own.add(more);
        }
        let injected = &more.resources;
        for (own, more) in [
            (&mut self.autoscaler, &injected.autoscaler),
            (&mut self.submitter, &injected.submitter),
            (&mut self.collector, &injected.history_collector),
        ] {
            if let Some(more) = more {
                *own = Some(more.to_json());
            }
        }
    }

    pub(super) fn object(&self) -> Option<&Metadata> {
        Some(&self.sections.object).filter(|object| !object.is_empty())
    }

    /// The settings for a Pod template, those of its role before the general ones.
    pub(super) fn pods(&self, role: Role) -> [&Pods; 2] {
        let own = match role {
            Role::Head => &self.sections.head,
            Role::Worker => &self.sections.workers,
            Role::Submitter => &self.sections.submitter,
        };
        [own, &self.sections.pods]
    }

    pub(super) fn shapes(&self, role: Role) -> bool {
        self.pods(role).iter().any(|pods| !pods.is_empty())
    }

    pub(super) fn autoscaler_resources(&self) -> Option<&Value> {
        self.autoscaler.as_ref()
    }

    pub(super) fn submitter_resources(&self) -> Option<&Value> {
        self.submitter.as_ref()
    }

    pub(super) fn collector_resources(&self) -> Option<&Value> {
        self.collector.as_ref()
    }
}
