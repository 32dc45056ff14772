//! Jobs, reduced: submitters of RayJobs and the ones that remove keys from Redis.

use jiff::Timestamp;
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::Deserialize;

use super::Condition;
use crate::runtime::{cache::Kept, trim};

/// Label selector of the Jobs that are kept (RC-250).
pub const JOB_SELECTOR: &str = "app.kubernetes.io/created-by=kuberay-operator";

/// A Job, reduced.
#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = Job)]
pub struct JobView {
    /// Names and owners. Neither labels nor annotations.
    #[serde(deserialize_with = "trim::metadata")]
    pub metadata: ObjectMeta,
    /// What is kept of the spec.
    #[serde(default)]
    pub spec: JobFacts,
    /// How the Job does.
    #[serde(default)]
    pub status: JobState,
}

/// What is kept of a Job's spec.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct JobFacts {
    /// How many failed Pods the Job tolerates.
    pub backoff_limit: Option<i32>,
    /// Whether the Job is to have no Pods.
    pub suspend: Option<bool>,
}

/// How a Job does.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct JobState {
    /// Pods that have not ended.
    pub active: i32,
    /// Pods that ended well.
    pub succeeded: i32,
    /// Pods that failed.
    pub failed: i32,
    /// When the Job controller took it up.
    pub start_time: Option<Timestamp>,
    /// When it ended well.
    pub completion_time: Option<Timestamp>,
    /// Such as `Complete` and `Failed`.
    pub conditions: Vec<Condition>,
}

impl JobView {
    /// The condition of this type, if it is true.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| &*condition.type_ == type_ && &*condition.status == "True")
    }
}

impl Kept for JobView {
    fn trim(&mut self) {
        trim::to_identity(&mut self.metadata);
    }

    fn differs(&self, older: &Self) -> bool {
        trim::is_other_version(&self.metadata, &older.metadata)
    }
}
