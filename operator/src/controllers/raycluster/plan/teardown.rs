//! The end of a cluster that keeps its state in Redis: the finalizer holds the RayCluster until its keys are gone, or until that
//! has taken too long (RC-108..RC-117). Nothing of this depends on whether the spec is valid (C-22).

use jiff::{SignedDuration, Timestamp};
use shared::api::RayCluster;
use shared::labels::{annotation, finalizer};

use crate::build::{GcsStore, gcs_store};
use crate::settings::Settings;

/// How long the clean-up may take unless the cluster says otherwise (RC-114).
const DEFAULT_TIMEOUT: SignedDuration = SignedDuration::from_secs(300);

/// What is to be done about the finalizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FinalizerStep {
    /// Nothing.
    #[default]
    Keep,
    /// Put it on, before any Pod exists.
    Add,
    /// Take it off: it is not needed, or the clean-up is over.
    Remove,
    /// Take it off although keys may be left in Redis, and say so.
    Force {
        /// Why.
        why: String,
    },
}

/// What is known of the Job that deletes the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupJob {
    /// There is none.
    Absent,
    /// It has not ended.
    Runs,
    /// It has ended, well or not (RC-113).
    Ended,
}

/// A step of the deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// The finalizer is not on the cluster, or not needed: nothing holds the deletion any longer.
    Done(FinalizerStep),
    /// Every Pod goes; the head must be gone before its keys are deleted, or it would write new ones (RC-110).
    WaitForHead,
    /// Make the Job.
    StartJob,
    /// The Job runs.
    WaitForJob,
}

/// Whether the cluster has the finalizer.
pub fn is_held(cluster: &RayCluster) -> bool {
    cluster.metadata.finalizers.iter().flatten().any(|name| name == finalizer::GCS_FT_REDIS_CLEANUP)
}

/// Whether the cluster's keys are deleted from Redis at its end (RC-108).
pub fn applies(cluster: &RayCluster, settings: &Settings) -> bool {
    settings.switches.redis_cleanup && gcs_store(cluster) == Some(GcsStore::Redis)
}

/// What to do about the finalizer of a cluster that is not being deleted. One that is no longer needed would hold the deletion for
/// nothing (RC-117).
pub fn upkeep(cluster: &RayCluster, settings: &Settings) -> FinalizerStep {
    match (applies(cluster, settings), is_held(cluster)) {
        (true, false) => FinalizerStep::Add,
        (false, true) => FinalizerStep::Remove,
        _ => FinalizerStep::Keep,
    }
}

/// When the clean-up has taken too long; `None` for a cluster that is not being deleted.
pub fn deadline(cluster: &RayCluster) -> Option<Timestamp> {
    let begun = cluster.metadata.deletion_timestamp.as_ref()?.0;
    let asked = cluster.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::FT_DELETION_TIMEOUT));
    let asked = asked.and_then(|text| text.trim().parse::<i32>().ok()).filter(|seconds| *seconds > 0);
    let timeout = asked.map_or(DEFAULT_TIMEOUT, |seconds| SignedDuration::from_secs(seconds.into()));
    Some(begun.saturating_add(timeout).unwrap_or(begun))
}

/// The next step of a cluster that is being deleted. `head_left` says whether a head Pod still exists in any state.
pub fn next(cluster: &RayCluster, head_left: bool, job: CleanupJob, settings: &Settings, now: Timestamp) -> Teardown {
    if !is_held(cluster) {
        return Teardown::Done(FinalizerStep::Keep);
    }
    if !applies(cluster, settings) {
        return Teardown::Done(FinalizerStep::Remove);
    }
    if job == CleanupJob::Ended {
        return Teardown::Done(FinalizerStep::Remove);
    }
    if deadline(cluster).is_some_and(|deadline| now >= deadline) {
        return Teardown::Done(FinalizerStep::Force { why: "deleting the cluster's keys from Redis took too long".to_owned() });
    }
    match job {
        _ if head_left => Teardown::WaitForHead,
        CleanupJob::Absent => Teardown::StartJob,
        CleanupJob::Runs | CleanupJob::Ended => Teardown::WaitForJob,
    }
}
