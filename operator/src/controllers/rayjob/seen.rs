//! What was seen of the world around a RayJob: plain data, gathered by [`observe`](super::observe).

use std::sync::Arc;

use shared::api::{RayCluster, RayJob};

use crate::{
    dashboard::Answer,
    runtime::{
        api::is_controlled_by,
        pod_view::{Phase, PodView},
        views::JobView,
    },
};

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The cluster of the name in the status, whoever owns it.
    pub cluster: Option<Arc<RayCluster>>,
    /// The cluster's head Pod.
    pub head: Option<Arc<PodView>>,
    /// The Job of the submitter's name, whoever owns it.
    pub submitter: Option<Arc<JobView>>,
    /// Version of a kubelet that cannot restart single containers, if the head Pod's node has such a one.
    pub old_kubelet: Option<String>,
    /// What Ray said last about the job.
    pub answer: Option<Answer>,
}

/// What the rules say about the RayJob, when they object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Reason of the event (RJ-23).
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Seen {
    /// The cluster, unless it is about to go.
    pub fn live_cluster(&self) -> Option<&Arc<RayCluster>> {
        self.cluster.as_ref().filter(|cluster| cluster.metadata.deletion_timestamp.is_none())
    }

    /// The cluster, if the RayJob made it.
    pub fn own_cluster(&self, job: &RayJob) -> Option<&Arc<RayCluster>> {
        self.cluster.as_ref().filter(|cluster| is_controlled_by(&cluster.metadata, uid(job)))
    }

    /// The submitter's Job, if the RayJob made it.
    pub fn own_submitter(&self, job: &RayJob) -> Option<&Arc<JobView>> {
        self.submitter.as_ref().filter(|submitter| is_controlled_by(&submitter.metadata, uid(job)))
    }

    /// The head Pod, as long as something of it can run.
    pub fn live_head(&self) -> Option<&Arc<PodView>> {
        self.head.as_ref().filter(|head| !head.is_terminating() && !matches!(head.status.phase, Phase::Failed | Phase::Succeeded))
    }
}

/// Uid of a RayJob; empty only for one that is not stored.
pub fn uid(job: &RayJob) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}
