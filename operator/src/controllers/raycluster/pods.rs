//! The Pods of a cluster as decisions see them: which part each plays, how it fares, and what keeps it from working.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use shared::labels::label;

use crate::runtime::api::is_controlled_by;
use crate::runtime::pod_view::{ContainerStatus, Phase, PodView, RestartPolicy, Terminated};

/// A Pod that is owned by the cluster and is its head or one of its workers.
#[derive(Clone, Debug)]
pub struct ClusterPod {
    view: Arc<PodView>,
    role: Role,
}

/// Part that a Pod plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The head.
    Head,
    /// A worker of whatever group its label names.
    Worker,
}

/// How a Pod fares. The order is that in which Pods go when there are too many: the least useful comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fare {
    /// It will not work again and has to be replaced (RC-170).
    Ended,
    /// It has not been started.
    Pending,
    /// It runs and is not ready.
    Running,
    /// It runs and nothing says that it is not ready (RC-465).
    Ready,
}

/// A Pod whose deletion takes this much longer than its grace period is taken for stuck, such as on a node that is gone.
const STUCK_AFTER: SignedDuration = SignedDuration::from_secs(30);

impl ClusterPod {
    /// The Pod, if it is head or worker of the cluster with this uid. The labels alone do not make it so: Pods of a former cluster
    /// of the same name carry them, too, and so may anybody's.
    pub fn of(view: Arc<PodView>, cluster_uid: &str) -> Option<Self> {
        let role = match () {
            () if view.is_head() => Role::Head,
            () if view.is_worker() => Role::Worker,
            () => return None,
        };
        is_controlled_by(&view.metadata, cluster_uid).then_some(Self { view, role })
    }

    /// Everything that is known of it.
    pub fn view(&self) -> &PodView {
        &self.view
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.view.metadata.name.as_deref().unwrap_or_default()
    }

    /// Uid.
    pub fn uid(&self) -> &str {
        self.view.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether it is the head or a worker.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether it is a worker of this group. The node type counts, too: the head never passes for a worker of a group that has the
    /// name of its own (C-02).
    pub fn is_worker_of(&self, group: &str) -> bool {
        self.role == Role::Worker && self.group() == group
    }

    /// Name of its group.
    pub fn group(&self) -> &str {
        self.view.label(label::GROUP)
    }

    /// Name of the multi-host replica that it is part of, empty if it is none (RC-18).
    pub fn replica_name(&self) -> &str {
        self.view.label(label::WORKER_GROUP_REPLICA_NAME)
    }

    /// Index of its replica in the group (RC-18).
    pub fn replica_index(&self) -> Option<i32> {
        self.view.label(label::WORKER_GROUP_REPLICA_INDEX).parse().ok()
    }

    /// Index of the host within its multi-host replica (RC-18).
    pub fn host_index(&self) -> Option<i32> {
        self.view.label(label::REPLICA_HOST_INDEX).parse().ok()
    }

    /// When it was created.
    pub fn created(&self) -> Timestamp {
        self.view.creation_timestamp().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    }

    /// Whether somebody asked for its deletion.
    pub fn is_terminating(&self) -> bool {
        self.view.is_terminating()
    }

    /// Whether it is there to stay, as far as anybody asked.
    pub fn is_live(&self) -> bool {
        !self.is_terminating()
    }

    /// Until when a Pod that is being deleted still takes the place of its successor. After that it is stuck.
    pub fn vacates_by(&self) -> Option<Timestamp> {
        let deadline = self.view.metadata.deletion_timestamp.as_ref()?.0;
        Some(deadline.saturating_add(STUCK_AFTER).unwrap_or(deadline))
    }

    /// Whether it is being deleted and still counts, because its successor should not have to share the node with it.
    pub fn is_vacating(&self, now: Timestamp) -> bool {
        self.vacates_by().is_some_and(|until| now < until)
    }

    /// How it fares.
    pub fn fare(&self) -> Fare {
        let view = &*self.view;
        let ray_ended = || {
            view.spec.restart_policy == RestartPolicy::Never && view.ray_container().is_some_and(|status| status.state.terminated.is_some())
        };
        match view.status.phase {
            Phase::Failed | Phase::Succeeded => Fare::Ended,
            Phase::Running if ray_ended() => Fare::Ended,
            Phase::Running if view.condition("Ready").is_none_or(|ready| &*ready.status == "True") => Fare::Ready,
            Phase::Running => Fare::Running,
            Phase::Pending | Phase::Unknown => Fare::Pending,
        }
    }

    /// Whether it runs, ready or not.
    pub fn runs(&self) -> bool {
        self.view.status.phase == Phase::Running
    }
}

/// What keeps a Pod from working, as far as its status tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// One word, such as `ErrImagePull`, `Unschedulable`, `OOMKilled` or `Evicted`.
    pub reason: String,
    /// Pod, container, exit code and what Kubernetes says about it.
    pub message: String,
}

/// Reasons of waiting that every healthy start goes through.
const USUAL_WAITING: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

/// What keeps this Pod from working; `None` if it works, or is on its way without anything being wrong.
pub fn trouble(pod: &PodView) -> Option<Trouble> {
    let status = &pod.status;
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let in_container = status
        .init_container_statuses
        .iter()
        .map(|container| ("init container", container))
        .chain(status.container_statuses.iter().map(|container| ("container", container)))
        .find_map(|(what, container)| {
            container_trouble(container).map(|(reason, text)| (reason, format!("{what} {} {text}", container.name)))
        });
    let ended = status.phase == Phase::Failed;
    let found = match in_container {
        // The kubelet's own reason (Evicted, DeadlineExceeded, …) explains the containers' ends.
        _ if ended && !status.reason.is_empty() => Some((status.reason.to_string(), sentence(&status.message))),
        Some(found) => Some(found),
        None if ended => Some(("PodFailed".to_owned(), sentence(&status.message))),
        None => unschedulable(pod),
    };
    let (reason, text) = found?;
    let message = if text.is_empty() { format!("Pod {name}: {reason}") } else { format!("Pod {name}: {text}") };
    Some(Trouble { reason, message })
}

fn unschedulable(pod: &PodView) -> Option<(String, String)> {
    let scheduled = pod.condition("PodScheduled").filter(|condition| &*condition.status == "False")?;
    (&*scheduled.reason == "Unschedulable").then(|| ("Unschedulable".to_owned(), sentence(&scheduled.message)))
}

fn container_trouble(container: &ContainerStatus) -> Option<(String, String)> {
    let state = &container.state;
    if let Some(waiting) = state.waiting.as_deref().filter(|waiting| !USUAL_WAITING.contains(&&*waiting.reason)) {
        let last = container.last_state.terminated.as_deref().map(|ended| format!("; last time it {}", end(ended))).unwrap_or_default();
        return Some((waiting.reason.to_string(), format!("waits: {}{last}", explained(&waiting.reason, &waiting.message))));
    }
    let ended = state.terminated.as_deref().filter(|ended| ended.exit_code != 0)?;
    let reason = if ended.reason.is_empty() { "Error" } else { &ended.reason };
    Some((reason.to_owned(), end(ended)))
}

fn end(ended: &Terminated) -> String {
    let reason = if ended.reason.is_empty() { "Error" } else { &ended.reason };
    format!("ended with exit code {} ({})", ended.exit_code, explained(reason, &ended.message))
}

fn explained(reason: &str, message: &str) -> String {
    let message = sentence(message);
    if message.is_empty() { reason.to_owned() } else { format!("{reason}, {message}") }
}

/// Longest text taken over from a Pod's status; a termination message may have 4 KiB.
const MAX_TEXT: usize = 400;

/// A text on one line and of bearable length.
fn sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
