//! Fault tolerance of the head (V-C-24..V-C-37).

use super::{
    Findings, Path,
    cluster::{Cluster, at_pod, at_ray_container, variable},
    containers::examine_source,
    json::{Json, position},
    pods::shown_json,
};
use crate::{
    features::Feature,
    labels::{annotation, env},
    quantity::Quantity,
};

const STORAGE_VOLUME: &str = "gcs-storage";
const STORAGE_PATH: &str = "/data/gcs";

pub(super) fn examine(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let options = cluster.spec.at("gcsFaultToleranceOptions");
    let by_annotation = cluster.subject.annotation(annotation::FT_ENABLED);
    let head = path.field("headGroupSpec");
    if options.is_set() {
        if !by_annotation.is_empty() {
            out.forbidden(
                &path.field("gcsFaultToleranceOptions"),
                "V-C-24",
                "fault tolerance is also decided by the annotation ray.io/ft-enabled (whatever its value): remove the annotation",
            );
        }
        examine_options(cluster, path, out);
    } else if !by_annotation.eq_ignore_ascii_case("true") {
        forbid_variable(
            cluster,
            &head,
            env::RAY_REDIS_ADDRESS,
            "V-C-25",
            "the head would keep its state in Redis although fault tolerance is off: move the address to gcsFaultToleranceOptions.redisAddress",
            out,
        );
    }
    let instead = "the Redis user is given by gcsFaultToleranceOptions.redisUsername: move it there";
    forbid_parameter(cluster, &head, "redis-username", "V-C-37", instead, out);
    forbid_variable(cluster, &head, env::REDIS_USERNAME, "V-C-37", instead, out);
}

fn examine_options(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let head = path.field("headGroupSpec");
    let instead = "with gcsFaultToleranceOptions this is given by redisPassword: move it there";
    forbid_parameter(cluster, &head, "redis-password", "V-C-26", instead, out);
    forbid_variable(cluster, &head, env::REDIS_PASSWORD, "V-C-27", instead, out);
    let instead = "with gcsFaultToleranceOptions this is given by redisAddress: move it there";
    forbid_variable(cluster, &head, env::RAY_REDIS_ADDRESS, "V-C-28", instead, out);
    if !cluster.subject.annotation(annotation::EXTERNAL_STORAGE_NAMESPACE).is_empty() {
        let annotations = Path::root("metadata");
        let annotations = annotations.field("annotations");
        out.forbidden(
            &annotations.key(annotation::EXTERNAL_STORAGE_NAMESPACE),
            "V-C-29",
            "with gcsFaultToleranceOptions this is given by externalStorageNamespace: move it there",
        );
    }
    let options = cluster.spec.at("gcsFaultToleranceOptions");
    let options_path = path.field("gcsFaultToleranceOptions");
    if options.at("backend").text() == Some("rocksdb") {
        examine_embedded(cluster, path, &options_path, out);
    } else {
        if options.at("storage").is_set() {
            out.forbidden(
                &options_path.field("storage"),
                "V-C-36",
                "only the rocksdb backend has storage of its own: remove it, or set backend to \"rocksdb\"",
            );
        }
        if options.at("redisAddress").filled().is_none() {
            let text = "without an address the head keeps its state in memory, and a new head knows nothing: give it like \"redis:6379\"";
            out.warn(&options_path.field("redisAddress"), "W-C-14", text);
        }
    }
    for credential in ["redisUsername", "redisPassword"] {
        examine_source(options.at(credential), &options_path.field(credential), out);
    }
}

/// The embedded backend (V-C-30..V-C-35).
fn examine_embedded(cluster: &Cluster<'_>, path: &Path<'_>, options_path: &Path<'_>, out: &mut Findings) {
    let options = cluster.spec.at("gcsFaultToleranceOptions");
    if !cluster.subject.features.enabled(Feature::GCSFaultToleranceEmbeddedStorage) {
        return out.forbidden(
            &options_path.field("backend"),
            "V-C-30",
            "the rocksdb backend is behind the feature gate GCSFaultToleranceEmbeddedStorage, which is off: switch it on, or use redis",
        );
    }
    for field in ["redisAddress", "redisUsername", "redisPassword", "externalStorageNamespace"] {
        let value = options.at(field);
        if value.is_set() && value.text() != Some("") {
            out.forbidden(&options_path.field(field), "V-C-31", "the rocksdb backend has no Redis: remove it");
        }
    }
    let (storage, storage_path) = (options.at("storage"), options_path.field("storage"));
    if storage.at("size").is_set()
        && storage.at("size").text() != Some("")
        && Quantity::of_json(storage.at("size")).is_none_or(|size| size <= Quantity::ZERO)
    {
        out.invalid(
            &storage_path.field("size"),
            "C-14",
            format!("{} is not a size: write it like \"10Gi\"", shown_json(storage.at("size"))),
        );
    }
    if storage.at("claimName").filled().is_some() {
        for field in ["size", "storageClassName", "accessModes"] {
            let value = storage.at(field);
            if value.is_set() && value.text() != Some("") && value.as_array().is_none_or(|list| !list.is_empty()) {
                out.forbidden(
                    &storage_path.field(field),
                    "V-C-32",
                    "the claim named by claimName exists already and keeps its own: remove this, or claimName",
                );
            }
        }
    }
    let head = path.field("headGroupSpec");
    for name in [env::RAY_GCS_STORAGE, env::RAY_GCS_STORAGE_PATH] {
        forbid_variable(cluster, &head, name, "V-C-33", "the operator sets this variable for the rocksdb backend: remove it", out);
    }
    for (index, mount) in cluster.head_container.at("volumeMounts").items().iter().enumerate() {
        let field = if mount.at("name").text() == Some(STORAGE_VOLUME) {
            "name"
        } else if mount.at("mountPath").text().is_some_and(|path| path.trim_end_matches('/') == STORAGE_PATH) {
            "mountPath"
        } else {
            continue;
        };
        at_ray_container(&head, |container| {
            let mounts = container.field("volumeMounts");
            out.forbidden(
                &mounts.index(index).field(field),
                "V-C-34",
                format!("the operator mounts the volume {STORAGE_VOLUME} at {STORAGE_PATH} for the rocksdb backend: use another one"),
            );
        });
    }
    if let Some(index) = position(cluster.head.at("template").at("spec").at("volumes"), STORAGE_VOLUME) {
        at_pod(&head, |pod| {
            out.forbidden(
                &pod.field("volumes").index(index).field("name"),
                "V-C-35",
                format!("the operator adds the volume {STORAGE_VOLUME} for the rocksdb backend: choose another name"),
            );
        });
    }
}

fn forbid_parameter(cluster: &Cluster<'_>, head: &Path<'_>, name: &str, rule: &'static str, message: &str, out: &mut Findings) {
    if cluster.head.at("rayStartParams").at(name).filled().is_some() {
        out.forbidden(&head.field("rayStartParams").key(name), rule, message);
    }
}

fn forbid_variable(cluster: &Cluster<'_>, head: &Path<'_>, name: &str, rule: &'static str, message: &str, out: &mut Findings) {
    if let Some(index) = variable(cluster.head_container, name) {
        at_ray_container(head, |container| {
            let variables = container.field("env");
            out.forbidden(&variables.index(index).field("name"), rule, format!("{name}: {message}"));
        });
    }
}
