//! Labels and annotations of Pods (RC-17..RC-21).

use std::collections::BTreeMap;

use shared::api::raycluster::WorkerGroupSpec;
use shared::labels::{APPLICATION_NAME, HEAD_GROUP, OPERATOR_NAME, annotation, label};
use shared::names;

use super::draft::Draft;
use super::{Node, Replica};
use crate::build::context::{Context, Creator};
use crate::build::resources::hosts_per_replica;
use crate::build::spec_hash;
use crate::settings::VERSION;

/// Labels that say which Pod this is; a user cannot change them (RC-17).
const FIXED: [&str; 3] = [label::NODE_TYPE, label::GROUP, label::CLUSTER];

pub(super) fn label_head(pod: &mut Draft, cx: &Context<'_>) {
    let group = &cx.cluster.spec.head_group_spec;
    set_labels(pod, Node::Head, HEAD_GROUP, group.labels.as_ref(), cx);
}

pub(super) fn label_worker(pod: &mut Draft, group: &WorkerGroupSpec, replica: Option<&Replica>, cx: &Context<'_>) {
    set_labels(pod, Node::Worker, &group.group_name, group.labels.as_ref(), cx);
    let Some(replica) = replica else { return };
    pod.label(label::WORKER_GROUP_REPLICA_INDEX, replica.index.to_string());
    if hosts_per_replica(group) > 1 {
        pod.label(label::WORKER_GROUP_REPLICA_NAME, &replica.name);
        pod.label(label::REPLICA_HOST_INDEX, replica.host_index.to_string());
    }
}

/// The operator's labels, overlaid by the template's, overlaid by the group's top-level ones.
fn set_labels(pod: &mut Draft, node: Node, group: &str, group_labels: Option<&BTreeMap<String, String>>, cx: &Context<'_>) {
    let own = [
        (label::IS_RAY_NODE, "yes".to_owned()),
        (label::CLUSTER, cx.name.to_owned()),
        (label::NODE_TYPE, node.as_str().to_owned()),
        (label::GROUP, group.to_owned()),
        (label::IDENTIFIER, names::identifier(cx.name, node.as_str())),
        (label::K8S_NAME, APPLICATION_NAME.to_owned()),
        (label::K8S_CREATED_BY, OPERATOR_NAME.to_owned()),
    ];
    let mut labels: BTreeMap<String, String> = own.map(|(key, value)| (key.to_owned(), value)).into();
    let template = pod.metadata.labels.take().unwrap_or_default();
    let users = template.into_iter().chain(group_labels.cloned().unwrap_or_default());
    labels.extend(users.filter(|(key, _)| !FIXED.contains(&key.as_str())));
    pod.metadata.labels = Some(labels);
}

/// Annotations of every Pod.
pub(super) fn annotate(pod: &mut Draft, cx: &Context<'_>) {
    if cx.overwrites_command() {
        pod.annotate(annotation::OVERWRITE_CONTAINER_CMD, "true");
    }
}

/// Annotations of the head: what it was made from, so that a later look can tell whether it is out of date (RC-21, RC-156).
pub(super) fn annotate_head(pod: &mut Draft, cx: &Context<'_>) {
    annotate(pod, cx);
    pod.annotate(annotation::UPGRADE_STRATEGY_RECREATE_HASH, spec_hash(&cx.cluster.spec));
    pod.annotate(annotation::KUBERAY_VERSION, VERSION);
}

/// Labels and annotations of the configuration file, for keys that are still free (RC-20).
pub(super) fn add_configured(pod: &mut Draft, cx: &Context<'_>) {
    let defaults = &cx.settings.pods;
    for (key, value) in &defaults.annotations {
        pod.metadata.annotations.get_or_insert_default().entry(key.clone()).or_insert_with(|| value.clone());
    }
    for (key, value) in &defaults.labels {
        pod.metadata.labels.get_or_insert_default().entry(key.clone()).or_insert_with(|| value.clone());
    }
}

/// Pods of a RayService say whether they may get traffic; a head may only once its proxy answers (RC-19).
pub(super) fn label_for_serving(pod: &mut Draft, node: Node, cx: &Context<'_>) {
    if cx.creator == Creator::RayService {
        pod.label(label::SERVE, if node == Node::Worker { "true" } else { "false" });
    }
}
