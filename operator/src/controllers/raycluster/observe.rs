//! Reads: the caches into plain data, and, where a decision must not rest on a cache, the API server.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use shared::api::RayCluster;
use shared::labels::{label, node_type};
use shared::names;
use shared::validation::{self, Kind, Report};

use super::memory::ClusterMemory;
use super::plan::{CleanupJob, Observed, Verdict};
use super::pods::ClusterPod;
use crate::build::head_service_name;
use crate::runtime::Context;
use crate::runtime::api::{ApiError, is_controlled_by};
use crate::runtime::pod_view::PodView;
use crate::runtime::views::{JobView, ServiceView};

/// Everything that decisions rest on.
pub async fn observe(context: &Context, cluster: Arc<RayCluster>, memory: &mut ClusterMemory) -> Observed {
    let verdict = verdict(context, &cluster, memory).await;
    Observed {
        verdict,
        pods: pods(context, &cluster),
        head_service: head_service(context, &cluster),
        cleanup_job: cleanup_job(context, &cluster),
        cluster,
    }
}

/// The Service of the head, if it is the cluster's.
pub fn head_service(context: &Context, cluster: &RayCluster) -> Option<Arc<ServiceView>> {
    let (namespace, _, uid) = identity(cluster);
    context.services.get(namespace, &head_service_name(cluster)).filter(|service| is_controlled_by(&service.metadata, uid))
}

/// Head and workers of the cluster, ordered by name.
pub fn pods(context: &Context, cluster: &RayCluster) -> Vec<ClusterPod> {
    let (namespace, name, uid) = identity(cluster);
    context.pods.in_group(namespace, name).into_iter().filter_map(|pod| ClusterPod::of(pod, uid)).collect()
}

/// Asks the API server for the cluster's Pods and puts the cache right by its answer.
///
/// # Errors
/// When the API server does not answer.
pub async fn refresh_pods(context: &Context, cluster: &RayCluster) -> Result<(), ApiError> {
    let (namespace, name, _) = identity(cluster);
    let selector = format!("{}={name},{} in ({},{})", label::CLUSTER, label::NODE_TYPE, node_type::HEAD, node_type::WORKER);
    let known = context.pods.in_group(namespace, name);
    let found = context.calls.list::<Pod, PodView>(namespace, &selector).await?;
    let uids: HashSet<Option<String>> = found.iter().map(kube::ResourceExt::uid).collect();
    for pod in found {
        context.pods.observe(pod);
    }
    // The Pod of the clean-up Job carries the same cluster label and was not asked for.
    for gone in known.iter().filter(|pod| (pod.is_head() || pod.is_worker()) && !uids.contains(&pod.uid())) {
        context.pods.forget(namespace, &gone.name_any(), gone.metadata.uid.as_deref().unwrap_or_default());
    }
    Ok(())
}

fn cleanup_job(context: &Context, cluster: &RayCluster) -> CleanupJob {
    let (namespace, name, uid) = identity(cluster);
    let job = context.batch_jobs.get(namespace, &names::redis_cleanup_job(name)).filter(|job| is_controlled_by(&job.metadata, uid));
    // FailureTarget comes first where the Job controller still waits for Pods (RC-113).
    let ended = |job: &JobView| ["Complete", "Failed", "FailureTarget"].iter().any(|name| job.condition(name).is_some());
    match job {
        None => CleanupJob::Absent,
        Some(job) if ended(&job) => CleanupJob::Ended,
        Some(_) => CleanupJob::Runs,
    }
}

/// Namespace, name and uid; parts that are missing are empty.
pub fn identity(cluster: &RayCluster) -> (&str, &str, &str) {
    let metadata = &cluster.metadata;
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
        metadata.uid.as_deref().unwrap_or_default(),
    )
}

/// What the rules say about the object. They are asked once for each version of what they look at, if the answer rests on nothing else.
async fn verdict(context: &Context, cluster: &RayCluster, memory: &mut ClusterMemory) -> Verdict {
    let version = version(cluster);
    if let Some((known, verdict)) = &memory.verdict
        && *known == version
    {
        return verdict.clone();
    }
    let (verdict, lasting) = match serde_json::to_value(cluster) {
        Ok(object) => {
            let judgement = context.judge(Kind::RayCluster, &object).await;
            (judge(judgement.report), judgement.lasting)
        }
        Err(error) => {
            let message = format!("the object cannot be read: {error}");
            (Verdict::Invalid { reason: "InvalidRayClusterSpec", message }, true)
        }
    };
    memory.verdict = lasting.then(|| (version, verdict.clone()));
    verdict
}

/// Changes with everything that the rules look at: the spec has a number of its own, labels and annotations have none.
fn version(cluster: &RayCluster) -> (i64, u64) {
    let mut hasher = DefaultHasher::new();
    (cluster.labels(), cluster.annotations()).hash(&mut hasher);
    (cluster.metadata.generation.unwrap_or_default(), hasher.finish())
}

/// Contradicting conditions (V-C-5) are no reason to stop: suspension is completed, which ends the contradiction.
fn judge(mut report: Report) -> Verdict {
    report.errors.retain(|error| error.rule != "V-C-5");
    if report.allowed() {
        return Verdict::Valid;
    }
    let of_metadata = report.errors.iter().all(|error| error.path.starts_with("metadata"));
    let reason = if of_metadata { "InvalidRayClusterMetadata" } else { "InvalidRayClusterSpec" };
    Verdict::Invalid { reason, message: validation::render(&report, SHOWN_PROBLEMS) }
}

/// Problems named in an event and a condition.
const SHOWN_PROBLEMS: usize = 5;
