//! `RayCronJob`: RayJobs on a schedule (RCJ-1, RCJ-2).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rayjob::RayJobSpec;

/// A RayJob to make at each tick of a schedule.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "ray.io",
    version = "v1",
    kind = "RayCronJob",
    plural = "raycronjobs",
    singular = "raycronjob",
    namespaced,
    category = "all",
    status = "RayCronJobStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Makes a RayJob at each tick of a schedule; needs the feature gate RayCronJob.",
    printcolumn(name = "schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "timezone", type_ = "string", json_path = ".spec.timeZone"),
    printcolumn(name = "last schedule", type_ = "date", json_path = ".status.lastScheduleTime"),
    printcolumn(name = "age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "suspend", type_ = "boolean", json_path = ".spec.suspend")
)]
#[serde(rename_all = "camelCase")]
pub struct RayCronJobSpec {
    /// Spec of the RayJobs that are made.
    pub job_template: RayJobSpec,
    /// When to run, in cron's five fields (minute, hour, day of month, month, day of week) or as `@hourly`, `@daily` and the like.
    pub schedule: String,
    /// Time zone of the schedule, such as `Europe/Berlin`; the operator's own (UTC in the shipped image) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub time_zone: Option<String>,
    /// Makes no RayJob while true; RayJobs that exist go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// What to do at a tick while an earlier RayJob has not ended: `Allow` (also when absent) starts another, `Forbid` skips the tick,
    /// `Replace` deletes the earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Seconds after a tick within which its RayJob may still be started; without limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// How many succeeded RayJobs to keep; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed RayJobs to keep; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What to do at a tick while an earlier RayJob has not ended.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Start another.
    #[default]
    Allow,
    /// Skip the tick.
    Forbid,
    /// Delete the earlier one and start another.
    Replace,
}

/// What is known of a schedule.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RayCronJobStatus {
    /// The last tick that was dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When a RayJob of this schedule last succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// Names of the RayJobs that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub active: Vec<String>,
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub observed_generation: i64,
    /// Single aspects of the schedule, such as whether its spec is valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
