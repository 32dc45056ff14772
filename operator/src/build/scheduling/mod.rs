//! Gang schedulers (BS-1..BS-54): which one there is, what it wants to find on Pods, and which PodGroup stands for a RayCluster or a
//! RayJob.
//!
//! Pure. Where no scheduler was chosen, nothing here adds anything to anything. One file per scheduler; what they share is in
//! [`demand`] and [`pod_group`].

mod demand;
mod kai;
mod marks;
pub mod pod_group;
mod scheduler_plugins;
mod volcano;
mod yunikorn;

use shared::api::rayjob::SubmissionMode;
use shared::api::{RayCluster, RayJob};

pub use demand::Demand;
pub use marks::{Parent, mark_cluster, mark_pod};
pub use pod_group::{Group, PodGroup};

use self::pod_group::{Family, Plugins, Volcano};
use crate::settings::Settings;

/// Label value that the operator's PodGroups have, and by which they are watched.
pub const GROUP_SELECTOR: &str = "app.kubernetes.io/created-by=kuberay-operator";

/// A gang scheduler that the operator works with: at most one in a process (BS-2, BS-3, RC-243).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Volcano.
    Volcano,
    /// Apache YuniKorn.
    YuniKorn,
    /// NVIDIA's KAI.
    Kai,
    /// The coscheduling plugin of kubernetes-sigs/scheduler-plugins.
    SchedulerPlugins,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Volcano, Self::YuniKorn, Self::SchedulerPlugins, Self::Kai];

    /// The scheduler that `--batch-scheduler` calls so.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }

    /// Name in `--batch-scheduler` (BS-2).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Volcano => "volcano",
            Self::YuniKorn => "yunikorn",
            Self::Kai => "kai-scheduler",
            Self::SchedulerPlugins => "scheduler-plugins",
        }
    }

    /// `schedulerName` of its Pods (BS-18, BS-31, BS-40, BS-50).
    pub const fn pod_scheduler(self) -> &'static str {
        match self {
            Self::SchedulerPlugins => "scheduler-plugins-scheduler",
            other => other.name(),
        }
    }

    /// Group and version of the PodGroups that the operator makes for it; `None` where it makes none (BS-30, BS-40).
    pub const fn pod_groups(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Volcano => Some((Volcano::GROUP, Volcano::VERSION)),
            Self::SchedulerPlugins => Some((Plugins::GROUP, Plugins::VERSION)),
            Self::YuniKorn | Self::Kai => None,
        }
    }
}

/// What is to become of the PodGroup of a RayCluster or a RayJob.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Gang {
    /// Nothing: there is none to care for, or it stays as it is.
    #[default]
    Leave,
    /// It is like this, and is made if it is not there. No Pod is made before.
    Hold(Box<Group>),
    /// If it is there, it asks for this much; it is not made (BS-19).
    Settle(Box<Group>),
    /// It goes.
    Remove {
        /// Its name.
        name: String,
    },
    /// It is wanted and cannot be made.
    Impossible {
        /// Why, with the label to change.
        problem: String,
    },
}

/// What becomes of the PodGroup of a cluster, which wants Pods or, while it is suspended, none: then nothing is to be kept free for it.
pub fn of_cluster(cluster: &RayCluster, wants_pods: bool, settings: &Settings) -> Gang {
    match settings.scheduler {
        Some(Scheduler::Volcano) => volcano::of_cluster(cluster, wants_pods),
        Some(Scheduler::SchedulerPlugins) => scheduler_plugins::of_cluster(cluster, wants_pods),
        Some(Scheduler::YuniKorn | Scheduler::Kai) | None => Gang::Leave,
    }
}

/// What becomes of the PodGroup of a RayJob (BS-14, BS-15, BS-19). `cluster` is the one that it made, unless that is gone or about to
/// go; `goes_on` says whether the job is still to run or to end.
pub fn of_job(job: &RayJob, mode: SubmissionMode, cluster: Option<&RayCluster>, goes_on: bool, settings: &Settings) -> Gang {
    match settings.scheduler {
        Some(Scheduler::Volcano) => volcano::of_job(job, mode, cluster, goes_on),
        // Its groups belong to clusters, also to those of RayJobs (BS-53).
        Some(Scheduler::SchedulerPlugins | Scheduler::YuniKorn | Scheduler::Kai) | None => Gang::Leave,
    }
}
