//! `RayCluster`: one Ray head and groups of Ray workers (RC-1..RC-6).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, PodTemplateSpec, ResourceRequirements, SecurityContext, Service, VolumeMount,
};
use k8s_openapi::api::networking::v1::{IngressTLS, NetworkPolicyEgressRule, NetworkPolicyIngressRule};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MANAGED_BY_IMMUTABLE, MANAGED_BY_VALUES};

/// What a Ray cluster consists of: one head Pod, groups of worker Pods, and what is made around them.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ray.io",
    version = "v1",
    kind = "RayCluster",
    plural = "rayclusters",
    singular = "raycluster",
    namespaced,
    category = "all",
    status = "RayClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Ray cluster: one head Pod and groups of worker Pods, with the Services to reach them.",
    printcolumn(name = "desired workers", type_ = "integer", json_path = ".status.desiredWorkerReplicas"),
    printcolumn(name = "available workers", type_ = "integer", json_path = ".status.availableWorkerReplicas"),
    printcolumn(name = "cpus", type_ = "string", json_path = ".status.desiredCPU"),
    printcolumn(name = "memory", type_ = "string", json_path = ".status.desiredMemory"),
    printcolumn(name = "gpus", type_ = "string", json_path = ".status.desiredGPU"),
    printcolumn(name = "tpus", type_ = "string", json_path = ".status.desiredTPU", priority = 1),
    printcolumn(name = "status", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "head pod IP", type_ = "string", json_path = ".status.head.podIP", priority = 1),
    printcolumn(name = "head service IP", type_ = "string", json_path = ".status.head.serviceIP", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct RayClusterSpec {
    /// The head Pod: it runs Ray's control services, the dashboard and the job server.
    pub head_group_spec: HeadGroupSpec,
    /// Groups of worker Pods; each group has one template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_group_specs: Option<Vec<WorkerGroupSpec>>,
    /// Version of Ray in the images, such as `2.54.0`. It decides which probes and options are used; it does not choose the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_version: Option<String>,
    /// Deletes every Pod of the cluster while true; set it to false, or remove it, to bring them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Runs Ray's autoscaler beside the head. It then sets `replicas` of the worker groups within their bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_in_tree_autoscaling: Option<bool>,
    /// Settings of the autoscaler; without effect unless `enableInTreeAutoscaling` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler_options: Option<AutoscalerOptions>,
    /// Keeps the state of the head's control service outside the head Pod, so that the cluster survives the loss of the head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gcs_fault_tolerance_options: Option<GcsFaultToleranceOptions>,
    /// Whether clients and nodes must show a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_options: Option<AuthOptions>,
    /// Annotations of the head Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_service_annotations: Option<BTreeMap<String, String>>,
    /// What to do with running Pods when their template changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_strategy: Option<RayClusterUpgradeStrategy>,
    /// Who reconciles this object: `ray.io/kuberay-operator` (also when absent) or `kueue.x-k8s.io/multikueue`. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(MANAGED_BY_IMMUTABLE).message("managedBy cannot be changed once it is set"))]
    #[x_kube(validation = Rule::new(MANAGED_BY_VALUES).message("managedBy must be 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'"))]
    pub managed_by: Option<String>,
    /// Traffic allowed to and from the Pods; needs the feature gate RayClusterNetworkPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicyOptions>,
    /// Mutual TLS between the nodes; needs the feature gate RayClusterMTLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_options: Option<TlsOptions>,
    /// Keeps logs and events for the Ray history server; needs the feature gate RayClusterHistoryServer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_server_options: Option<HistoryServerOptions>,
}

impl RayClusterSpec {
    /// The worker groups, none if the list is absent.
    pub fn worker_groups(&self) -> &[WorkerGroupSpec] {
        self.worker_group_specs.as_deref().unwrap_or_default()
    }

    /// Whether Ray's autoscaler runs beside the head (RC-70).
    pub fn autoscaling(&self) -> bool {
        self.enable_in_tree_autoscaling == Some(true)
    }
}

/// The head Pod.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HeadGroupSpec {
    /// Pod template; the first container runs Ray.
    pub template: PodTemplateSpec,
    /// Options of `ray start` for this node, such as `num-cpus: "0"`; `true` and `false` make switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_start_params: Option<BTreeMap<String, String>>,
    /// Type of the head Service: ClusterIP (also when absent), NodePort or LoadBalancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_type: Option<String>,
    /// A Service to start from instead of the generated head Service; its selector is always set by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_service: Option<Service>,
    /// Makes an Ingress (on OpenShift a Route) to the dashboard while true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_ingress: Option<bool>,
    /// Settings of the Ingress; without effect unless `enableIngress` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_options: Option<IngressOptions>,
    /// Resources that Ray sees on this node, as Kubernetes quantities: CPU, memory, GPU, or names of one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<BTreeMap<String, String>>,
    /// Labels of the Pod that Ray sees as node labels, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// A group of worker Pods made from one template.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerGroupSpec {
    /// Name of the group, unique in the cluster.
    pub group_name: String,
    /// Wanted number of replicas. With autoscaling on, the autoscaler writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub replicas: Option<i32>,
    /// Lowest number of replicas; a smaller `replicas` is raised to it.
    #[schemars(extend("default" = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Highest number of replicas; a greater `replicas` is lowered to it.
    #[schemars(extend("default" = 2_147_483_647))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// Pods that make up one replica (multi-host accelerators); they live and die together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1))]
    pub num_of_hosts: Option<i32>,
    /// Seconds without work after which the autoscaler takes a node of this group down; needs autoscaler v2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<i32>,
    /// Which group the autoscaler prefers when several fit; a higher number comes first. Needs autoscaler v2 and Ray 2.56.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub priority: Option<i32>,
    /// Resources that Ray sees on these nodes, as Kubernetes quantities: CPU, memory, GPU, or names of one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<BTreeMap<String, String>>,
    /// Labels of the Pods that Ray sees as node labels, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Options of `ray start` for these nodes; `true` and `false` make switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_start_params: Option<BTreeMap<String, String>>,
    /// Pod template; the first container runs Ray.
    pub template: PodTemplateSpec,
    /// Which Pods go when the group shrinks; written by the autoscaler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_strategy: Option<ScaleStrategy>,
    /// Deletes every Pod of the group while true; not together with autoscaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
}

impl Default for WorkerGroupSpec {
    fn default() -> Self {
        Self {
            group_name: String::new(),
            replicas: Some(0),
            min_replicas: Some(0),
            max_replicas: Some(i32::MAX),
            num_of_hosts: Some(1),
            idle_timeout_seconds: None,
            priority: None,
            resources: None,
            labels: None,
            ray_start_params: None,
            template: PodTemplateSpec::default(),
            scale_strategy: None,
            suspend: None,
        }
    }
}

/// Which Pods go when a group shrinks.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ScaleStrategy {
    /// Names of Pods of this group that are to be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers_to_delete: Option<Vec<String>>,
}

/// What to do with running Pods when their template changes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayClusterUpgradeStrategy {
    /// `Recreate` deletes and makes anew every Pod of the cluster; `None` (also when absent) leaves running Pods alone.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<RayClusterUpgradeType>,
}

/// Ways to treat running Pods when their template changes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RayClusterUpgradeType {
    /// Delete and make anew every Pod.
    Recreate,
    /// Leave running Pods alone.
    None,
}

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

/// What is known of a Ray cluster.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayClusterStatus {
    /// `ready`, `suspended` or `failed`; absent while the cluster is being made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Why the cluster is not in the wanted state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub observed_generation: i64,
    /// Worker Pods that the spec asks for.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub desired_worker_replicas: i32,
    /// Sum of the groups' lowest numbers of Pods.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub min_worker_replicas: i32,
    /// Sum of the groups' highest numbers of Pods.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub max_worker_replicas: i32,
    /// Worker Pods that run.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub available_worker_replicas: i32,
    /// Worker Pods that run and are ready.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub ready_worker_replicas: i32,
    /// CPUs that the spec asks for.
    #[serde(default = "zero", rename = "desiredCPU")]
    pub desired_cpu: Quantity,
    /// Memory that the spec asks for.
    #[serde(default = "zero")]
    pub desired_memory: Quantity,
    /// GPUs that the spec asks for.
    #[serde(default = "zero", rename = "desiredGPU")]
    pub desired_gpu: Quantity,
    /// TPUs that the spec asks for.
    #[serde(default = "zero", rename = "desiredTPU")]
    pub desired_tpu: Quantity,
    /// Ports of the head Service by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<String, String>,
    /// The head Pod and its Service.
    #[serde(default)]
    pub head: HeadInfo,
    /// When each state was entered last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state_transition_times: BTreeMap<String, Time>,
    /// When this status was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Single aspects of the cluster's health.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

fn zero() -> Quantity {
    Quantity("0".to_owned())
}

/// The head Pod and its Service.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HeadInfo {
    /// Name of the head Pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// Address of the head Pod.
    #[serde(default, rename = "podIP", skip_serializing_if = "String::is_empty")]
    pub pod_ip: String,
    /// Name of the head Service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// Address of the head Service; the head Pod's where the Service is headless.
    #[serde(default, rename = "serviceIP", skip_serializing_if = "String::is_empty")]
    pub service_ip: String,
}
