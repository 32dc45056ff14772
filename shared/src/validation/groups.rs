//! The head group and the worker groups (V-C-10..V-C-23, V-C-38, V-C-40, V-C-42, V-C-43, V-C-63, V-C-69, V-C-70, C-02, C-03, C-04).

use std::collections::HashSet;

use serde_json::Value;

use super::{
    ErrorType, Findings, Kind, Path,
    cluster::{Cluster, at_pod},
    json::{Json, Shown},
    names::{MAX_LABEL, is_dns1123_label, is_label_value},
    params,
    pods::{examine_labels, examine_template, shown_json},
};
use crate::{features::Feature, labels, quantity::Quantity, version::RayVersion};

pub(super) fn examine_head(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    if !cluster.head.is_set() {
        return out.required(path, "V-C-10", "a cluster needs a head: describe it here");
    }
    examine_template(cluster.head, path, "V-C-10", out);
    examine_service_type(cluster.head.at("serviceType"), &path.field("serviceType"), out);
    examine_settings(cluster.head, path, ["V-C-11", "V-C-12", "V-C-13"], out);
    if cluster.autoscaling && cluster.autoscaler_version == "v2" {
        examine_v2_restart(cluster.head, path, "V-C-42", out);
    }
}

pub(super) fn examine_workers(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let groups = cluster.groups();
    let mut seen = HashSet::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let path = path.index(index);
        examine_name(cluster, group, &path, &mut seen, out);
        examine_template(group, &path, "V-C-14", out);
        examine_counts(cluster, group, &path, out);
        examine_settings(group, &path, ["V-C-19", "V-C-20", "V-C-21"], out);
        examine_autoscaling(cluster, group, &path, out);
    }
}

fn examine_name<'a>(cluster: &Cluster<'_>, group: &'a Value, path: &Path<'_>, seen: &mut HashSet<&'a str>, out: &mut Findings) {
    let path = path.field("groupName");
    let Some(name) = group.at("groupName").filled() else {
        return out.required(&path, "N-C-1", "a worker group needs a name: its Pods carry it as a label");
    };
    if !seen.insert(name) {
        out.error(
            &path,
            ErrorType::Duplicate,
            "V-C-70",
            format!("another group is called {} already, and the two would fight over the same Pods: choose another name", Shown(name)),
        );
    }
    if name == labels::HEAD_GROUP {
        out.invalid(
            &path,
            "C-02",
            "\"headgroup\" is the group of the head Pod, which would be taken for a surplus worker: choose another name",
        );
    } else if name == labels::SUBMITTER_GROUP && matches!(cluster.subject.kind, Kind::RayJob | Kind::RayCronJob) {
        out.invalid(&path, "C-02", "\"submittergroup\" is the group of the job's submitter Pod: choose another name");
    }
    let policies = cluster.spec.at("networkPolicy").is_set() && cluster.subject.features.enabled(Feature::RayClusterNetworkPolicy);
    if !is_label_value(name) {
        out.invalid(
            &path,
            "N-C-1",
            format!("{} cannot be a label of the Pods: use at most {MAX_LABEL} letters, digits, \"-\" and \".\"", Shown(name)),
        );
    } else if policies && !is_dns1123_label(name) {
        out.invalid(
            &path,
            "V-C-63",
            format!("{} becomes part of a NetworkPolicy's name: use lower-case letters, digits and \"-\" only", Shown(name)),
        );
    } else if !makes_pod_names(cluster, name) {
        out.invalid(
            &path,
            "N-C-1",
            format!(
                "{} becomes part of Pod names, which may not contain \"_\" or a \".\" beside \"-\": use letters, digits and \"-\"",
                Shown(name)
            ),
        );
    }
    let multi_host = group.at("numOfHosts").int().is_some_and(|hosts| hosts > 1);
    if multi_host
        && name.len() + REPLICA_SUFFIX > MAX_LABEL
        && name.len() <= MAX_LABEL
        && cluster.subject.features.enabled(Feature::RayMultiHostIndexing)
    {
        out.error(
            &path,
            ErrorType::TooLong,
            "N-C-2",
            format!(
                "{} has {} characters, but the replicas of a multi-host group are labelled with the group's name and {REPLICA_SUFFIX} characters more: use at most {}",
                Shown(name),
                name.len(),
                MAX_LABEL - REPLICA_SUFFIX
            ),
        );
    }
}

/// `-` and five random characters (RC-15).
const REPLICA_SUFFIX: usize = 6;

/// Whether the worker Pods of the group get legal names: `<cluster>-<group>`, cut to 50 bytes, then `-worker-` (RC-12).
fn makes_pod_names(cluster: &Cluster<'_>, group: &str) -> bool {
    if group.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return true;
    }
    // Other kinds add `-` and five characters to their own name to get the cluster's.
    let own = cluster.subject.name.len() + if cluster.is_own() { 0 } else { REPLICA_SUFFIX };
    let kept = 50_usize.saturating_sub(own + 1).min(group.len());
    let shown = group.get(..kept).unwrap_or(group);
    !shown.contains('_') && format!("c-{shown}-worker").split('.').all(|part| !part.starts_with('-') && !part.ends_with('-'))
}

/// N-C-9: Kubernetes refuses the Service, long after it accepted the cluster.
fn examine_service_type(field: &Value, path: &Path<'_>, out: &mut Findings) {
    if let Some(kind) = field.filled()
        && !matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
    {
        out.error(
            path,
            ErrorType::NotSupported,
            "N-C-9",
            format!("the head cannot have a Service of type {}: use \"ClusterIP\", \"NodePort\" or \"LoadBalancer\"", Shown(kind)),
        );
    }
}

/// Start parameters, `resources` and `labels` of a group. `rules` are those about both kinds of resources, about the
/// parameter `labels`, and about the field `labels`.
fn examine_settings(group: &Value, path: &Path<'_>, rules: [&'static str; 3], out: &mut Findings) {
    let [both_rule, parameter_rule, labels_rule] = rules;
    let (start, resources) = (group.at("rayStartParams"), group.at("resources"));
    let params_path = path.field("rayStartParams");
    if resources.has_entries() {
        for parameter in ["num-cpus", "num-gpus", "memory", "resources"] {
            if start.at(parameter).filled().is_some() {
                out.forbidden(
                    &params_path.key(parameter),
                    both_rule,
                    "the group's resources are given in the field resources, too, and only one can be right: remove one of them",
                );
            }
        }
        let resources_path = path.field("resources");
        for (name, value) in resources.entries() {
            if value.text().is_none_or(|text| Quantity::parse(text).is_err()) {
                out.invalid(
                    &resources_path.key(name),
                    "C-14",
                    format!(
                        "{} is not a quantity, so Ray would not learn of it: write it like \"2\", \"500m\" or \"8Gi\"",
                        shown_json(value)
                    ),
                );
            }
        }
    }
    if start.at("labels").is_set() {
        out.forbidden(&params_path.key("labels"), parameter_rule, "labels are made from the field labels of the group: move them there");
    }
    params::examine(start, &params_path, out);
    examine_labels(group.at("labels"), &path.field("labels"), labels_rule, out);
}

/// V-C-15..V-C-18, C-03, C-04.
fn examine_counts(cluster: &Cluster<'_>, group: &Value, path: &Path<'_>, out: &mut Findings) {
    let (min, max) = (group.at("minReplicas").int(), group.at("maxReplicas").int());
    if !cluster.autoscaling {
        for (field, value) in [("minReplicas", group.at("minReplicas")), ("maxReplicas", group.at("maxReplicas"))] {
            if !value.is_set() {
                out.required(&path.field(field), "V-C-15", "without autoscaling a group needs both minReplicas and maxReplicas: add it");
            }
        }
    }
    let negative = |value: Option<i64>| value.is_some_and(|value| value < 0);
    if negative(min) {
        out.invalid(&path.field("minReplicas"), "V-C-16", format!("{} is negative: use 0 or more", min.unwrap_or_default()));
    }
    if negative(max) {
        out.invalid(&path.field("maxReplicas"), "V-C-17", format!("{} is negative: use 0 or more", max.unwrap_or_default()));
    }
    if let (Some(min), Some(max), false) = (min, max, negative(min) || negative(max)) {
        if min > max {
            out.invalid(&path.field("minReplicas"), "V-C-18", format!("{min} is above maxReplicas {max}: lower it, or raise maxReplicas"));
        } else if let Some(replicas) = group.at("replicas").int()
            && !(min..=max).contains(&replicas)
            && replicas != 0
        // the default, and what everybody means who leaves it out
        {
            let (bound, used) = if replicas < min { ("minReplicas", min) } else { ("maxReplicas", max) };
            out.warn(&path.field("replicas"), "C-04", format!("{replicas} is outside {bound}, so {used} replicas are run"));
        }
    }
    if let Some(hosts) = group.at("numOfHosts").int()
        && hosts < 1
    {
        out.invalid(
            &path.field("numOfHosts"),
            "C-03",
            format!(
                "{hosts} hosts a replica would mean no Pods: use 1 for ordinary workers (or leave it out), more for multi-host accelerators"
            ),
        );
    }
}

/// Earliest Ray whose autoscaler reads a group's priority (V-C-23).
const PRIORITY_SINCE: RayVersion = RayVersion::new(2, 56, 0);

fn examine_autoscaling(cluster: &Cluster<'_>, group: &Value, path: &Path<'_>, out: &mut Findings) {
    let how = "set autoscalerOptions.version to \"v2\"";
    if let Some(idle) = group.at("idleTimeoutSeconds").int() {
        let path = path.field("idleTimeoutSeconds");
        if idle < 0 {
            out.invalid(&path, "V-C-22", format!("{idle} is negative: use 0 or more seconds"));
        } else if !cluster.v2 {
            out.invalid(&path, "V-C-22", format!("only autoscaler v2 knows idle times of single groups: {how}, or remove it"));
        }
    }
    if group.at("priority").int().is_some_and(|priority| priority != 0) {
        let path = path.field("priority");
        if let Some(problem) = cluster.version_problem("a group's priority", PRIORITY_SINCE) {
            out.invalid(&path, "V-C-23", problem);
        }
        if !cluster.v2 {
            out.invalid(&path, "V-C-23", format!("only autoscaler v2 knows priorities: {how}, or remove it"));
        }
    }
    if group.at("suspend").is_true() {
        let path = path.field("suspend");
        if !cluster.subject.features.enabled(Feature::RayJobDeletionPolicy) {
            out.forbidden(
                &path,
                "V-C-38",
                "single groups cannot be suspended while the feature gate RayJobDeletionPolicy is off: switch it on, or remove this",
            );
        } else if cluster.autoscaling {
            out.forbidden(&path, "V-C-40", "the autoscaler would start the group again: switch enableInTreeAutoscaling off, or set minReplicas and maxReplicas to 0 instead");
        }
    }
    if cluster.autoscaling {
        match cluster.autoscaler_version {
            "v2" => examine_v2_restart(group, path, "V-C-43", out),
            "v1" => {
                if let Some(policy) = restart_policy(group) {
                    at_restart_policy(path, |path| {
                        out.warn(
                            path,
                            "V-C-69",
                            format!("with {policy} a crashed worker restarts in place while the autoscaler believes it is gone: \"Never\" is safer"),
                        );
                    });
                }
            }
            _ => {}
        }
    }
}

/// V-C-42, V-C-43.
fn examine_v2_restart(group: &Value, path: &Path<'_>, rule: &'static str, out: &mut Findings) {
    if let Some(policy) = restart_policy(group) {
        at_restart_policy(path, |path| {
            out.invalid(
                path,
                rule,
                format!("autoscaler v2 replaces Pods itself and needs \"Never\", not {policy}: change it, or leave it out"),
            );
        });
    }
}

/// The group's restart policy if it is one that restarts (an unknown one is N-C-10's business).
pub(super) fn restart_policy(group: &Value) -> Option<String> {
    let policy = group.at("template").at("spec").at("restartPolicy").filled()?;
    matches!(policy, "Always" | "OnFailure").then(|| Shown(policy).to_string())
}

fn at_restart_policy(group: &Path<'_>, report: impl FnOnce(&Path<'_>)) {
    at_pod(group, |pod| report(&pod.field("restartPolicy")));
}
