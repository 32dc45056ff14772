//! PodGroups of the two schedulers that know such a kind, as far as the operator has to do with them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use shared::labels::{OPERATOR_NAME, label};
use shared::quantity::Quantity as Amount;

use super::Demand;

/// Whose PodGroup it is.
pub trait Family: Clone + Copy + Debug + PartialEq + Send + Sync + 'static {
    /// API group.
    const GROUP: &'static str;
    /// Version.
    const VERSION: &'static str;
}

/// Volcano's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volcano;

/// That of scheduler-plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plugins;

impl Family for Volcano {
    const GROUP: &'static str = "scheduling.volcano.sh";
    const VERSION: &'static str = "v1beta1";
}

impl Family for Plugins {
    const GROUP: &'static str = "scheduling.x-k8s.io";
    const VERSION: &'static str = "v1alpha1";
}

/// A PodGroup: as it is wanted, or what was read of one.
#[derive(Clone, Debug, PartialEq)]
pub struct PodGroup<F> {
    /// Names, owners, and what was copied from the owner.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: Spec,
    /// Phase to begin with; never read, and never changed (BS-16).
    pub phase: Option<&'static str>,
    family: PhantomData<F>,
}

/// What a PodGroup asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Pods that start together or not at all.
    pub min_member: i32,
    /// What they ask for in all.
    pub min_resources: BTreeMap<String, Amount>,
    /// Queue (Volcano).
    pub queue: Option<String>,
    /// Priority class (Volcano).
    pub priority_class: Option<String>,
    /// How close together the Pods are to run (Volcano).
    pub topology: Option<Topology>,
}

/// How close together the Pods of a group are to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// `hard` or `soft`.
    pub mode: String,
    /// Highest tier that the group may span; the scheduler's own choice if absent.
    pub highest_tier: Option<i64>,
}

/// A PodGroup of either family.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    /// Volcano's.
    Volcano(PodGroup<Volcano>),
    /// That of scheduler-plugins.
    Plugins(PodGroup<Plugins>),
}

impl<F: Family> PodGroup<F> {
    /// A group of this name beside its owner.
    pub fn new(name: String, owner: &ObjectMeta, reference: OwnerReference, demand: Demand) -> Self {
        Self {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: owner.namespace.clone(),
                labels: Some([(label::K8S_CREATED_BY.to_owned(), OPERATOR_NAME.to_owned())].into()),
                owner_references: Some(vec![reference]),
                ..ObjectMeta::default()
            },
            spec: Spec { min_member: demand.members, min_resources: demand.resources, ..Spec::default() },
            phase: None,
            family: PhantomData,
        }
    }

    /// A merge patch that has `found` ask for as many Pods and resources as this one does; `None` if it does.
    pub fn resized(&self, found: &Self) -> Option<Value> {
        let mut changes = Map::new();
        if self.spec.min_member != found.spec.min_member {
            changes.insert("minMember".to_owned(), json!(self.spec.min_member));
        }
        let (wanted, known) = (&self.spec.min_resources, &found.spec.min_resources);
        let set = wanted.iter().filter(|(name, amount)| known.get(*name) != Some(*amount));
        let gone = known.keys().filter(|name| !wanted.contains_key(*name));
        let resources: Map<String, Value> = set
            .map(|(name, amount)| (name.clone(), json!(amount.to_string())))
            .chain(gone.map(|name| (name.clone(), Value::Null)))
            .collect();
        if !resources.is_empty() {
            changes.insert("minResources".to_owned(), Value::Object(resources));
        }
        (!changes.is_empty()).then(|| json!({ "spec": changes }))
    }

    /// A merge patch that gives `found` this one's queue, priority and topology, as far as this one has any (BS-17): what is not asked
    /// for is the scheduler's to fill in. `None` if there is nothing to change.
    pub fn moved(&self, found: &Self) -> Option<Value> {
        let mut changes = Map::new();
        let texts =
            [("queue", &self.spec.queue, &found.spec.queue), ("priorityClassName", &self.spec.priority_class, &found.spec.priority_class)];
        for (field, wanted, known) in texts {
            if let Some(wanted) = wanted.as_ref().filter(|wanted| Some(*wanted) != known.as_ref()) {
                changes.insert(field.to_owned(), json!(wanted));
            }
        }
        if let Some(wanted) = &self.spec.topology {
            let known = found.spec.topology.clone().unwrap_or_default();
            let tier_differs = wanted.highest_tier.is_some() && wanted.highest_tier != known.highest_tier;
            if wanted.mode != known.mode || tier_differs {
                changes.insert("networkTopology".to_owned(), wanted.as_json());
            }
        }
        (!changes.is_empty()).then(|| json!({ "spec": changes }))
    }
}

impl Topology {
    fn as_json(&self) -> Value {
        match self.highest_tier {
            Some(tier) => json!({ "mode": self.mode, "highestTierAllowed": tier }),
            None => json!({ "mode": self.mode }),
        }
    }
}

impl<F: Family> Resource for PodGroup<F> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Cow::Borrowed("PodGroup")
    }

    fn group((): &()) -> Cow<'_, str> {
        Cow::Borrowed(F::GROUP)
    }

    fn version((): &()) -> Cow<'_, str> {
        Cow::Borrowed(F::VERSION)
    }

    fn plural((): &()) -> Cow<'_, str> {
        Cow::Borrowed("podgroups")
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<F: Family> Serialize for PodGroup<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("PodGroup", 5)?;
        object.serialize_field("apiVersion", &format!("{}/{}", F::GROUP, F::VERSION))?;
        object.serialize_field("kind", "PodGroup")?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if let Some(phase) = self.phase {
            object.serialize_field("status", &json!({ "phase": phase }))?;
        }
        object.end()
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let resources: BTreeMap<&str, String> =
            self.min_resources.iter().map(|(name, amount)| (name.as_str(), amount.to_string())).collect();
        let mut spec = json!({ "minMember": self.min_member, "minResources": resources });
        let more = [
            ("queue", self.queue.as_ref().map(|queue| json!(queue))),
            ("priorityClassName", self.priority_class.as_ref().map(|class| json!(class))),
            ("networkTopology", self.topology.as_ref().map(Topology::as_json)),
        ];
        if let Some(spec) = spec.as_object_mut() {
            spec.extend(more.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))));
        }
        spec.serialize(serializer)
    }
}

impl<'de, F: Family> Deserialize<'de> for PodGroup<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            #[serde(default)]
            metadata: ObjectMeta,
            #[serde(default)]
            spec: Value,
        }
        let Read { metadata, spec } = Read::deserialize(deserializer)?;
        Ok(Self { metadata, spec: Spec::read(&spec), phase: None, family: PhantomData })
    }
}

impl Spec {
    /// Reads what can be read: a group that somebody has put something odd into is still ours to put right, and one object must not keep
    /// all others from being seen.
    fn read(spec: &Value) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let amounts = spec.get("minResources").and_then(Value::as_object).into_iter().flatten();
        let topology = spec.get("networkTopology").filter(|topology| topology.is_object());
        Self {
            min_member: spec.get("minMember").and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok()).unwrap_or_default(),
            min_resources: amounts.map(|(name, amount)| (name.clone(), Amount::of_json(amount).unwrap_or_default())).collect(),
            queue: text(spec.get("queue")),
            priority_class: text(spec.get("priorityClassName")),
            topology: topology.map(|topology| Topology {
                mode: text(topology.get("mode")).unwrap_or_default(),
                highest_tier: topology.get("highestTierAllowed").and_then(Value::as_i64),
            }),
        }
    }
}
