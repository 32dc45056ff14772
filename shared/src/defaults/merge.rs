//! Merging settings into metadata and Pod templates: whatever is there already wins, key by key and name by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::fleet::Settings;
use crate::validation::json::Json;

/// Where something is filled in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// A part that is made by this request: everything missing is filled in.
    New,
    /// A part that is stored already, as it is stored: only what it has is kept.
    Existing(&'a Value),
}

impl<'a> Place<'a> {
    pub(super) fn value(self) -> Option<&'a Value> {
        match self {
            Self::New => None,
            Self::Existing(old) => Some(old),
        }
    }

    /// A part below this one. A part that the stored object lacks altogether is new.
    pub(super) fn field(self, key: &str) -> Self {
        match self {
            Self::New => Self::New,
            Self::Existing(old) => Some(old.at(key)).filter(|value| value.is_set()).map_or(Self::New, Self::Existing),
        }
    }

    /// A part below this one, which is new if the stored object has the switch off.
    pub(super) fn field_if_set(self, key: &str, switch: &str) -> Self {
        match self {
            Self::New => Self::New,
            Self::Existing(old) if !old.at(switch).is_true() => Self::New,
            Self::Existing(old) => Self::Existing(old.at(key)),
        }
    }

    /// Whether a default may be filled in: the place is new, or the stored value was this default.
    pub(super) fn had(self, key: &str, default: Option<&Value>) -> bool {
        match self {
            Self::New => true,
            Self::Existing(old) => old.at(key).is_set() && Some(old.at(key)) == default,
        }
    }

    /// What to fill in for a key: the setting in a new place, the stored value in an existing one.
    fn choose(self, key: &str, setting: impl FnOnce() -> Value) -> Option<Value> {
        match self {
            Self::New => Some(setting()),
            Self::Existing(old) => Some(old.at(key)).filter(|value| value.is_set()).cloned(),
        }
    }
}

/// The Pods a template is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Head,
    Worker,
    Submitter,
}

/// Labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

impl Metadata {
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.labels.extend(more.labels.clone());
        self.annotations.extend(more.annotations.clone());
    }
}

/// Settings of Pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", from = "PodsFile")]
pub(super) struct Pods {
    pub(super) metadata: Metadata,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Value>,
    image_pull_secrets: Vec<Value>,
    priority_class_name: Option<String>,
    env: Vec<Value>,
}

/// As it stands in the file, where labels and annotations are not wrapped.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct PodsFile {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    image_pull_secrets: Vec<SecretName>,
    priority_class_name: Option<String>,
    env: Vec<Variable>,
}

/// Typed, so that a misspelled field is found when the file is read and not in every Pod.
#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Toleration {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    toleration_seconds: Option<i64>,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
struct SecretName {
    name: String,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Variable {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_from: Option<Map<String, Value>>,
}

impl From<PodsFile> for Pods {
    fn from(file: PodsFile) -> Self {
        fn values<T: serde::Serialize>(list: &[T]) -> Vec<Value> {
            // Plain structs of text always have a JSON form.
            list.iter().filter_map(|item| serde_json::to_value(item).ok()).collect()
        }
        Self {
            metadata: Metadata { labels: file.labels, annotations: file.annotations },
            node_selector: file.node_selector,
            tolerations: values(&file.tolerations),
            image_pull_secrets: values(&file.image_pull_secrets),
            priority_class_name: file.priority_class_name,
            env: values(&file.env),
        }
    }
}

impl Pods {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Puts later settings over these.
    pub(super) fn add(&mut self, more: &Self) {
        self.metadata.add(&more.metadata);
        self.node_selector.extend(more.node_selector.clone());
        replace_or_push(&mut self.tolerations, &more.tolerations, same_toleration);
        replace_or_push(&mut self.image_pull_secrets, &more.image_pull_secrets, same_name);
        replace_or_push(&mut self.env, &more.env, same_name);
        if more.priority_class_name.is_some() {
            self.priority_class_name.clone_from(&more.priority_class_name);
        }
    }

    /// The first value that Kubernetes would refuse in every Pod.
    pub(super) fn problem(&self) -> Option<String> {
        let both = |variable: &&Value| variable.at("value").is_set() && variable.at("valueFrom").is_set();
        let name = |variable: &Value| variable.at("name").text().unwrap_or_default().to_owned();
        if let Some(variable) = self.env.iter().find(both) {
            return Some(format!("the variable {} has both value and valueFrom", name(variable)));
        }
        if self.env.iter().any(|variable| name(variable).is_empty()) {
            return Some("a variable has no name".to_owned());
        }
        let operator_is_known =
            |toleration: &Value| matches!(toleration.at("operator").text(), None | Some("Exists" | "Equal" | "Lt" | "Gt"));
        let effect_is_known = |toleration: &Value| {
            matches!(toleration.at("effect").text(), None | Some("" | "NoSchedule" | "PreferNoSchedule" | "NoExecute"))
        };
        self.tolerations
            .iter()
            .find(|toleration| !operator_is_known(toleration) || !effect_is_known(toleration))
            .map(|toleration| format!("{toleration} has an operator or an effect that Kubernetes does not know"))
    }
}

fn same_name(one: &Value, other: &Value) -> bool {
    one.at("name") == other.at("name")
}

/// Tolerations of the same taint.
fn same_toleration(one: &Value, other: &Value) -> bool {
    let taint = |toleration: &Value| (toleration.at("key").clone(), toleration.at("effect").clone());
    taint(one) == taint(other)
}

fn replace_or_push(own: &mut Vec<Value>, more: &[Value], same: fn(&Value, &Value) -> bool) {
    for value in more {
        own.retain(|known| !same(known, value));
        own.push(value.clone());
    }
}

/// Labels and annotations of the object itself.
pub(super) fn metadata(object: &mut Value, settings: &Metadata, old: Place<'_>) {
    fill_metadata(object, settings, old.value().map_or(Place::New, |old| Place::Existing(old.at("metadata"))));
}

/// Fills labels and annotations below `owner.metadata`; `old` is the stored metadata.
fn fill_metadata(owner: &mut Value, settings: &Metadata, old: Place<'_>) {
    for (field, values) in [("labels", &settings.labels), ("annotations", &settings.annotations)] {
        let old = old.value().map_or(Place::New, |old| Place::Existing(old.at(field)));
        let missing = missing_entries(owner.at("metadata").at(field), values, old);
        if let Some(map) = missing.map(|missing| (missing, child(owner, "metadata").and_then(|metadata| child(metadata, field)))) {
            extend(map);
        }
    }
}

fn missing_entries(present: &Value, values: &BTreeMap<String, String>, old: Place<'_>) -> Option<Vec<(String, Value)>> {
    let missing: Vec<_> = values
        .iter()
        .filter(|(key, _)| !present.at(key).is_set())
        .filter_map(|(key, value)| Some((key.clone(), old.choose(key, || Value::from(value.as_str()))?)))
        .collect();
    (!missing.is_empty()).then_some(missing)
}

fn extend((missing, target): (Vec<(String, Value)>, Option<&mut Value>)) {
    if let Some(map) = target.and_then(Value::as_object_mut) {
        map.extend(missing);
    }
}

/// The map at `key`, made if it is missing; `None` if something else is there.
fn child<'a>(parent: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let slot = parent.as_object_mut()?.entry(key.to_owned()).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.is_object().then_some(slot)
}

/// Fills the settings for a role into the Pod template at `key`; `old` is the part that holds the stored template, or for a
/// submitter the stored template itself.
pub(super) fn template(owner: &mut Value, key: &str, fleet: &Settings, role: Role, old: Place<'_>) {
    if !fleet.shapes(role) || !owner.at(key).is_object() {
        return;
    }
    let old = match (role, old) {
        (Role::Submitter, old) => old,
        (_, old) => old.field(key),
    };
    let Some(template) = owner.get_mut(key) else { return };
    for settings in fleet.pods(role) {
        if !settings.is_empty() {
            fill_template(template, settings, old);
        }
    }
}

fn fill_template(template: &mut Value, settings: &Pods, old: Place<'_>) {
    fill_metadata(template, &settings.metadata, old.value().map_or(Place::New, |old| Place::Existing(old.at("metadata"))));
    let old = old.value().map_or(Place::New, |old| Place::Existing(old.at("spec")));
    let Some(pod) = template.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let selector = old.value().map_or(Place::New, |old| Place::Existing(old.at("nodeSelector")));
    if let Some(missing) = missing_entries(pod.at("nodeSelector"), &settings.node_selector, selector) {
        extend((missing, child(pod, "nodeSelector")));
    }
    if let Some(class) = &settings.priority_class_name
        && !pod.at("priorityClassName").is_set()
        && !pod.at("priority").is_set()
        && let Some(class) = old.choose("priorityClassName", || Value::from(class.as_str()))
        && let Some(pod) = pod.as_object_mut()
    {
        pod.insert("priorityClassName".to_owned(), class);
    }
    fill_list(pod, "tolerations", &settings.tolerations, old, same_toleration);
    fill_list(pod, "imagePullSecrets", &settings.image_pull_secrets, old, same_name);
    let old_container = old.value().map_or(Place::New, |old| Place::Existing(old.at("containers").first()));
    if let Some(container) = pod.get_mut("containers").and_then(Value::as_array_mut).and_then(|list| list.first_mut()) {
        fill_list(container, "env", &settings.env, old_container, same_name);
    }
}

/// Appends the elements that are missing from the list at `key`.
fn fill_list(owner: &mut Value, key: &str, settings: &[Value], old: Place<'_>, same: fn(&Value, &Value) -> bool) {
    let present = owner.at(key);
    if present.is_set() && !present.is_array() {
        return;
    }
    let stored = |wanted: &Value| match old {
        Place::New => Some(wanted.clone()),
        Place::Existing(old) => old.at(key).items().iter().find(|item| same(item, wanted)).cloned(),
    };
    let missing: Vec<Value> =
        settings.iter().filter(|wanted| !present.items().iter().any(|item| same(item, wanted))).filter_map(stored).collect();
    if missing.is_empty() {
        return;
    }
    let Some(owner) = owner.as_object_mut() else { return };
    let slot = owner.entry(key.to_owned()).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    if let Some(list) = slot.as_array_mut() {
        list.extend(missing);
    }
}

/// Fills `owner.section.key` if it is missing; `old` is the stored section.
pub(super) fn field(owner: &mut Value, section: &str, key: &str, value: &Value, old: Place<'_>) {
    if owner.at(section).at(key).is_set() {
        return;
    }
    if let Some(value) = old.choose(key, || value.clone())
        && let Some(section) = child(owner, section).and_then(Value::as_object_mut)
    {
        section.insert(key.to_owned(), value);
    }
}
