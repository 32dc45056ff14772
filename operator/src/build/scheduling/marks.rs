//! What a scheduler wants to find on Pods: labels, annotations, its name.

use k8s_openapi::api::core::v1::PodSpec;
use kube::core::ObjectMeta;
use shared::api::rayjob::SubmissionMode;
use shared::api::{RayCluster, RayJob};
use shared::labels::gang;

use super::{Scheduler, kai, scheduler_plugins, volcano, yunikorn};
use crate::settings::Settings;

/// Whose labels and annotations speak for a child.
#[derive(Clone, Copy, Debug)]
pub enum Parent<'a> {
    /// The cluster of a Pod.
    Cluster(&'a RayCluster),
    /// The RayJob of a submitter or of a cluster.
    Job(&'a RayJob),
}

impl<'a> Parent<'a> {
    pub(super) fn metadata(self) -> &'a ObjectMeta {
        match self {
            Self::Cluster(cluster) => &cluster.metadata,
            Self::Job(job) => &job.metadata,
        }
    }

    /// A label that says something.
    pub(super) fn label(self, key: &str) -> Option<&'a str> {
        label_of(self.metadata(), key)
    }

    /// An annotation that says something.
    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.metadata().annotations.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether its Pods are to start together, where the scheduler leaves the choice to a label (BS-6). KubeRay looks at the key alone;
    /// `false` means what it says here (BS-32).
    pub(super) fn wants_gang(self) -> bool {
        let value = self.metadata().labels.as_ref().and_then(|labels| labels.get(gang::ENABLED));
        value.is_some_and(|value| !value.trim().eq_ignore_ascii_case("false"))
    }
}

/// A label that says something.
pub(super) fn label_of<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// Labels and annotations for a child.
#[derive(Debug, Default)]
pub(super) struct Marks {
    labels: Vec<(&'static str, String)>,
    annotations: Vec<(&'static str, String)>,
}

impl Marks {
    pub(super) fn label(&mut self, key: &'static str, value: &str) {
        self.labels.push((key, value.to_owned()));
    }

    pub(super) fn annotate(&mut self, key: &'static str, value: &str) {
        self.annotations.push((key, value.to_owned()));
    }

    fn put_on(self, metadata: &mut ObjectMeta) {
        if !self.labels.is_empty() {
            metadata.labels.get_or_insert_default().extend(self.labels.into_iter().map(|(key, value)| (key.to_owned(), value)));
        }
        if !self.annotations.is_empty() {
            metadata.annotations.get_or_insert_default().extend(self.annotations.into_iter().map(|(key, value)| (key.to_owned(), value)));
        }
    }
}

/// What the scheduler wants of a child of `parent` in this group of Pods; the group is empty for a RayCluster.
fn marks(scheduler: Scheduler, parent: Parent<'_>, group: &str) -> Marks {
    match scheduler {
        Scheduler::Volcano => volcano::marks(parent, group),
        Scheduler::YuniKorn => yunikorn::marks(parent, group),
        Scheduler::Kai => kai::marks(parent),
        Scheduler::SchedulerPlugins => scheduler_plugins::marks(parent),
    }
}

/// Hands a Pod, or the template of one, over to the scheduler (BS-5). `group` is its worker group, or what stands for one.
pub fn mark_pod(metadata: &mut ObjectMeta, spec: &mut PodSpec, parent: Parent<'_>, group: &str, settings: &Settings) {
    let Some(scheduler) = settings.scheduler else { return };
    marks(scheduler, parent, group).put_on(metadata);
    spec.scheduler_name = Some(scheduler.pod_scheduler().to_owned());
}

/// Gives the cluster of a RayJob what its Pods are to have from the RayJob rather than from the cluster (BS-5, BS-34). That makes a
/// difference only where the RayJob has a Pod besides them.
pub fn mark_cluster(cluster: &mut RayCluster, job: &RayJob, mode: SubmissionMode, settings: &Settings) {
    if let Some(scheduler) = settings.scheduler.filter(|_| mode == SubmissionMode::K8sJob) {
        marks(scheduler, Parent::Job(job), "").put_on(&mut cluster.metadata);
    }
}
