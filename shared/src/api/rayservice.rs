//! `RayService`: Ray Serve applications on clusters that are replaced without interruption (A.0).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raycluster::{RayClusterSpec, RayClusterStatus};
use super::{MANAGED_BY_IMMUTABLE, MANAGED_BY_VALUES};

/// Ray Serve applications and the cluster that they run on.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ray.io",
    version = "v1",
    kind = "RayService",
    plural = "rayservices",
    singular = "rayservice",
    namespaced,
    category = "all",
    status = "RayServiceStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Ray Serve applications on a cluster that is replaced without interruption when its spec changes.",
    printcolumn(name = "service status", type_ = "string", json_path = ".status.serviceStatus"),
    printcolumn(name = "num serve endpoints", type_ = "string", json_path = ".status.numServeEndpoints")
)]
#[serde(rename_all = "camelCase")]
pub struct RayServiceSpec {
    /// Cluster that the applications run on. Most edits start a second cluster that takes over once it is healthy.
    #[serde(rename = "rayClusterConfig")]
    pub ray_cluster_spec: RayClusterSpec,
    /// Ray Serve's configuration of the applications, as YAML in its multi-application form. Edits are made in place.
    #[serde(default, rename = "serveConfigV2", skip_serializing_if = "Option::is_none")]
    pub serve_config_v2: Option<String>,
    /// How a new cluster takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_strategy: Option<RayServiceUpgradeStrategy>,
    /// A Service to start from instead of the generated serve Service; its selector is always set by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve_service: Option<Service>,
    /// Keeps the head Pod out of the serve Service while true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_head_pod_from_serve_svc: Option<bool>,
    /// Seconds that a replaced cluster stays before it is deleted (60 when absent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ray_cluster_deletion_delay_seconds: Option<i32>,
    /// Without effect; kept so that old manifests apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_unhealthy_second_threshold: Option<i32>,
    /// Without effect; kept so that old manifests apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_unhealthy_second_threshold: Option<i32>,
    /// Deletes the clusters while true; they come back when it is false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Who reconciles this object: `ray.io/kuberay-operator` (also when absent) or `kueue.x-k8s.io/multikueue`. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(MANAGED_BY_IMMUTABLE).message("managedBy cannot be changed once it is set"))]
    #[x_kube(validation = Rule::new(MANAGED_BY_VALUES).message("managedBy must be 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'"))]
    pub managed_by: Option<String>,
}

/// How a new cluster takes over from the old one.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayServiceUpgradeStrategy {
    /// `NewCluster` (all traffic at once), `NewClusterWithIncrementalUpgrade` (traffic step by step) or `None` (no new cluster).
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Steps of `NewClusterWithIncrementalUpgrade`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_upgrade_options: Option<ClusterUpgradeOptions>,
}

/// Steps of an incremental upgrade.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpgradeOptions {
    /// How far both clusters together may exceed the size of one, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 100))]
    pub max_surge_percent: Option<i32>,
    /// Traffic that moves at each step, in percent.
    pub step_size_percent: i32,
    /// Seconds between two steps.
    pub interval_seconds: i32,
    /// Gateway class that routes the traffic.
    pub gateway_class_name: String,
}

/// What is known of the applications.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayServiceStatus {
    /// The cluster that serves.
    #[serde(default)]
    pub active_service_status: RayServiceClusterStatus,
    /// The cluster that is to take over.
    #[serde(default)]
    pub pending_service_status: RayServiceClusterStatus,
    /// `Running` while applications are reachable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_status: String,
    /// Pods that serve.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub num_serve_endpoints: i32,
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub observed_generation: i64,
    /// When this status was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Single aspects of the service's health.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// One of the clusters of a service.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayServiceClusterStatus {
    /// Name of the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ray_cluster_name: String,
    /// Applications by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub application_statuses: BTreeMap<String, ApplicationStatus>,
    /// Status of the cluster.
    #[serde(default)]
    pub ray_cluster_status: RayClusterStatus,
    /// Capacity that this cluster has during an incremental upgrade, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_capacity: Option<i32>,
    /// Traffic that reaches this cluster during an incremental upgrade, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_routed_percent: Option<i32>,
    /// When traffic was last moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_traffic_migrated_time: Option<Time>,
}

/// One application of Ray Serve.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// State that Ray Serve reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// What Ray Serve says about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Deployments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub serve_deployment_statuses: BTreeMap<String, ServeDeploymentStatus>,
}

/// One deployment of an application.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ServeDeploymentStatus {
    /// State that Ray Serve reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// What Ray Serve says about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
