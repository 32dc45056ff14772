//! The spec as far as it can be acted upon.
//!
//! A running job whose spec was edited into something invalid is still followed to its end (C-21). So every value is taken only if it
//! makes sense by itself, and what would destroy something is not taken from an invalid spec at all.

use jiff::SignedDuration;
use shared::{
    api::{
        RayCluster, RayJob,
        rayjob::{DeletionStrategy, SubmissionMode},
    },
    features::Feature,
    labels::label,
};

use crate::{build::submitter::DEFAULT_BACKOFF_LIMIT, settings::Settings};

/// The spec, made sense of.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms<'a> {
    /// Who hands the job to Ray.
    pub mode: SubmissionMode,
    /// Whether the job is to be held.
    pub suspend: bool,
    /// Longest time of a try (RJ-62).
    pub active_deadline: Option<SignedDuration>,
    /// Longest time until a try's job may begin (RJ-63).
    pub pre_running_deadline: Option<SignedDuration>,
    /// How often a failed try is repeated (RJ-61).
    pub backoff_limit: i32,
    /// How often a submitter may fail (RJ-61).
    pub submitter_limit: i32,
    /// Whether the cluster goes after the job has ended.
    pub shutdown: bool,
    /// How long after.
    pub ttl: SignedDuration,
    /// What goes when, instead of `shutdown`.
    pub strategy: Option<&'a DeletionStrategy>,
    /// Name of the cluster to run on, where the user chose one.
    pub selector: Option<&'a str>,
}

impl<'a> Terms<'a> {
    /// The terms of `job`, whose cluster is `cluster` if it has one by now.
    pub fn of(job: &'a RayJob, valid: bool, cluster: Option<&RayCluster>, settings: &Settings) -> Self {
        let spec = &job.spec;
        let mode =
            SubmissionMode::parse(spec.submission_mode.as_deref()).or_else(|| mode_of(cluster?)).unwrap_or(SubmissionMode::Interactive);
        let selector = spec.cluster_selector.as_ref().filter(|selector| !selector.is_empty());
        let positive =
            |seconds: Option<i32>| seconds.filter(|seconds| *seconds > 0).map(|seconds| SignedDuration::from_secs(seconds.into()));
        // Neither a shared cluster nor a user who submits by hand can be had a second time (V-J-11, V-J-12).
        let once = selector.is_some() || mode == SubmissionMode::Interactive;
        Self {
            mode,
            suspend: valid && spec.suspend == Some(true),
            active_deadline: positive(spec.active_deadline_seconds),
            pre_running_deadline: positive(spec.pre_running_deadline_seconds),
            backoff_limit: if once { 0 } else { spec.backoff_limit.unwrap_or_default().max(0) },
            submitter_limit: spec
                .submitter_config
                .as_ref()
                .and_then(|config| config.backoff_limit)
                .filter(|limit| *limit >= 0)
                .unwrap_or(DEFAULT_BACKOFF_LIMIT),
            shutdown: spec.shutdown_after_job_finishes == Some(true),
            ttl: positive(spec.ttl_seconds_after_finished).unwrap_or_default(),
            strategy: spec.deletion_strategy.as_ref().filter(|_| settings.features.enabled(Feature::RayJobDeletionPolicy)),
            selector: selector.map(|selector| selector.get(label::CLUSTER).map(String::as_str).unwrap_or_default()),
        }
    }
}

/// The mode that a RayJob's cluster was made for.
fn mode_of(cluster: &RayCluster) -> Option<SubmissionMode> {
    let label = cluster.metadata.labels.as_ref()?.get(label::JOB_SUBMISSION_MODE)?;
    SubmissionMode::parse(Some(label))
}
