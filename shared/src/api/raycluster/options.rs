//! Options of a cluster as a whole: autoscaler, fault tolerance, tokens, exposure, network, logs.

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, EnvVarSource, ResourceRequirements, SecurityContext, VolumeMount};
use k8s_openapi::api::networking::v1::{IngressTLS, NetworkPolicyEgressRule, NetworkPolicyIngressRule};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the autoscaler container.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerOptions {
    /// Version of the autoscaler: `v1` or `v2`; absent leaves the choice to Ray.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<AutoscalerVersion>,
    /// Resources of the container; 500m CPU and 512Mi memory when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Image of the container; the head's image when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When to pull the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Security context of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Seconds without work after which a node is taken down (60 when absent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<i32>,
    /// How fast the cluster may grow: `Default`, `Aggressive` (the same) or `Conservative`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upscaling_mode: Option<UpscalingMode>,
    /// Further environment variables of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// Sources of further environment variables of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<Vec<EnvFromSource>>,
    /// Further volume mounts of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Replaces the command of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Replaces the arguments of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
}

/// Versions of Ray's autoscaler.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoscalerVersion {
    /// The first autoscaler.
    #[serde(rename = "v1")]
    V1,
    /// The second autoscaler, default since Ray 2.47.
    #[serde(rename = "v2")]
    V2,
}

/// How fast the autoscaler lets a cluster grow.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpscalingMode {
    /// Without limit.
    Default,
    /// Without limit.
    Aggressive,
    /// At most as many pending nodes as there are running ones.
    Conservative,
}

/// Where the head keeps its state.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GcsFaultToleranceOptions {
    /// `redis` (also when absent) or `rocksdb`, an embedded database on a volume. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("gcsFaultToleranceOptions.backend cannot be changed once it is set"))]
    pub backend: Option<GcsBackend>,
    /// Address of Redis, such as `redis:6379`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_address: Option<String>,
    /// User name for Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_username: Option<RedisCredential>,
    /// Password for Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_password: Option<RedisCredential>,
    /// Prefix of the cluster's keys in Redis; the uid of the RayCluster when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_storage_namespace: Option<String>,
    /// Volume of the embedded database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<GcsStorage>,
}

/// Stores for the state of the head.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcsBackend {
    /// A Redis server.
    #[serde(rename = "redis")]
    Redis,
    /// A database inside the head, on a volume.
    #[serde(rename = "rocksdb")]
    RocksDb,
}

/// A user name or password: a literal value or a reference to one.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RedisCredential {
    /// The value itself; anybody who can read the object can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where to find the value, such as a key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvVarSource>,
}

/// Volume of the embedded database.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GcsStorage {
    /// An existing claim to use; the operator makes one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_name: Option<String>,
    /// Size of the claim that is made; 1Gi when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,
    /// Storage class of the claim that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Access modes of the claim that is made; ReadWriteOnce when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_modes: Option<Vec<String>>,
    /// Folder of the volume to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    /// Whether the claim goes with the cluster (also when absent) or stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<GcsStorageDeletionPolicy>,
}

/// What becomes of the claim when the cluster is deleted.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcsStorageDeletionPolicy {
    /// The claim goes with the cluster.
    DeleteWithCluster,
    /// The claim stays.
    Retain,
}

/// Whether clients and nodes must show a token.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AuthOptions {
    /// `token` asks for a token, `disabled` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<AuthMode>,
    /// Secret with the token under the key `auth_token`; made by the operator when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Accept ServiceAccount tokens of this Kubernetes cluster; needs Ray 2.55.
    #[serde(default, rename = "enableK8sTokenAuth", skip_serializing_if = "Option::is_none")]
    pub enable_k8s_token_auth: Option<bool>,
}

/// Ways to authenticate clients and nodes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Nobody must show a token.
    #[serde(rename = "disabled")]
    Disabled,
    /// Everybody must show a token.
    #[serde(rename = "token")]
    Token,
}

/// Settings of the Ingress to the dashboard.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct IngressOptions {
    /// Host name; every host when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Path; `/` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How the path is compared; `Prefix` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_type: Option<IngressPathType>,
    /// Certificates by host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Vec<IngressTLS>>,
}

/// How the path of an Ingress is compared.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngressPathType {
    /// The whole path.
    Exact,
    /// By leading path elements.
    Prefix,
    /// As the Ingress controller sees fit.
    ImplementationSpecific,
}

impl IngressPathType {
    /// The value as Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "Exact",
            Self::Prefix => "Prefix",
            Self::ImplementationSpecific => "ImplementationSpecific",
        }
    }
}

/// Traffic allowed to and from the Pods.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyOptions {
    /// Which directions are closed except for what the rules open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "DenyAll"))]
    pub mode: Option<NetworkPolicyMode>,
    /// Rules of the head Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<NetworkPolicyRules>,
    /// Rules of every worker group without rules of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<NetworkPolicyRules>,
    /// Rules of single worker groups; they replace `worker` there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["groupName".to_owned()]))]
    pub worker_groups: Option<Vec<WorkerGroupNetworkPolicyRules>>,
}

/// Directions that a network policy closes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPolicyMode {
    /// Both directions.
    DenyAll,
    /// Traffic to the Pods.
    DenyAllIngress,
    /// Traffic from the Pods.
    DenyAllEgress,
}

/// Traffic that is allowed in spite of the mode.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyRules {
    /// Traffic allowed to the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_rules: Option<Vec<NetworkPolicyIngressRule>>,
    /// Traffic allowed from the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_rules: Option<Vec<NetworkPolicyEgressRule>>,
}

/// Traffic allowed to and from one worker group.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerGroupNetworkPolicyRules {
    /// Name of the worker group.
    pub group_name: String,
    /// Traffic allowed to the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_rules: Option<Vec<NetworkPolicyIngressRule>>,
    /// Traffic allowed from the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_rules: Option<Vec<NetworkPolicyEgressRule>>,
}

/// Mutual TLS between the nodes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TlsOptions {
    /// Switches mutual TLS on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Keeps logs and events for the Ray history server.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryServerOptions {
    /// The container that collects logs and events on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector_options: Option<CollectorOptions>,
}

/// The container that collects logs and events.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CollectorOptions {
    /// Image of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When to pull the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Environment of the container; `STORAGE_BACKEND` and what it needs say where the data goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
}
