//! Carries a plan out: the only code of this kind that writes.

mod children;
mod claim;
mod gang;
mod pods;
mod route;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use shared::api::RayCluster;
use shared::labels::finalizer;

use super::memory::ClusterMemory;
use super::notes::Note;
use super::observe::{self, identity};
use super::plan::{FinalizerStep, Observed, Plan, Stage, Verdict};
use super::pods::{ClusterPod, Trouble};
use crate::build::redis_cleanup;
use crate::runtime::Context;
use crate::runtime::api::{ApiError, Created};
use crate::runtime::views::ServiceView;

/// What is left after a plan was carried out. Only this module can make one: whatever needs it comes after the writes.
#[derive(Debug)]
pub struct Applied {
    verdict: Verdict,
    stage: Stage,
    pods: Vec<ClusterPod>,
    head_service: Option<Arc<ServiceView>>,
    conflict: Option<Trouble>,
    failure: Option<Trouble>,
    errors: Vec<ApiError>,
    notes: Vec<Note>,
    wake: Option<Timestamp>,
}

impl Applied {
    /// What the rules say about the object.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What the cluster is going through.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The cluster's Pods now.
    pub fn pods(&self) -> &[ClusterPod] {
        &self.pods
    }

    /// Service of the head.
    pub fn head_service(&self) -> Option<&ServiceView> {
        self.head_service.as_deref()
    }

    /// An object of somebody else that has the name of one that the cluster needs.
    pub fn conflict(&self) -> Option<&Trouble> {
        self.conflict.as_ref()
    }

    /// A Pod that could not be deleted, or a PodGroup that Pods wait for.
    pub fn failure(&self) -> Option<&Trouble> {
        self.failure.as_ref()
    }

    /// Whether everything that was to be done has been done.
    pub fn is_undisturbed(&self) -> bool {
        self.conflict.is_none() && self.failure.is_none() && self.errors.is_empty()
    }

    /// What is to be told. Taken once.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// The first call that failed for another reason than a refusal that the plan reckons with.
    pub fn into_error(self) -> Option<ApiError> {
        self.errors.into_iter().next()
    }

    /// When time alone makes a difference.
    pub fn wake(&self) -> Option<Timestamp> {
        self.wake
    }

    /// What a pass leaves behind that found these Pods and had nothing to do.
    #[cfg(test)]
    pub(super) fn untroubled(stage: Stage, pods: Vec<ClusterPod>) -> Self {
        let (head_service, conflict, failure, wake) = (None, None, None, None);
        Self { verdict: Verdict::Valid, stage, pods, head_service, conflict, failure, errors: Vec::new(), notes: Vec::new(), wake }
    }

    /// The same with something else in it.
    #[cfg(test)]
    pub(super) fn but(mut self, change: impl FnOnce(AppliedParts<'_>)) -> Self {
        let Self { verdict, head_service, conflict, failure, .. } = &mut self;
        change(AppliedParts { verdict, head_service, conflict, failure });
        self
    }

    fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |known| known.min(time)));
    }

    fn fail(&mut self, error: ApiError) {
        self.errors.push(error);
    }
}

/// Parts of an [`Applied`] that tests change.
#[cfg(test)]
pub(super) struct AppliedParts<'a> {
    pub(super) verdict: &'a mut Verdict,
    pub(super) head_service: &'a mut Option<Arc<ServiceView>>,
    pub(super) conflict: &'a mut Option<Trouble>,
    pub(super) failure: &'a mut Option<Trouble>,
}

/// Carries a plan out. What one part cannot do does not keep the others from being done, except that no Pod is made before the
/// finalizer is on and the head's Service and the PodGroup, if there is to be one, are there.
///
/// # Errors
/// When the finalizer cannot be changed; nothing else was done then.
pub async fn apply(
    context: &Context,
    observed: &Observed,
    plan: Plan,
    memory: &mut ClusterMemory,
    now: Timestamp,
) -> Result<Applied, ApiError> {
    let Plan { stage, finalizer, children, pods, start_cleanup, notes, wake } = plan;
    let cluster = &*observed.cluster;
    let mut applied = Applied {
        verdict: observed.verdict.clone(),
        stage,
        pods: Vec::new(),
        head_service: None,
        conflict: None,
        failure: None,
        errors: Vec::new(),
        notes,
        wake,
    };
    step_finalizer(context, cluster, finalizer, &mut applied).await?;
    let makes_pods = pods.makes_pods();
    let held_up = children::apply(context, cluster, children, memory, &mut applied, now).await;
    pods::delete(context, pods.delete, &mut applied).await;
    if let Some(head) = &pods.refresh_head {
        pods::refresh(context, cluster, head, &mut applied).await;
    }
    match held_up {
        // Pods that are there go on, and the cluster is what they are.
        Some(trouble) if makes_pods => {
            applied.failure.get_or_insert(trouble);
        }
        None if applied.head_service.is_some() => {
            pods::create(context, cluster, pods.create_head, &pods.create_workers, memory, &mut applied, now).await;
        }
        _ => {}
    }
    if start_cleanup {
        start_job(context, cluster, &mut applied).await?;
    }
    applied.pods = observe::pods(context, cluster);
    Ok(applied)
}

async fn step_finalizer(context: &Context, cluster: &RayCluster, step: FinalizerStep, applied: &mut Applied) -> Result<(), ApiError> {
    let mut all: Vec<String> = cluster.metadata.finalizers.clone().unwrap_or_default();
    match &step {
        FinalizerStep::Keep => return Ok(()),
        FinalizerStep::Add => all.push(finalizer::GCS_FT_REDIS_CLEANUP.to_owned()),
        FinalizerStep::Remove | FinalizerStep::Force { .. } => all.retain(|name| name != finalizer::GCS_FT_REDIS_CLEANUP),
    }
    let changed = context.patch::<RayCluster>(&cluster.metadata, json!({ "metadata": { "finalizers": all } })).await;
    match changed {
        Ok(_) => {}
        // Gone already.
        Err(error) if error.is_not_found() && step != FinalizerStep::Add => {}
        Err(error) => return Err(error),
    }
    if let FinalizerStep::Force { why } = step {
        let text = format!("Let the cluster go although its keys may be left in Redis: {why}");
        applied.notes.push(Note::warning("ForceDeletedStuckCluster", "Cleanup", text));
    }
    Ok(())
}

/// RC-112. A Job that can never run does not hold the deletion: nobody could do anything about it.
async fn start_job(context: &Context, cluster: &RayCluster, applied: &mut Applied) -> Result<(), ApiError> {
    let job = match redis_cleanup::job(cluster, &context.settings) {
        Ok(job) => job,
        Err(error) => {
            let step = FinalizerStep::Force { why: format!("the clean-up Job cannot be made: {error}") };
            return step_finalizer(context, cluster, step, applied).await;
        }
    };
    match context.create(&job).await {
        Ok(Created::New(_)) => {
            applied.notes.push(Note::normal("CreatedRedisCleanupJob", "Create", "Made the Job that deletes the cluster's keys from Redis"));
        }
        // Made by another operator, or somebody else's: the watch tells, or the timeout ends it.
        Ok(Created::Exists) => {}
        Err(error) if is_namespace_ending(&error) => {
            let step = FinalizerStep::Force { why: "its namespace is being deleted and takes no new Job".to_owned() };
            return step_finalizer(context, cluster, step, applied).await;
        }
        Err(error) => {
            let text = format!("Cannot make the Job that deletes the cluster's keys from Redis: {error}");
            applied.notes.push(Note::warning("FailedToCreateRedisCleanupJob", "Create", text).about("redis cleanup"));
            applied.fail(error);
        }
    }
    Ok(())
}

fn is_namespace_ending(error: &ApiError) -> bool {
    let causes = error.status().and_then(|status| status.details.as_ref()).map(|details| details.causes.as_slice());
    causes.unwrap_or_default().iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Everything that names the cluster in calls.
struct Of<'a> {
    namespace: &'a str,
    uid: &'a str,
}

impl<'a> Of<'a> {
    fn cluster(cluster: &'a RayCluster) -> Self {
        let (namespace, _, uid) = identity(cluster);
        Self { namespace, uid }
    }
}
