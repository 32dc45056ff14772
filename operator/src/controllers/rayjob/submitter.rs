//! What has become of the submitter: one view of a Job (K8sJobMode) and a container of the head Pod (SidecarMode).

use jiff::Timestamp;
use shared::{
    api::{RayCluster, RayJob, rayjob::SubmissionMode},
    labels::container::SUBMITTER,
};

use super::{
    seen::{Seen, uid},
    terms::Terms,
};
use crate::{
    build::submitter::in_head,
    runtime::{
        api::is_controlled_by,
        pod_view::{ContainerStatus, PodView},
        views::JobView,
    },
};

/// What has become of the submitter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitter {
    /// The mode has none.
    None,
    /// There is none, and one could be made.
    Absent,
    /// Something else has its name.
    Taken {
        /// Whether that is on its way out.
        going: bool,
    },
    /// It works, or will.
    Active,
    /// It will do nothing more.
    Ended {
        /// Whether it failed at its own task: handing the job to Ray and showing its logs.
        failed: bool,
        /// When it ended, if that is known.
        at: Option<Timestamp>,
        /// How it ended, as half a sentence.
        how: String,
        /// Version of the kubelet, if it is to blame that the submitter was not started again (WEAK-16).
        old_kubelet: Option<String>,
    },
    /// The head Pod that it lives in is gone (RJ-143).
    HeadGone,
}

impl Submitter {
    /// What has become of the submitter of `job`.
    pub fn of(job: &RayJob, seen: &Seen, terms: &Terms<'_>) -> Self {
        match terms.mode {
            SubmissionMode::K8sJob => seen.submitter.as_deref().map_or(Self::Absent, |found| of_job(found, uid(job))),
            mode if in_head(mode) => of_head(seen, terms),
            _ => Self::None,
        }
    }

    /// Whether it will do nothing more.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::HeadGone)
    }
}

/// RJ-44, WEAK-10.
fn of_job(found: &JobView, owner: &str) -> Submitter {
    let going = found.metadata.deletion_timestamp.is_some();
    if going || !is_controlled_by(&found.metadata, owner) {
        return Submitter::Taken { going };
    }
    let ended = |failed: bool, name: &str| {
        found.condition(name).map(|condition| {
            let mut how = if failed { "its Job failed".to_owned() } else { "its Job is complete".to_owned() };
            for word in [&condition.reason, &condition.message] {
                if !word.is_empty() {
                    how = format!("{how}: {word}");
                }
            }
            Submitter::Ended { failed, at: condition.last_transition_time, how, old_kubelet: None }
        })
    };
    ended(true, "Failed").or_else(|| ended(false, "Complete")).unwrap_or(Submitter::Active)
}

/// RJ-143..RJ-146, with the crash gap and the old kubelet kept apart from an end (WEAK-16).
fn of_head(seen: &Seen, terms: &Terms<'_>) -> Submitter {
    let Some(head) = seen.live_head() else { return Submitter::HeadGone };
    let Some(container) = head.container(SUBMITTER) else { return Submitter::Active };
    let restarts = seen.cluster.as_deref().is_some_and(is_restarted);
    let terminated = container.state.terminated.as_deref();
    let ended_well = terminated.is_some_and(|state| state.exit_code == 0);
    if !restarts || ended_well {
        return match terminated {
            Some(_) => ended(container, head, !ended_well, None),
            None => Submitter::Active,
        };
    }
    // Kubernetes' own Jobs would allow one restart more; KubeRay counts like this (WEAK-15).
    let crashed_before = container.last_state.terminated.is_some();
    if crashed_before && container.restart_count >= terms.submitter_limit {
        return ended(container, head, true, None);
    }
    match (terminated, &seen.old_kubelet) {
        (Some(_), Some(version)) => ended(container, head, true, Some(version.clone())),
        _ => Submitter::Active,
    }
}

fn ended(container: &ContainerStatus, head: &PodView, failed: bool, old_kubelet: Option<String>) -> Submitter {
    let last = container.state.terminated.as_deref().or(container.last_state.terminated.as_deref());
    let mut how = match last {
        Some(state) => format!(
            "container {SUBMITTER} of Pod {} ended with exit code {}",
            head.metadata.name.as_deref().unwrap_or_default(),
            state.exit_code
        ),
        None => format!("container {SUBMITTER} ended"),
    };
    if let Some(reason) = last.map(|state| &state.reason).filter(|reason| !reason.is_empty()) {
        how = format!("{how} ({reason})");
    }
    if container.restart_count > 0 {
        how = format!("{how} after {} restarts", container.restart_count);
    }
    let at = container.state.terminated.as_deref().and_then(|state| state.finished_at);
    Submitter::Ended { failed, at, how, old_kubelet }
}

/// Whether the kubelet is to restart a submitter that failed. What the cluster was made with counts, not the gate of today.
pub fn is_restarted(cluster: &RayCluster) -> bool {
    let containers = cluster.spec.head_group_spec.template.spec.iter().flat_map(|pod| &pod.containers);
    containers.into_iter().any(|container| container.name == SUBMITTER && container.restart_policy.as_deref() == Some("OnFailure"))
}

/// Whether the submitter has crashed and waits for the kubelet to start it again, as far as one can see. Then the kubelet's version
/// matters.
pub fn is_in_crash_gap(seen: &Seen) -> bool {
    let restarts = seen.cluster.as_deref().is_some_and(is_restarted);
    let state = |head: &PodView| {
        head.container(SUBMITTER).is_some_and(|found| found.state.terminated.as_ref().is_some_and(|end| end.exit_code != 0))
    };
    restarts && seen.live_head().is_some_and(|head| state(head))
}
