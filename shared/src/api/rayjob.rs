//! `RayJob`: a Ray job and the cluster that it runs on (RJ-1..RJ-11).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raycluster::{RayClusterSpec, RayClusterStatus};
use super::{MANAGED_BY_IMMUTABLE, MANAGED_BY_VALUES};

/// A Ray job: what to run, on which cluster, and what becomes of the cluster afterwards.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ray.io",
    version = "v1",
    kind = "RayJob",
    plural = "rayjobs",
    singular = "rayjob",
    namespaced,
    category = "all",
    status = "RayJobStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Ray job that runs on a cluster of its own, or on an existing one.",
    printcolumn(name = "job status", type_ = "string", json_path = ".status.jobStatus"),
    printcolumn(name = "deployment status", type_ = "string", json_path = ".status.jobDeploymentStatus"),
    printcolumn(name = "ray cluster name", type_ = "string", json_path = ".status.rayClusterName"),
    printcolumn(name = "start time", type_ = "string", json_path = ".status.startTime"),
    printcolumn(name = "end time", type_ = "string", json_path = ".status.endTime"),
    printcolumn(name = "age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RayJobSpec {
    /// Command line that Ray runs on the head, such as `python /home/ray/samples/job.py`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<String>,
    /// Cluster to make for this job. Edits after the cluster exists have no effect on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_cluster_spec: Option<RayClusterSpec>,
    /// An existing cluster to run on instead, as `ray.io/cluster: <name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<BTreeMap<String, String>>,
    /// Who hands the job to Ray: `K8sJobMode` (a Kubernetes Job runs `ray job submit`), `HTTPMode` (the operator calls the dashboard),
    /// `SidecarMode` (a container in the head Pod runs `ray job submit`) or `InteractiveMode` (the user does, and writes `jobId`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "K8sJobMode"))]
    pub submission_mode: Option<String>,
    /// Ray runtime environment of the job, as YAML.
    #[serde(default, rename = "runtimeEnvYAML", skip_serializing_if = "Option::is_none")]
    pub runtime_env_yaml: Option<String>,
    /// Submission id of the job; generated when absent. In InteractiveMode the user writes the id of the submitted job here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Metadata that Ray stores with the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// CPUs that Ray reserves for the entrypoint itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_cpus: Option<f64>,
    /// GPUs that Ray reserves for the entrypoint itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_gpus: Option<f64>,
    /// Other resources that Ray reserves for the entrypoint itself, as a JSON object of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint_resources: Option<String>,
    /// How often a failed job is tried again, each time on a new cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub backoff_limit: Option<i32>,
    /// Seconds from the start of a try until it counts as failed; such a failure is not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i32>,
    /// Seconds from the start of a try within which the job must begin to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub pre_running_deadline_seconds: Option<i32>,
    /// Deletes the cluster when the job has finished and `ttlSecondsAfterFinished` is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_after_job_finishes: Option<bool>,
    /// Seconds that the cluster stays after the job has finished; only with `shutdownAfterJobFinishes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// What is deleted after the job has finished, by outcome and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_strategy: Option<DeletionStrategy>,
    /// Settings of the submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter_config: Option<SubmitterConfig>,
    /// Template of the submitter Pod in K8sJobMode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter_pod_template: Option<PodTemplateSpec>,
    /// Holds the job while true: a running one is ended and its cluster deleted; it starts anew when set to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Who reconciles this object: `ray.io/kuberay-operator` (also when absent) or `kueue.x-k8s.io/multikueue`. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(MANAGED_BY_IMMUTABLE).message("managedBy cannot be changed once it is set"))]
    #[x_kube(validation = Rule::new(MANAGED_BY_VALUES).message("managedBy must be 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'"))]
    pub managed_by: Option<String>,
}

/// Who hands a job to Ray (RJ-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionMode {
    /// A Kubernetes Job runs `ray job submit`.
    K8sJob,
    /// The operator calls the dashboard.
    Http,
    /// The user submits and writes the id.
    Interactive,
    /// A container in the head Pod runs `ray job submit`.
    Sidecar,
}

impl SubmissionMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::K8sJob, Self::Http, Self::Interactive, Self::Sidecar];

    /// The value of `spec.submissionMode`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::K8sJob => "K8sJobMode",
            Self::Http => "HTTPMode",
            Self::Interactive => "InteractiveMode",
            Self::Sidecar => "SidecarMode",
        }
    }

    /// The mode that a value of `spec.submissionMode` stands for; absent and empty mean `K8sJobMode`.
    pub fn parse(value: Option<&str>) -> Option<Self> {
        match value {
            None | Some("") => Some(Self::K8sJob),
            Some(value) => Self::ALL.into_iter().find(|mode| mode.as_str() == value),
        }
    }

    /// Whether a container of ours runs `ray job submit`.
    pub const fn has_submitter(self) -> bool {
        matches!(self, Self::K8sJob | Self::Sidecar)
    }
}

/// Settings of the submitter.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SubmitterConfig {
    /// How often the submitter itself is tried again (2 when absent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<i32>,
}

/// What is deleted after a job has finished.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))")
    .message("onSuccess and onFailure cannot be used together with deletionRules"))]
#[x_kube(validation = Rule::new("((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))")
    .message("set both onSuccess and onFailure, or deletionRules"))]
#[serde(rename_all = "camelCase")]
pub struct DeletionStrategy {
    /// What is deleted after success. Deprecated: use `deletionRules`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_success: Option<DeletionPolicy>,
    /// What is deleted after failure. Deprecated: use `deletionRules`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<DeletionPolicy>,
    /// What is deleted when, by outcome; several rules may apply one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub deletion_rules: Option<Vec<DeletionRule>>,
}

/// What is deleted, without a time.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPolicy {
    /// What is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<DeletionPolicyType>,
}

/// What is deleted, for which outcome and when.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionRule {
    /// What is deleted.
    pub policy: DeletionPolicyType,
    /// For which outcome, and how long after it.
    pub condition: DeletionCondition,
}

/// What is deleted after a job has finished.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeletionPolicyType {
    /// The RayCluster.
    DeleteCluster,
    /// The workers of the RayCluster; the head stays.
    DeleteWorkers,
    /// The RayJob with everything that it owns.
    DeleteSelf,
    /// Nothing.
    DeleteNone,
}

/// For which outcome a deletion rule applies, and how long after it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = Rule::new("!(has(self.jobStatus) && has(self.jobDeploymentStatus))")
    .message("a condition names either jobStatus or jobDeploymentStatus, not both"))]
#[x_kube(validation = Rule::new("has(self.jobStatus) || has(self.jobDeploymentStatus)")
    .message("a condition needs jobStatus or jobDeploymentStatus"))]
#[serde(rename_all = "camelCase")]
pub struct DeletionCondition {
    /// Applies when the Ray job ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status: Option<DeletionJobStatus>,
    /// Applies when the RayJob ended so, whatever the Ray job did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_deployment_status: Option<DeletionJobDeploymentStatus>,
    /// Seconds after the end of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub ttl_seconds: Option<i32>,
}

/// Ends of a Ray job that a deletion rule may name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionJobStatus {
    /// The job succeeded.
    #[serde(rename = "SUCCEEDED")]
    Succeeded,
    /// The job failed.
    #[serde(rename = "FAILED")]
    Failed,
}

/// Ends of a RayJob that a deletion rule may name.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionJobDeploymentStatus {
    /// The RayJob failed.
    Failed,
}

/// State of a job in Ray (RJ-6).
pub mod job_status {
    #![allow(missing_docs)] // the names are Ray's own
    pub const NEW: &str = "";
    pub const PENDING: &str = "PENDING";
    pub const RUNNING: &str = "RUNNING";
    pub const STOPPED: &str = "STOPPED";
    pub const SUCCEEDED: &str = "SUCCEEDED";
    pub const FAILED: &str = "FAILED";

    /// Whether Ray will not change this state any more.
    pub fn is_terminal(status: &str) -> bool {
        matches!(status, STOPPED | SUCCEEDED | FAILED)
    }

    /// Whether Ray knows this state at all (WEAK-13).
    pub fn is_known(status: &str) -> bool {
        matches!(status, PENDING | RUNNING) || is_terminal(status)
    }
}

/// Where a RayJob stands (RJ-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JobDeploymentStatus {
    /// Nothing was done yet.
    #[default]
    New,
    /// The cluster is being made.
    Initializing,
    /// The cluster is ready; the user has yet to submit the job (InteractiveMode).
    Waiting,
    /// The job was handed to Ray, or is about to be.
    Running,
    /// The job ended without failing.
    Complete,
    /// The job failed.
    Failed,
    /// The spec breaks a rule; nothing new is made until it is corrected.
    ValidationFailed,
    /// The job and its cluster are being removed because of `spec.suspend`.
    Suspending,
    /// The job is held by `spec.suspend`.
    Suspended,
    /// The job failed and will be tried again.
    Retrying,
    /// A word that this version does not know; such a RayJob is left alone (RJ-25).
    Unknown,
}

impl JobDeploymentStatus {
    /// Every status that has a meaning.
    pub const ALL: [Self; 10] = [
        Self::New,
        Self::Initializing,
        Self::Waiting,
        Self::Running,
        Self::Complete,
        Self::Failed,
        Self::ValidationFailed,
        Self::Suspending,
        Self::Suspended,
        Self::Retrying,
    ];

    /// The value of `status.jobDeploymentStatus`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "",
            Self::Initializing => "Initializing",
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::ValidationFailed => "ValidationFailed",
            Self::Suspending => "Suspending",
            Self::Suspended => "Suspended",
            Self::Retrying => "Retrying",
            Self::Unknown => "Unknown",
        }
    }

    /// Whether the RayJob has ended for good.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }
}

impl Serialize for JobDeploymentStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for JobDeploymentStatus {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Ok(Self::ALL.into_iter().find(|status| status.as_str() == word).unwrap_or(Self::Unknown))
    }
}

/// What is known of a Ray job.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayJobStatus {
    /// Submission id of the job in Ray.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_id: String,
    /// Cluster that the job runs on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ray_cluster_name: String,
    /// Address of the cluster's dashboard inside Kubernetes, without scheme.
    #[serde(default, rename = "dashboardURL", skip_serializing_if = "String::is_empty")]
    pub dashboard_url: String,
    /// State of the job in Ray: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED; absent until Ray knows the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_status: String,
    /// Where the RayJob stands: Initializing, Waiting, Running, Complete, Failed, ValidationFailed, Suspending, Suspended or Retrying.
    #[serde(default, skip_serializing_if = "super::is_default")]
    #[schemars(with = "String")]
    pub job_deployment_status: JobDeploymentStatus,
    /// Why the RayJob failed, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What happened, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Start of the current try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the RayJob ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Tries that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub succeeded: Option<i32>,
    /// Tries that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub failed: Option<i32>,
    /// Start and end of the job as Ray tells them.
    #[serde(default)]
    pub ray_job_info: RayJobInfo,
    /// Status of the cluster while it is being made, and at the last answer of Ray.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub ray_cluster_status: RayClusterStatus,
    /// Since when the dashboard gives no answer; absent while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status_check_failure_start_time: Option<Time>,
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub observed_generation: i64,
    /// Single aspects of the job, for `kubectl wait --for=condition=…`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// Start and end of a job as Ray tells them.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayJobInfo {
    /// When Ray started the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
}
