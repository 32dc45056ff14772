//! Reads: the caches into plain data, and, where a verdict must not rest on a cache, the API server.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use shared::{
    api::{RayCluster, RayJob, rayjob::JobDeploymentStatus},
    validation::{self, Kind},
    version::RayVersion,
};

use super::{
    seen::{Problem, Seen},
    submitter,
};
use crate::{
    dashboard::Inquirer,
    runtime::{Context, ObjectKey, api::ApiError, cache::Lazy, pod_view::PodView},
};

/// First Kubernetes version whose kubelets restart single containers.
const RESTARTS_CONTAINERS: RayVersion = RayVersion::new(1, 35, 0);
/// Problems named in an event and a condition.
const SHOWN_PROBLEMS: usize = 5;

/// Everything that decisions rest on.
///
/// # Errors
/// When something that must be read from the API server cannot be.
pub async fn observe(context: &Context, inquirer: &Inquirer, job: &RayJob) -> Result<Seen, ApiError> {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    let key = ObjectKey::of(job);
    let status = job.status.clone().unwrap_or_default();
    let cluster = match status.ray_cluster_name.as_str() {
        "" => None,
        name => cluster(context, namespace, name, is_loss_final(status.job_deployment_status)).await?,
    };
    let head = cluster.as_deref().and_then(|cluster| head(context, cluster));
    let submitter = context.batch_jobs.get(namespace, &job.name_any());
    let mut seen = Seen { cluster, head, submitter, old_kubelet: None, answer: inquirer.answer(&key) };
    if submitter::is_in_crash_gap(&seen) {
        seen.old_kubelet = old_kubelet(context, &seen).await;
    }
    Ok(seen)
}

/// Whether a RayJob in this state fails when its cluster is gone, so that a cache that lags behind must not say so.
fn is_loss_final(state: JobDeploymentStatus) -> bool {
    matches!(state, JobDeploymentStatus::Running | JobDeploymentStatus::Waiting)
}

async fn cluster(context: &Context, namespace: &str, name: &str, certain: bool) -> Result<Option<Arc<RayCluster>>, ApiError> {
    match context.clusters.get(namespace, name) {
        Ok(None) if certain => {
            let found = context.calls.get::<RayCluster, Lazy<RayCluster>>(namespace, name).await?;
            // One that cannot be read counts as there without being touched; the cache has logged it.
            Ok(found.and_then(|found| context.observe::<RayCluster>(found).decode().ok().map(Arc::new)))
        }
        Ok(found) => Ok(found),
        Err(_) => Ok(None),
    }
}

/// The head Pod; of several the one that is there to stay.
fn head(context: &Context, cluster: &RayCluster) -> Option<Arc<PodView>> {
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    let heads = context.pods.in_group(&namespace, &name).into_iter().filter(|pod| pod.is_head());
    heads.min_by_key(|head| (head.is_terminating(), std::cmp::Reverse(head.metadata.creation_timestamp.clone())))
}

/// Version of the kubelet on the head Pod's node, if it ignores the restart policy of a single container (WEAK-16). What cannot be
/// found out is not held against it.
async fn old_kubelet(context: &Context, seen: &Seen) -> Option<String> {
    let name = seen.head.as_ref()?.spec.node_name.as_deref()?;
    let node = context.calls.get::<Node, Node>("", name).await.inspect_err(|error| tracing::debug!("{error}")).ok()??;
    let version = node.status?.node_info?.kubelet_version;
    RayVersion::parse(&version).is_some_and(|found| found < RESTARTS_CONTAINERS).then_some(version)
}

/// What the rules have against a RayJob, and for which version of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// `None` if the same version may be judged otherwise the next time.
    version: Option<u64>,
    /// What is wrong, if something is.
    pub problem: Option<Problem>,
}

impl Judged {
    /// Whether the same version may be judged otherwise the next time.
    pub fn may_change(&self) -> bool {
        self.version.is_none()
    }
}

/// Asks the rules, unless `known` is their answer for the same version.
pub async fn judged(context: &Context, job: &RayJob, known: Option<Judged>) -> Judged {
    let version = version(job);
    if let Some(known) = known.filter(|known| known.version == Some(version)) {
        return known;
    }
    let (problem, lasting) = match serde_json::to_value(job) {
        Ok(object) => {
            let judgement = context.judge(Kind::RayJob, &object).await;
            (problem(&judgement.report), judgement.lasting)
        }
        Err(error) => {
            let message = format!("the object cannot be read: {error}");
            (Some(Problem { reason: "InvalidRayJobSpec", message }), true)
        }
    };
    Judged { version: lasting.then_some(version), problem }
}

/// Changes with everything that the rules look at: the spec has a number of its own, labels, annotations and the state have none.
fn version(job: &RayJob) -> u64 {
    let mut hasher = DefaultHasher::new();
    let state = job.status.as_ref().map(|status| status.job_deployment_status);
    (&job.metadata.uid, job.metadata.generation, job.labels(), job.annotations(), state).hash(&mut hasher);
    hasher.finish()
}

/// RJ-23: one event for all errors, named after the first of them.
fn problem(report: &validation::Report) -> Option<Problem> {
    if report.allowed() {
        return None;
    }
    let all = |prefix: &str| report.errors.iter().all(|error| error.path.starts_with(prefix));
    let reason = if all("metadata") {
        "InvalidRayJobMetadata"
    } else if all("status") {
        "InvalidRayJobStatus"
    } else {
        "InvalidRayJobSpec"
    };
    Some(Problem { reason, message: validation::render(report, SHOWN_PROBLEMS) })
}
