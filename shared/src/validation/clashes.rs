//! Names in a user's templates that the operator needs for what it adds (C-10 and its kind: N-C-3, N-C-4, N-C-5).

use std::collections::HashSet;

use serde_json::Value;

use super::{
    ErrorType, Findings, Kind, Path,
    cluster::{Cluster, at_pod, at_ray_container, ray_container},
    json::{Json, Shown, position},
    names::is_dns1035_label,
};
use crate::{
    labels::{self, container},
    names as object_names,
};

const TOKEN_VOLUME: &str = "ray-token";
const TOKEN_PATH: &str = "/var/run/secrets/ray.io/serviceaccount";

pub(super) fn examine(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let head = path.field("headGroupSpec");
    if cluster.autoscaling {
        forbid_container(cluster.head, &head, container::AUTOSCALER, "N-C-3", "with enableInTreeAutoscaling", out);
    }
    examine_pod(cluster.head, &head, out);
    let groups = path.field("workerGroupSpecs");
    for (index, group) in cluster.groups().iter().enumerate() {
        let path = groups.index(index);
        forbid_container(group, &path, container::WAIT_GCS_READY, "N-C-3", "to every worker", out);
        examine_pod(group, &path, out);
    }
    let auth = cluster.spec.at("authOptions");
    if auth.at("mode").text() == Some("token") && auth.at("enableK8sTokenAuth").is_true() {
        forbid_token_mount(cluster.head, &head, out);
        for (index, group) in cluster.groups().iter().enumerate() {
            forbid_token_mount(group, &groups.index(index), out);
        }
    }
    examine_head_service(cluster, &head, out);
}

/// A container or init container that has the name of one the operator adds.
pub(super) fn forbid_container(group: &Value, path: &Path<'_>, name: &str, rule: &'static str, when: &str, out: &mut Findings) {
    let pod = group.at("template").at("spec");
    for list in ["containers", "initContainers"] {
        if let Some(index) = position(pod.at(list), name) {
            at_pod(path, |pod| {
                out.error(
                    &pod.field(list).index(index).field("name"),
                    ErrorType::Duplicate,
                    rule,
                    format!("the operator adds a container {name} {when}, and names must be unique in a Pod: choose another name"),
                );
            });
        }
    }
}

/// Containers and init containers share one set of names; the schema only compares each list with itself.
fn examine_pod(group: &Value, path: &Path<'_>, out: &mut Findings) {
    let pod = group.at("template").at("spec");
    let init: HashSet<&str> = pod.at("initContainers").items().iter().filter_map(|container| container.at("name").filled()).collect();
    if init.is_empty() {
        return;
    }
    for (index, container) in pod.at("containers").items().iter().enumerate() {
        if let Some(name) = container.at("name").filled()
            && init.contains(name)
        {
            at_pod(path, |pod| {
                out.error(
                    &pod.field("containers").index(index).field("name"),
                    ErrorType::Duplicate,
                    "N-C-3",
                    format!("an init container is called {}, too, and names must be unique in a Pod: choose another name", Shown(name)),
                );
            });
        }
    }
}

/// N-C-4: the operator mounts the token unless there is a mount of that *name*; another name at that *path* makes the Pod illegal.
fn forbid_token_mount(group: &Value, path: &Path<'_>, out: &mut Findings) {
    let volumes = group.at("template").at("spec").at("volumes");
    if let Some(index) = position(volumes, TOKEN_VOLUME)
        && volumes.items().get(index).is_some_and(|volume| !volume.at("projected").is_set())
    {
        at_pod(path, |pod| {
            out.forbidden(
                &pod.field("volumes").index(index).field("name"),
                "N-C-4",
                format!("with enableK8sTokenAuth the operator adds the volume {TOKEN_VOLUME}, which holds the token: choose another name"),
            );
        });
    }
    let mounts = ray_container(group).at("volumeMounts");
    if position(mounts, TOKEN_VOLUME).is_some() {
        return;
    }
    let at_path = |mount: &Value| mount.at("mountPath").text().is_some_and(|path| path.trim_end_matches('/') == TOKEN_PATH);
    if let Some(index) = mounts.items().iter().position(at_path) {
        at_ray_container(path, |container| {
            out.forbidden(
                &container.field("volumeMounts").index(index).field("mountPath"),
                "N-C-4",
                format!("with enableK8sTokenAuth the operator mounts the token at {TOKEN_PATH}: use another path, or name the volume {TOKEN_VOLUME}"),
            );
        });
    }
}

/// N-C-12.
pub(super) fn examine_service_name(name: &str, path: &Path<'_>, out: &mut Findings) {
    if !is_dns1035_label(name) {
        out.invalid(
            path,
            "N-C-12",
            format!(
                "{} cannot be the name of a Service: use at most 63 lower-case letters, digits and \"-\", beginning with a letter",
                Shown(name)
            ),
        );
    }
}

/// N-C-5, N-C-12: a head Service of the user's naming that has the name of another Service of the cluster.
fn examine_head_service(cluster: &Cluster<'_>, head: &Path<'_>, out: &mut Findings) {
    // V-S-6 forbids the name in a RayService, whatever it is.
    let named = cluster.head.at("headService").at("metadata").at("name").filled();
    let Some(name) = named.filter(|_| cluster.subject.kind != Kind::RayService) else { return };
    let multi_host = cluster.groups().iter().any(|group| group.at("numOfHosts").int().is_some_and(|hosts| hosts > 1));
    let serve = cluster.subject.annotation(labels::annotation::ENABLE_SERVE_SERVICE) == "true";
    let own = cluster.subject.name;
    let taken = match cluster.subject.kind {
        Kind::RayCluster => {
            (multi_host && name == object_names::headless_service(own)) || (serve && name == object_names::serve_service(own))
        }
        // A RayJob has a head Service of its own, which stays when a retry makes a new cluster.
        Kind::RayJob => name == object_names::head_service(own),
        Kind::RayService | Kind::RayCronJob => false,
    };
    let service = head.field("headService");
    let metadata = service.field("metadata");
    examine_service_name(name, &metadata.field("name"), out);
    if taken {
        out.error(
            &metadata.field("name"),
            ErrorType::Duplicate,
            "N-C-5",
            format!("the operator makes another Service {}: choose another name", Shown(name)),
        );
    }
}
