//! Initializing: until the cluster is ready and the submitter made (RJ-33..RJ-38). Waiting: until the user has submitted (RJ-39).

use shared::api::{
    RayCluster,
    rayjob::{JobDeploymentStatus, SubmissionMode},
};

use super::{Action, Draft, deadlines, ending, running, start, verdict};
use crate::{
    build::{job_cluster, submitter},
    controllers::rayjob::submitter::Submitter,
    dashboard::Reply,
    runtime::pod_view::PodView,
};

/// `status.state` of a cluster that is complete.
const READY: &str = "ready";
/// How often a shared cluster that does not exist or is not ready is looked for, in seconds: only its owner is told of changes.
const LOOK_FOR_CLUSTER: i64 = 5;
/// How often a name that is taken is looked at, in seconds.
const LOOK_AT_NAME: i64 = 5;

/// What is said in InteractiveMode when the cluster is ready.
const ASK_USER: &str = "the cluster is ready; submit the job and write its id to spec.jobId";

/// RJ-33..RJ-38.
pub(super) fn initializing(draft: &mut Draft<'_>) {
    if draft.terms.suspend {
        return draft.go(JobDeploymentStatus::Suspending);
    }
    early_sidecar(draft);
    // What was shown as holding it up goes into the verdict of a deadline; then it is worked out anew.
    if draft.state() != JobDeploymentStatus::Initializing || deadlines::end_without_job(draft) {
        return;
    }
    draft.status().message.clear();
    let Some(cluster) = draft.view.seen.cluster.clone() else { return no_cluster(draft) };
    if cluster.metadata.deletion_timestamp.is_some() {
        draft.blocked("ClusterTerminating", format!("RayCluster {} is being deleted", name(&cluster)));
        return draft.look_in(LOOK_FOR_CLUSTER);
    }
    if draft.terms.selector.is_none() && draft.view.seen.own_cluster(draft.view.job).is_none() {
        draft.blocked("NameConflict", format!("RayCluster {} exists and belongs to somebody else", name(&cluster)));
        return draft.look_in(LOOK_AT_NAME);
    }
    draft.mirror(&cluster);
    if is_ready(&cluster) {
        draft.locate_dashboard(&cluster);
        hand_over(draft, &cluster);
    } else {
        let (reason, message) = why_not_ready(&cluster);
        draft.blocked(&reason, message);
        if draft.terms.selector.is_some() {
            draft.look_in(LOOK_FOR_CLUSTER);
        }
    }
}

/// RJ-80..RJ-82.
fn no_cluster(draft: &mut Draft<'_>) {
    if draft.view.problem.is_some() {
        return start::reject(draft); // nothing was made
    }
    if let Some(selector) = draft.terms.selector {
        draft.blocked("ClusterNotFound", format!("clusterSelector names RayCluster {selector}, which does not exist in this namespace"));
        return draft.look_in(LOOK_FOR_CLUSTER);
    }
    let status = &draft.plan.status;
    let built = job_cluster::cluster(draft.view.job, draft.terms.mode, &status.ray_cluster_name, &status.job_id, draft.view.settings);
    match built {
        Ok(cluster) => {
            draft.blocked("ClusterNotReady", "its RayCluster has just been made");
            draft.act(Action::CreateCluster(Box::new(cluster)));
        }
        Err(error) => ending::fail(draft, ending::SUBMISSION_FAILED, error.to_string()),
    }
}

/// The cluster is ready: makes sure that somebody submits (RJ-38).
fn hand_over(draft: &mut Draft<'_>, cluster: &RayCluster) {
    match draft.terms.mode {
        SubmissionMode::Interactive => {
            draft.status().message = ASK_USER.to_owned();
            draft.go(JobDeploymentStatus::Waiting);
        }
        SubmissionMode::Sidecar => draft.go(JobDeploymentStatus::Running),
        _ if draft.view.problem.is_some() => draft.blocked("InvalidSpec", "the cluster is ready, but the spec has become invalid"),
        SubmissionMode::Http => draft.go(JobDeploymentStatus::Running),
        SubmissionMode::K8sJob => match &draft.submitter {
            Submitter::Absent => {
                if make_submitter(draft, cluster) {
                    draft.go(JobDeploymentStatus::Running);
                }
            }
            Submitter::Taken { going } => blocked_by_name(draft, *going),
            _ => draft.go(JobDeploymentStatus::Running),
        },
    }
}

/// Makes the Job that submits. `false` if it cannot be made, which is the end of the try.
pub(super) fn make_submitter(draft: &mut Draft<'_>, cluster: &RayCluster) -> bool {
    let status = &draft.plan.status;
    match submitter::job(draft.view.job, cluster, &status.dashboard_url, &status.job_id, draft.view.settings) {
        Ok(job) => {
            draft.act(Action::CreateSubmitter(Box::new(job)));
            true
        }
        Err(error) => {
            ending::fail(draft, ending::SUBMISSION_FAILED, error.to_string());
            false
        }
    }
}

/// The submitter's name is taken (WEAK-10): it is waited for, never adopted, and shown.
pub(super) fn blocked_by_name(draft: &mut Draft<'_>, going: bool) {
    let job = draft.view.job.metadata.name.as_deref().unwrap_or_default();
    let what = if going { "is being deleted" } else { "belongs to somebody else; delete it, or give the RayJob another name" };
    draft.blocked("SubmitterNameTaken", format!("a Job called {job} exists and {what}"));
    draft.look_in(LOOK_AT_NAME);
}

/// A submitter in the head Pod starts with the head, so that Ray may have the job, and the submitter may have ended, before the
/// cluster is ready (WEAK-17).
fn early_sidecar(draft: &mut Draft<'_>) {
    let Some(cluster) = draft.view.seen.live_cluster().filter(|_| draft.terms.mode == SubmissionMode::Sidecar).cloned() else { return };
    let ray_runs = |head: &PodView| head.ray_container().is_some_and(|ray| ray.state.running.is_some());
    if !draft.view.seen.live_head().is_some_and(|head| ray_runs(head)) {
        return;
    }
    draft.locate_dashboard(&cluster);
    let ended = draft.submitter.is_over();
    // A dashboard that does not answer yet is no outage.
    if ended || !matches!(draft.reply(), Some(Reply::NoAnswer(_))) {
        verdict::absorb(draft);
    }
    running::follow(draft);
    if draft.is_over() || (ended && draft.is_known()) {
        // Whatever the workers do, the job goes its way.
        draft.go(JobDeploymentStatus::Running);
    } else if ended && !is_ready(&cluster) {
        verdict::judge(draft);
    }
}

fn is_ready(cluster: &RayCluster) -> bool {
    cluster.status.as_ref().is_some_and(|status| status.state == READY)
}

/// What keeps a cluster from being ready, in its own words.
fn why_not_ready(cluster: &RayCluster) -> (String, String) {
    let told = cluster.status.as_ref().map(|status| status.reason.as_str()).unwrap_or_default();
    match told.split_once(": ") {
        Some((reason, message)) => (reason.to_owned(), format!("RayCluster {}: {message}", name(cluster))),
        None if told.is_empty() => ("ClusterNotReady".to_owned(), format!("RayCluster {} is not ready yet", name(cluster))),
        None => ("ClusterNotReady".to_owned(), format!("RayCluster {}: {told}", name(cluster))),
    }
}

/// RJ-39, and what it lacks (WEAK-4): suspension, the deadline, a lost cluster.
pub(super) fn waiting(draft: &mut Draft<'_>) {
    if draft.terms.suspend {
        return draft.go(JobDeploymentStatus::Suspending);
    }
    if deadlines::end_without_job(draft) {
        return;
    }
    let Some(cluster) = draft.view.seen.live_cluster().cloned() else {
        draft.blocked("ClusterNotReady", "the RayCluster is gone");
        return draft.go(JobDeploymentStatus::Initializing);
    };
    draft.mirror(&cluster);
    match draft.view.job.spec.job_id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) if draft.view.problem.is_none() => {
            draft.status().job_id = id.to_owned();
            draft.go(JobDeploymentStatus::Running);
        }
        _ => draft.status().message = ASK_USER.to_owned(),
    }
}

fn name(cluster: &RayCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}
