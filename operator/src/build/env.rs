//! Environment variables: how they are made, and which ones the Ray container gets (RC-55, RC-56).
//!
//! Two ways to add exist, and the difference is visible to users: *if absent* leaves a variable of the user alone, *always* puts
//! ours behind it (Kubernetes lets the last of two equal names win). Variables from `envFrom` are not looked at.

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};
use shared::labels::{env, label};

use super::container::ContainerExt;
use super::context::{Context, Creator};
use super::pod::Node;
use crate::settings::VERSION;

/// `name=value`.
pub fn value(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), value_from: None }
}

/// A variable filled from a field of the Pod.
pub fn field(name: &str, path: &str) -> EnvVar {
    let field_ref = ObjectFieldSelector { api_version: None, field_path: path.to_owned() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() }) }
}

/// A variable filled from a label of the Pod.
pub fn label_field(name: &str, label: &str) -> EnvVar {
    field(name, &format!("metadata.labels['{label}']"))
}

/// A variable filled from a key of a Secret.
pub fn secret_key(name: &str, secret: &str, key: &str) -> EnvVar {
    let reference = SecretKeySelector { name: secret.to_owned(), key: key.to_owned(), optional: None };
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { secret_key_ref: Some(reference), ..EnvVarSource::default() }),
    }
}

/// `FQ_RAY_IP` and `RAY_IP`: where the head answers (RC-16, RC-33f).
pub(super) fn head_address(cx: &Context<'_>) -> [EnvVar; 2] {
    [value(env::FQ_RAY_IP, &cx.fqdn), value(env::RAY_IP, &cx.head_service)]
}

/// Steps 6 to 13 of RC-55: what every Ray container gets after the parts that depend on options.
pub(super) fn add_common(ray: &mut Container, node: Node, start_command: &str, cx: &Context<'_>) {
    if node == Node::Worker {
        ray.push_envs(head_address(cx));
    }
    ray.push_envs([
        label_field(env::RAY_CLUSTER_NAME, label::CLUSTER),
        field(env::RAY_CLUSTER_NAMESPACE, "metadata.namespace"),
        field(env::RAY_CLOUD_INSTANCE_ID, "metadata.name"),
        label_field(env::RAY_NODE_TYPE_NAME, label::GROUP),
        value(env::KUBERAY_GEN_RAY_START_CMD, start_command),
    ]);
    ray.env_if_absent(value(env::RAY_PORT, &cx.head_port));
    if cx.creator == Creator::RayService {
        for (name, text) in RAY_SERVICE {
            ray.env_if_absent(value(name, text));
        }
    }
    ray.env_if_absent(value(
        env::RAY_ADDRESS,
        match node {
            Node::Head => format!("127.0.0.1:{}", cx.head_port),
            Node::Worker => cx.gcs_address(),
        },
    ));
    ray.env_if_absent(value(env::RAY_USAGE_STATS_KUBERAY_IN_USE, "1"));
    if node == Node::Head {
        ray.push_env(value(env::RAY_USAGE_STATS_EXTRA_TAGS, format!("kuberay_version={VERSION};kuberay_crd={}", cx.creator.kind())));
    }
    ray.env_if_absent(value(env::RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE, "1"));
}

/// Timeouts that let Ray Serve get over the loss of a head quickly (RC-55.9).
const RAY_SERVICE: [(&str, &str); 3] =
    [("RAY_timeout_ms_task_wait_for_death_info", "0"), ("RAY_gcs_server_request_timeout_seconds", "5"), ("RAY_SERVE_KV_TIMEOUT_S", "5")];
