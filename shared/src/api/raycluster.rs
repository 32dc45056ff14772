//! `RayCluster`: one Ray head and groups of Ray workers (RC-1..RC-6).

mod options;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MANAGED_BY_IMMUTABLE, MANAGED_BY_VALUES};

pub use options::{
    AuthMode, AuthOptions, AutoscalerOptions, AutoscalerVersion, CollectorOptions, GcsBackend, GcsFaultToleranceOptions, GcsStorage,
    GcsStorageDeletionPolicy, HistoryServerOptions, IngressOptions, IngressPathType, NetworkPolicyMode, NetworkPolicyOptions,
    NetworkPolicyRules, RedisCredential, TlsOptions, UpscalingMode, WorkerGroupNetworkPolicyRules,
};
pub use status::{HeadInfo, RayClusterStatus};

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
