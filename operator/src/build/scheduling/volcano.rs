//! Volcano (BS-10..BS-20, RJ-180): every cluster has a PodGroup, and one that a RayJob made shares the RayJob's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ObjectMeta;
use shared::api::rayjob::SubmissionMode;
use shared::api::{RayCluster, RayJob};
use shared::labels::{annotation, gang, label};
use shared::names;

use super::marks::{Marks, Parent, label_of};
use super::pod_group::{Group, PodGroup, Topology, Volcano};
use super::{Demand, Gang};
use crate::build::resources::template_amounts;
use crate::build::{owner_reference, submitter};

/// BS-16.
const FIRST_PHASE: &str = "Pending";

pub(super) fn marks(parent: Parent<'_>, group: &str) -> Marks {
    let mut marks = Marks::default();
    for key in [gang::VOLCANO_QUEUE, gang::PRIORITY_CLASS] {
        if let Some(value) = parent.label(key) {
            marks.label(key, value);
        }
    }
    // A cluster of a RayJob with clusterSelector is scheduled for itself, and the submitter as a Pod like any other (BS-15).
    if matches!(parent, Parent::Job(job) if is_shared(job)) {
        return marks;
    }
    marks.annotate(gang::VOLCANO_GROUP, &name(parent.metadata()));
    if !group.is_empty() {
        marks.annotate(gang::VOLCANO_TASK, group);
    }
    marks
}

/// BS-10, BS-12, BS-13.
pub(super) fn of_cluster(cluster: &RayCluster, wants_pods: bool) -> Gang {
    if job_of(&cluster.metadata).is_some() {
        return Gang::Leave;
    }
    if wants_pods {
        hold(&cluster.metadata, owner_reference(cluster), Demand::of(&cluster.spec))
    } else {
        settle(&cluster.metadata, owner_reference(cluster), Demand::default())
    }
}

/// BS-14, BS-15, BS-19.
pub(super) fn of_job(job: &RayJob, mode: SubmissionMode, cluster: Option<&RayCluster>, goes_on: bool) -> Gang {
    if is_shared(job) {
        return Gang::Leave;
    }
    let rests = |cluster: &RayCluster| cluster.spec.suspend == Some(true);
    if !goes_on || cluster.is_some_and(rests) {
        let left = cluster.filter(|cluster| !rests(cluster)).map(|cluster| Demand::of(&cluster.spec));
        return settle(&job.metadata, owner_reference(job), left.unwrap_or_default());
    }
    // Once the cluster is there, it is what counts: edits of the RayJob do not reach it, and it can be scaled.
    let Some(spec) = cluster.map(|cluster| &cluster.spec).or(job.spec.ray_cluster_spec.as_ref()) else { return Gang::Leave };
    let demand = Demand::of(spec);
    let demand = match mode {
        SubmissionMode::K8sJob => demand.and(&template_amounts(&submitter::outline(job))),
        // The head of a cluster that was made has it in its template.
        mode if submitter::in_head(mode) && cluster.is_none() => demand.and(&submitter::default_amounts()),
        _ => demand,
    };
    hold(&job.metadata, owner_reference(job), demand)
}

/// Whether the RayJob runs on a cluster that is not its own.
fn is_shared(job: &RayJob) -> bool {
    job.spec.cluster_selector.as_ref().is_some_and(|selector| !selector.is_empty())
}

/// Name of the RayJob that an object was made for.
fn job_of(metadata: &ObjectMeta) -> Option<&str> {
    label_of(metadata, label::ORIGINATED_FROM_CR_NAME).filter(|_| label_of(metadata, label::ORIGINATED_FROM_CRD) == Some("RayJob"))
}

/// BS-11.
fn name(metadata: &ObjectMeta) -> String {
    names::volcano_group(job_of(metadata).or(metadata.name.as_deref()).unwrap_or_default())
}

fn settle(owner: &ObjectMeta, reference: OwnerReference, demand: Demand) -> Gang {
    Gang::Settle(Box::new(Group::Volcano(PodGroup::new(name(owner), owner, reference, demand))))
}

/// BS-16.
fn hold(owner: &ObjectMeta, reference: OwnerReference, demand: Demand) -> Gang {
    let mut group = PodGroup::<Volcano>::new(name(owner), owner, reference, demand);
    let mut annotations = owner.annotations.clone().unwrap_or_default();
    // It describes the owner.
    annotations.remove(annotation::LAST_APPLIED);
    group.metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    group.spec.queue = label_of(owner, gang::VOLCANO_QUEUE).map(str::to_owned);
    group.spec.priority_class = label_of(owner, gang::PRIORITY_CLASS).map(str::to_owned);
    group.phase = Some(FIRST_PHASE);
    match topology(owner) {
        Ok(topology) => group.spec.topology = topology,
        Err(problem) => return Gang::Impossible { problem },
    }
    Gang::Hold(Box::new(Group::Volcano(group)))
}

fn topology(owner: &ObjectMeta) -> Result<Option<Topology>, String> {
    let Some(mode) = label_of(owner, gang::VOLCANO_TOPOLOGY_MODE) else { return Ok(None) };
    let highest_tier = match label_of(owner, gang::VOLCANO_TOPOLOGY_TIER) {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            format!("label {} must be a whole number such as 1, not {text:?}; correct it or remove it", gang::VOLCANO_TOPOLOGY_TIER)
        })?),
    };
    Ok(Some(Topology { mode: mode.to_owned(), highest_tier }))
}
