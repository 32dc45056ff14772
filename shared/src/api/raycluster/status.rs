//! What is known of a cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    #[serde(default, skip_serializing_if = "crate::api::is_default")]
    pub observed_generation: i64,
    /// Worker Pods that the spec asks for.
    #[serde(default, skip_serializing_if = "crate::api::is_default")]
    pub desired_worker_replicas: i32,
    /// Sum of the groups' lowest numbers of Pods.
    #[serde(default, skip_serializing_if = "crate::api::is_default")]
    pub min_worker_replicas: i32,
    /// Sum of the groups' highest numbers of Pods.
    #[serde(default, skip_serializing_if = "crate::api::is_default")]
    pub max_worker_replicas: i32,
    /// Worker Pods that run.
    #[serde(default, skip_serializing_if = "crate::api::is_default")]
    pub available_worker_replicas: i32,
    /// Worker Pods that run and are ready.
    #[serde(default, skip_serializing_if = "crate::api::is_default")]
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
