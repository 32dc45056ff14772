//! What the operator keeps of a Pod: its identity, its state, and the few facts of its spec that decisions rest on.
//!
//! Everything else is skipped while the API server's answer is read, so that a full Pod never exists in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Resource, ResourceExt as _};
use serde::{Deserialize, Deserializer, de};
use shared::labels::{annotation, label, node_type};

use super::{cache::Kept, trim, views::Condition};

/// Label selector of the Pods that are kept (RC-250).
pub const POD_SELECTOR: &str = "ray.io/node-type in (head,worker,redis-cleanup)";

/// Annotations that are kept of heads.
const KEPT_ANNOTATIONS: [&str; 2] = [annotation::UPGRADE_STRATEGY_RECREATE_HASH, annotation::KUBERAY_VERSION];
/// Labels that are kept. Hardly any other is ever asked for, and they are most of what a Pod takes here.
const KEPT_LABELS: [&str; 7] = [
    label::CLUSTER,
    label::NODE_TYPE,
    label::GROUP,
    label::SERVE,
    label::WORKER_GROUP_REPLICA_INDEX,
    label::WORKER_GROUP_REPLICA_NAME,
    label::REPLICA_HOST_INDEX,
];
/// Conditions that say nothing as long as they are true.
const QUIET_CONDITIONS: [&str; 4] = ["PodScheduled", "Initialized", "ContainersReady", "PodReadyToStartContainers"];

/// A Pod, reduced.
///
/// Of its labels those are kept that say what the Pod is for, of a head's annotations the operator's version and the hash of upgrade
/// strategy Recreate.
#[derive(Resource, Deserialize, Clone, Debug, PartialEq)]
#[resource(inherit = Pod)]
#[serde(from = "Read")]
pub struct PodView {
    /// Identity, owners, deletion time. No labels: see [`PodView::label`].
    pub metadata: ObjectMeta,
    /// Labels that say what the Pod is for.
    labels: KeptLabels,
    /// The facts of the spec that are used.
    pub spec: PodFacts,
    /// What the kubelet and the scheduler say.
    pub status: PodState,
}

/// A Pod as it is read.
#[derive(Deserialize)]
struct Read {
    #[serde(deserialize_with = "trim::metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PodFacts,
    #[serde(default)]
    status: PodState,
}

impl From<Read> for PodView {
    fn from(Read { mut metadata, spec, status }: Read) -> Self {
        let labels = metadata.labels.take().map(|all| KeptLabels::of(&all)).unwrap_or_default();
        let is_head = labels.get(label::NODE_TYPE) == node_type::HEAD;
        trim::retain_annotations(&mut metadata, |key| is_head && KEPT_ANNOTATIONS.contains(&key));
        Self { metadata, labels, spec, status }
    }
}

/// The labels of [`KEPT_LABELS`] that a Pod has, in that order. A map of seven texts takes a kilobyte; there are many Pods.
#[derive(Clone, Debug, Default, PartialEq)]
struct KeptLabels(Box<[(&'static str, Box<str>)]>);

impl KeptLabels {
    fn of(labels: &BTreeMap<String, String>) -> Self {
        Self(KEPT_LABELS.iter().filter_map(|key| Some((*key, labels.get(*key)?.as_str().into()))).collect())
    }

    /// Value of a label, empty if the Pod does not have it.
    fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(kept, _)| *kept == key).map(|(_, value)| &**value).unwrap_or_default()
    }
}

/// The facts of a Pod's spec that are used.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodFacts {
    /// `Always`, `OnFailure` or `Never`.
    pub restart_policy: RestartPolicy,
    /// Node that the Pod runs on, once it is scheduled.
    pub node_name: Option<Box<str>>,
    /// Name of the first container, which is the one that runs Ray.
    #[serde(rename = "containers", deserialize_with = "first_name")]
    pub ray_container: Box<str>,
}

/// What happens to containers that end.
#[derive(Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// They start again unless they ended well.
    OnFailure,
    /// They stay as they are.
    Never,
    /// They start again. Also stands for a word that this version does not know: the kubelet knows what to do.
    #[default]
    #[serde(other)]
    Always,
}

/// Phase of a Pod.
#[derive(Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have been started.
    #[default]
    Pending,
    /// At least one container runs, starts or restarts.
    Running,
    /// All containers ended well and stay so.
    Succeeded,
    /// All containers ended and at least one failed.
    Failed,
    /// The node does not answer.
    #[serde(other)]
    Unknown,
}

/// A Pod's status, reduced.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodState {
    /// Phase.
    pub phase: Phase,
    /// Address of the Pod, empty as long as it has none.
    #[serde(rename = "podIP")]
    pub pod_ip: Box<str>,
    /// Why the Pod is in this phase, such as `Evicted`. Empty if nothing is said.
    pub reason: Box<str>,
    /// Text to `reason`.
    pub message: Box<str>,
    /// Conditions, but for those of [scheduling and initialization](QUIET_CONDITIONS) that are true.
    #[serde(deserialize_with = "telling_conditions")]
    pub conditions: Vec<Condition>,
    /// State of the containers.
    #[serde(deserialize_with = "list")]
    pub container_statuses: Vec<ContainerStatus>,
    /// State of the init containers.
    #[serde(deserialize_with = "list")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// State of a container.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name.
    pub name: Box<str>,
    /// Whether the container passes its readiness probe.
    pub ready: bool,
    /// How often it was started again.
    pub restart_count: i32,
    /// State now.
    pub state: ContainerState,
    /// How it ended before its last restart.
    pub last_state: ContainerState,
}

/// At most one of the three is set; none means waiting without a reason.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub struct ContainerState {
    /// Not started.
    pub waiting: Option<Box<Waiting>>,
    /// Started, and not ended.
    pub running: Option<Running>,
    /// Ended.
    pub terminated: Option<Box<Terminated>>,
}

/// Why a container has not started.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub struct Waiting {
    /// One word, such as `ImagePullBackOff`.
    pub reason: Box<str>,
    /// Text to `reason`.
    pub message: Box<str>,
}

/// A container that runs.
#[derive(Deserialize, Clone, Copy, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// When it was started.
    pub started_at: Option<Timestamp>,
}

/// How a container ended.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Exit code.
    pub exit_code: i32,
    /// One word, such as `OOMKilled`.
    pub reason: Box<str>,
    /// Text to `reason`.
    pub message: Box<str>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl PodView {
    /// Value of a label, empty if it is missing.
    pub fn label(&self, key: &str) -> &str {
        self.labels.get(key)
    }

    /// The RayCluster that the Pod's label names.
    pub fn cluster(&self) -> Option<&str> {
        Some(self.label(label::CLUSTER)).filter(|name| !name.is_empty())
    }

    /// Value of an annotation, empty if it is missing or not kept.
    pub fn annotation(&self, key: &str) -> &str {
        self.annotations().get(key).map(String::as_str).unwrap_or_default()
    }

    /// Whether this is a head Pod.
    pub fn is_head(&self) -> bool {
        self.label(label::NODE_TYPE) == node_type::HEAD
    }

    /// Whether this is a worker Pod.
    pub fn is_worker(&self) -> bool {
        self.label(label::NODE_TYPE) == node_type::WORKER
    }

    /// Whether somebody asked for the Pod's deletion.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The condition of a type, if it is kept and set.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| &*condition.type_ == type_)
    }

    /// Whether the Pod runs and passes its readiness probes.
    pub fn is_ready(&self) -> bool {
        self.status.phase == Phase::Running && self.condition("Ready").is_some_and(|condition| &*condition.status == "True")
    }

    /// State of the container called `name`.
    pub fn container(&self, name: &str) -> Option<&ContainerStatus> {
        self.status.container_statuses.iter().find(|status| &*status.name == name)
    }

    /// State of the container that runs Ray.
    pub fn ray_container(&self) -> Option<&ContainerStatus> {
        self.container(&self.spec.ray_container)
    }
}

impl Kept for PodView {
    fn differs(&self, older: &Self) -> bool {
        self.labels != older.labels
            || self.spec != older.spec
            || self.status != older.status
            || trim::metadata_differs(&self.metadata, &older.metadata)
    }
}

/// Name of the first element of a list of containers; the rest is skipped without being read.
fn first_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        name: Box<str>,
    }
    struct First;
    impl<'de> de::Visitor<'de> for First {
        type Value = Box<str>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of containers")
        }

        fn visit_unit<E>(self) -> Result<Box<str>, E> {
            Ok(Box::default())
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Box<str>, A::Error> {
            let first = list.next_element::<Named>()?.map(|container| container.name).unwrap_or_default();
            while list.next_element::<de::IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }
    deserializer.deserialize_any(First)
}

fn telling_conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let mut conditions: Vec<Condition> = list(deserializer)?;
    conditions.retain(|condition| &*condition.status != "True" || !QUIET_CONDITIONS.contains(&&*condition.type_));
    conditions.shrink_to_fit();
    Ok(conditions)
}

/// A list that may be `null`, without spare room.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let mut list = Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default();
    list.shrink_to_fit();
    Ok(list)
}
