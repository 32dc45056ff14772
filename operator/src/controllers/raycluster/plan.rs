//! Decides what is to be done with a cluster: pure, from the object, what was observed, what is remembered, and the time.

mod children;
mod group;
mod head;
mod multihost;
pub mod names;
pub mod phase;
pub mod teardown;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::RayCluster;
use shared::api::raycluster::{AutoscalerVersion, RayClusterUpgradeType, WorkerGroupSpec};
use shared::features::Feature;
use shared::labels::annotation;

pub use children::{DesiredChildren, Wanted};
pub use phase::Phase;
pub use teardown::{CleanupJob, FinalizerStep};

use self::group::{GroupPlan, GroupView};
use self::teardown::Teardown;
use super::memory::{ClusterMemory, GroupMemory};
use super::notes::Note;
use super::pods::{ClusterPod, Role};
use super::status::condition;
use crate::build::pod::Replica;
use crate::build::resources::hosts_per_replica;
use crate::build::scheduling::{self, Gang};
use crate::build::spec_hash;
use crate::runtime::views::ServiceView;
use crate::settings::{Settings, VERSION};

/// What was seen of a cluster.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object.
    pub cluster: Arc<RayCluster>,
    /// Whether it can be worked with.
    pub verdict: Verdict,
    /// Its head and workers.
    pub pods: Vec<ClusterPod>,
    /// The Service of its head.
    pub head_service: Option<Arc<ServiceView>>,
    /// The Job that deletes its keys from Redis.
    pub cleanup_job: CleanupJob,
}

/// What the rules say about the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong with it.
    Valid,
    /// Something is wrong: nothing is made or changed until it is put right.
    Invalid {
        /// Reason of the event (RC-102).
        reason: &'static str,
        /// What is wrong.
        message: String,
    },
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the cluster is going through.
    pub stage: Stage,
    /// The finalizer.
    pub finalizer: FinalizerStep,
    /// Objects around the Pods.
    pub children: DesiredChildren,
    /// Pods.
    pub pods: PodActions,
    /// Whether the Job that deletes keys from Redis is to be made.
    pub start_cleanup: bool,
    /// What is to be said.
    pub notes: Vec<Note>,
    /// When time alone makes a difference.
    pub wake: Option<Timestamp>,
}

/// What a cluster is going through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is being deleted.
    Deleting,
    /// Its spec is wrong; what there is stays as it is.
    Invalid,
    /// Every Pod goes because the template changed (RC-153).
    Recreating,
    /// It runs, or goes through suspension.
    In(Phase),
}

/// What is to be done with Pods.
#[derive(Clone, Debug, Default)]
pub struct PodActions {
    /// Pods that go.
    pub delete: Vec<Deletion>,
    /// The head that comes.
    pub create_head: Option<NewHead>,
    /// Workers that come, by group.
    pub create_workers: Vec<NewWorkers>,
    /// A head that another version of the operator made and that is taken over as it is (RC-156).
    pub refresh_head: Option<ClusterPod>,
}

impl PodActions {
    /// Whether Pods come.
    pub fn makes_pods(&self) -> bool {
        self.create_head.is_some() || !self.create_workers.is_empty()
    }

    /// Whether Pods go that may be at work. Such a decision is taken again on what the API server itself says, because a cache that
    /// lags behind could count Pods that are gone already.
    pub fn needs_live_view(&self) -> bool {
        self.delete.iter().any(|deletion| deletion.why.needs_live_view())
    }
}

/// A Pod that goes.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// The Pod.
    pub pod: ClusterPod,
    /// Why it goes.
    pub why: Why,
}

/// Why a Pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It ended, or another Pod of its replica did (RC-178, RC-187).
    Ended,
    /// It is listed in `workersToDelete`, or another Pod of its replica is (RC-179, RC-188).
    Listed,
    /// Its replica has lost another Pod (RC-186).
    ReplicaBroken,
    /// There are more than wanted (RC-182).
    Surplus,
    /// It was made twice.
    Double,
    /// Its group is no longer in the spec (C-27).
    GroupRemoved,
    /// Its group is suspended (RC-177).
    GroupSuspended,
    /// The cluster is suspended (RC-151).
    ClusterSuspended,
    /// The template changed and the upgrade strategy is Recreate (RC-153).
    OutOfDate,
    /// The cluster is being deleted (RC-110).
    ClusterDeleted,
}

impl Why {
    const fn needs_live_view(self) -> bool {
        match self {
            Self::ReplicaBroken | Self::Surplus | Self::Double | Self::GroupRemoved => true,
            Self::Ended | Self::Listed | Self::GroupSuspended | Self::ClusterSuspended | Self::OutOfDate | Self::ClusterDeleted => false,
        }
    }

    /// The reason in words, to go behind "Deleted Pod x: ".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ended => "it, or a Pod of the same replica, has ended and is to be replaced",
            Self::Listed => "it, or a Pod of the same replica, is listed in workersToDelete",
            Self::ReplicaBroken => "its multi-host replica has lost a Pod",
            Self::Surplus => "the group has more Pods than wanted",
            Self::Double => "it was made twice",
            Self::GroupRemoved => "its worker group is no longer in the spec",
            Self::GroupSuspended => "its worker group is suspended",
            Self::ClusterSuspended => "the cluster is suspended",
            Self::OutOfDate => "the Pod template has changed and upgradeStrategy is Recreate",
            Self::ClusterDeleted => "the cluster is being deleted",
        }
    }
}

/// A head that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHead {
    /// Its name, unless the template or a switch fixes it.
    pub name: Option<String>,
}

/// Workers that come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorkers {
    /// Place of the group in the spec.
    pub group: usize,
    /// The workers, in order.
    pub workers: Vec<NewWorker>,
}

/// A worker that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorker {
    /// Its name.
    pub name: String,
    /// Its place in the group, with the gate RayMultiHostIndexing (RC-18).
    pub replica: Option<Replica>,
}

/// Decides.
pub fn plan(observed: &Observed, memory: &mut ClusterMemory, settings: &Settings, now: Timestamp) -> Plan {
    let cluster = &*observed.cluster;
    let groups: Vec<&str> = cluster.spec.worker_groups().iter().map(|group| group.group_name.as_str()).collect();
    memory.forget_gone(&groups, &observed.pods);
    memory.names.turn_to(now);
    if cluster.metadata.deletion_timestamp.is_some() {
        return deletion(observed, settings, now);
    }
    if let Verdict::Invalid { reason, message } = &observed.verdict {
        let note = Note::warning(reason, "Validate", message.clone()).about("spec");
        return Plan { notes: vec![note], ..Plan::idle(Stage::Invalid) };
    }
    let (children, mut notes) = children::desired(cluster, !observed.pods.is_empty(), observed.head_service.as_deref(), settings);
    let mut plan = Plan { finalizer: teardown::upkeep(cluster, settings), children, ..Plan::idle(Stage::In(Phase::Active)) };
    plan.notes.append(&mut notes);
    plan.notes.extend(advice(cluster));

    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let gated = settings.features.enabled(Feature::RayClusterStatusConditions);
    let phase = phase::phase(conditions, cluster.spec.suspend == Some(true), !observed.pods.is_empty(), gated);
    plan.stage = Stage::In(phase);
    if phase != Phase::Active {
        memory.drop_refusals();
    }
    plan.children.pod_group = match phase {
        Phase::Active => scheduling::of_cluster(cluster, true, settings),
        // As long as Pods are there, so is their group.
        Phase::Asked => Gang::Leave,
        Phase::Suspending | Phase::Suspended => scheduling::of_cluster(cluster, false, settings),
    };
    match phase {
        Phase::Active => match upgrade(cluster, &observed.pods) {
            Upgrade::Recreate => {
                plan.stage = Stage::Recreating;
                memory.drop_refusals();
                plan.delete_all(&observed.pods, Why::OutOfDate);
            }
            Upgrade::Refresh(head) => {
                plan.pods.refresh_head = Some(head);
                plan_pods(&mut plan, observed, memory, settings, now);
            }
            Upgrade::Nothing => plan_pods(&mut plan, observed, memory, settings, now),
        },
        Phase::Suspending => plan.delete_all(&observed.pods, Why::ClusterSuspended),
        Phase::Asked | Phase::Suspended => {}
    }
    plan
}

impl Plan {
    fn idle(stage: Stage) -> Self {
        Self {
            stage,
            finalizer: FinalizerStep::Keep,
            children: DesiredChildren::untouched(),
            pods: PodActions::default(),
            start_cleanup: false,
            notes: Vec::new(),
            wake: None,
        }
    }

    fn wake_at(&mut self, time: Option<Timestamp>) {
        self.wake = self.wake.into_iter().chain(time).min();
    }

    fn delete_all(&mut self, pods: &[ClusterPod], why: Why) {
        // The head goes last: if the operator stops half way, it is still there to tell that the rest has to go.
        let mut all: Vec<&ClusterPod> = pods.iter().filter(|pod| pod.is_live()).collect();
        all.sort_by_key(|pod| pod.role() == Role::Head);
        self.pods.delete.extend(all.into_iter().map(|pod| Deletion { pod: pod.clone(), why }));
    }
}

/// RC-102: the first autoscaler replaces workers itself, which does not go together with containers that start again.
fn advice(cluster: &RayCluster) -> Option<Note> {
    let version = cluster.spec.autoscaler_options.as_ref().and_then(|options| options.version);
    if !cluster.spec.autoscaling() || version != Some(AutoscalerVersion::V1) {
        return None;
    }
    let restarts = |group: &&WorkerGroupSpec| {
        let policy = group.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or_default();
        !matches!(policy, "" | "Never")
    };
    let group = cluster.spec.worker_groups().iter().find(restarts)?;
    let text = format!("Group {}: with autoscaler v1 the workers' restartPolicy should be Never", group.group_name);
    Some(Note::warning("InvalidRayClusterSpec", "Validate", text).about("advice"))
}

fn deletion(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    let cluster = &*observed.cluster;
    let mut plan = Plan::idle(Stage::Deleting);
    let head_left = observed.pods.iter().any(|pod| pod.role() == Role::Head);
    let step = teardown::next(cluster, head_left, observed.cleanup_job, settings, now);
    match step {
        // The garbage collector takes care of everything that the cluster owns.
        Teardown::Done(step) => {
            plan.finalizer = step;
            return plan;
        }
        Teardown::StartJob => plan.start_cleanup = true,
        Teardown::WaitForHead | Teardown::WaitForJob => {}
    }
    plan.delete_all(&observed.pods, Why::ClusterDeleted);
    plan.wake_at(teardown::deadline(cluster));
    plan
}

enum Upgrade {
    /// Nothing is to be done.
    Nothing,
    /// The head was made by another version of the operator, whose hash cannot be compared: it is taken over.
    Refresh(ClusterPod),
    /// The template changed.
    Recreate,
}

/// RC-156. A head that is on its way out for this reason keeps its successors from being made until it is gone.
fn upgrade(cluster: &RayCluster, pods: &[ClusterPod]) -> Upgrade {
    let strategy = cluster.spec.upgrade_strategy.as_ref().and_then(|strategy| strategy.type_);
    let Some(head) = pods.iter().find(|pod| pod.role() == Role::Head) else { return Upgrade::Nothing };
    if strategy != Some(RayClusterUpgradeType::Recreate) {
        return Upgrade::Nothing;
    }
    let view = head.view();
    let (version, hash) = (view.annotation(annotation::KUBERAY_VERSION), view.annotation(annotation::UPGRADE_STRATEGY_RECREATE_HASH));
    match () {
        () if !version.is_empty() && version != VERSION => {
            if head.is_live() {
                Upgrade::Refresh(head.clone())
            } else {
                Upgrade::Nothing
            }
        }
        () if !hash.is_empty() && hash != spec_hash(&cluster.spec) => Upgrade::Recreate,
        () => Upgrade::Nothing,
    }
}

/// The borrow of one field of the memory, next to others.
fn group_memory<'a>(groups: &'a mut BTreeMap<String, Box<GroupMemory>>, name: &str) -> &'a mut GroupMemory {
    groups.entry(name.to_owned()).or_default()
}

fn plan_pods(plan: &mut Plan, observed: &Observed, memory: &mut ClusterMemory, settings: &Settings, now: Timestamp) {
    let cluster = &*observed.cluster;
    let provisioned = condition::holds(cluster.status.as_ref(), condition::PROVISIONED);
    let head = head::plan(cluster, &observed.pods, provisioned, &memory.names, &mut memory.head, settings, now);
    plan.take(&head.group);
    plan.pods.create_head = head.create;
    if head.group.healthy {
        memory.head.crashes.recovered();
    }
    let indexing = settings.features.enabled(Feature::RayMultiHostIndexing);
    for (place, group) in cluster.spec.worker_groups().iter().enumerate() {
        let view = GroupView {
            cluster_uid: cluster.metadata.uid.as_deref().unwrap_or_default(),
            cluster_name: cluster.metadata.name.as_deref().unwrap_or_default(),
            group,
            pods: &observed.pods,
            chooses_victims: !cluster.spec.autoscaling() || settings.switches.random_pod_delete,
            indexing,
            used: &memory.names,
            now,
        };
        let known = group_memory(&mut memory.groups, &group.group_name);
        let group_plan = if indexing && hosts_per_replica(group) > 1 { multihost::plan(&view, known) } else { workers::plan(&view, known) };
        if group_plan.healthy {
            known.crashes.recovered();
        }
        plan.take(&group_plan);
        if !head.hold_workers && !group_plan.create.is_empty() {
            plan.pods.create_workers.push(NewWorkers { group: place, workers: group_plan.create });
        }
        let wrong = view.wrongly_listed();
        if !wrong.is_empty() {
            let text = format!("Kept {}: listed in workersToDelete of group {}, but no worker of it", wrong.join(", "), group.group_name);
            plan.notes.push(Note::warning("FailedToDeleteWorkerPod", "Delete", text).about(&format!("listed {}", group.group_name)));
        }
    }
    let groups = cluster.spec.worker_groups();
    let is_orphan = |pod: &&ClusterPod| pod.role() == Role::Worker && !groups.iter().any(|group| group.group_name == pod.group());
    let orphans = observed.pods.iter().filter(|pod| pod.is_live()).filter(is_orphan);
    plan.pods.delete.extend(orphans.map(|pod| Deletion { pod: pod.clone(), why: Why::GroupRemoved }));
}

impl Plan {
    fn take(&mut self, group: &GroupPlan) {
        self.pods.delete.extend(group.delete.iter().cloned());
        self.wake_at(group.wake);
    }
}
