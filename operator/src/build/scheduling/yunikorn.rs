//! Apache YuniKorn (BS-30..BS-34, RJ-181): no objects, all is said on the Pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, PodTemplateSpec, Toleration};
use serde::Serialize;
use shared::api::RayClusterSpec;
use shared::api::raycluster::WorkerGroupSpec;
use shared::labels::{HEAD_GROUP, SUBMITTER_GROUP, gang};

use super::marks::{Marks, Parent};
use crate::build::resources::{desired_pods, least_pods, template_amounts};
use crate::build::submitter;

pub(super) fn marks(parent: Parent<'_>, group: &str) -> Marks {
    let mut marks = Marks::default();
    for (from, to) in [(gang::YUNIKORN_APP, gang::YUNIKORN_POD_APP), (gang::YUNIKORN_QUEUE, gang::YUNIKORN_POD_QUEUE)] {
        if let Some(value) = parent.label(from) {
            marks.label(to, value);
        }
    }
    if !parent.wants_gang() {
        return marks;
    }
    let Some(groups) = parent.annotation(gang::YUNIKORN_TASK_GROUPS).map(str::to_owned).or_else(|| task_groups(parent)) else {
        return marks;
    };
    marks.annotate(gang::YUNIKORN_TASK_GROUPS, &groups);
    if !group.is_empty() {
        marks.annotate(gang::YUNIKORN_TASK_GROUP, group);
    }
    marks
}

/// Pods that start together: as many as `minReplicas` says (BS-33). YuniKorn takes no group of none, so where `minReplicas` says
/// nothing, every wanted worker counts, unless an autoscaler decides how many there are.
fn members(group: &WorkerGroupSpec, autoscaling: bool) -> i32 {
    match least_pods(group) {
        0 if !autoscaling => desired_pods(group),
        least => least,
    }
}

/// BS-33. `None` for a RayJob without a cluster of its own: its submitter starts alone.
fn task_groups(parent: Parent<'_>) -> Option<String> {
    let spec: &RayClusterSpec = match parent {
        Parent::Cluster(cluster) => &cluster.spec,
        Parent::Job(job) => job.spec.ray_cluster_spec.as_ref()?,
    };
    // Only a RayJob that has a Pod for it speaks for its children.
    let submitter = match parent {
        Parent::Cluster(_) => None,
        Parent::Job(job) => Some(submitter::outline(job)),
    };
    let workers = spec.worker_groups().iter().map(|group| (&*group.group_name, members(group, spec.autoscaling()), &group.template));
    let all: Vec<TaskGroup<'_>> = std::iter::once((HEAD_GROUP, 1, &spec.head_group_spec.template))
        .chain(workers)
        .chain(submitter.as_ref().map(|template| (SUBMITTER_GROUP, 1, template)))
        .filter(|(_, members, _)| *members > 0)
        .map(|(name, members, template)| TaskGroup::new(name, members, template))
        .collect();
    serde_json::to_string(&all).ok()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskGroup<'a> {
    name: &'a str,
    min_member: i32,
    min_resource: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_selector: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    affinity: Option<&'a Affinity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerations: Option<&'a Vec<Toleration>>,
}

impl<'a> TaskGroup<'a> {
    fn new(name: &'a str, min_member: i32, template: &'a PodTemplateSpec) -> Self {
        let pod = template.spec.as_ref();
        Self {
            name,
            min_member,
            min_resource: template_amounts(template).into_iter().map(|(name, amount)| (name, amount.to_string())).collect(),
            node_selector: pod.and_then(|pod| pod.node_selector.as_ref()).filter(|selector| !selector.is_empty()),
            affinity: pod.and_then(|pod| pod.affinity.as_ref()),
            tolerations: pod.and_then(|pod| pod.tolerations.as_ref()).filter(|tolerations| !tolerations.is_empty()),
        }
    }
}
