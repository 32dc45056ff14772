//! The autoscaler's container beside the head (RC-70..RC-76).

use k8s_openapi::api::core::v1::Container;
use shared::api::RayCluster;
use shared::api::raycluster::{AutoscalerOptions, AutoscalerVersion};
use shared::labels::{container, env, label};

use super::draft::Draft;
use super::tls;
use crate::build::container::{ContainerExt, fixed_resources};
use crate::build::context::Context;
use crate::build::env::{field, label_field, value};
use crate::build::ray_start::Params;
use crate::build::{auth, rbac, security, shell};

/// What the container runs. Kubernetes fills in the two variables.
const COMMAND: &str = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)";

/// The version that the spec asks for, if autoscaling is on (RC-75).
pub(super) fn version(cluster: &RayCluster) -> Option<AutoscalerVersion> {
    cluster.spec.autoscaler_options.as_ref()?.version.filter(|_| cluster.spec.autoscaling())
}

/// Adds the container to a head and prepares the head for it.
pub(super) fn add(pod: &mut Draft, params: &mut Params, cx: &Context<'_>) {
    // The head must not run a monitor of its own beside this one.
    params.insert("no-monitor".to_owned(), "true".to_owned());
    match version(cx.cluster) {
        Some(AutoscalerVersion::V1) => pod.ray.push_env(value(env::RAY_ENABLE_AUTOSCALER_V2, "false")),
        Some(AutoscalerVersion::V2) => {
            pod.ray.push_env(value(env::RAY_ENABLE_AUTOSCALER_V2, "true"));
            pod.spec.restart_policy = Some("Never".to_owned());
        }
        None => {}
    }
    pod.spec.service_account_name = Some(rbac::service_account_name(cx.cluster));
    let mut autoscaler = Container {
        name: container::AUTOSCALER.to_owned(),
        image: pod.ray.image.clone(),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        security_context: security::restrictions_of(&pod.ray),
        env: Some(vec![
            label_field(env::RAY_CLUSTER_NAME, label::CLUSTER),
            field(env::RAY_CLUSTER_NAMESPACE, "metadata.namespace"),
            field(env::RAY_HEAD_POD_NAME, "metadata.name"),
            value(env::KUBERAY_CRD_VER, "v1"),
            value(env::KUBERAY_GEN_AUTOSCALER_START_CMD, COMMAND),
        ]),
        command: Some(shell(cx.settings, false)),
        args: Some(vec![COMMAND.to_owned()]),
        resources: Some(fixed_resources("500m", "512Mi")),
        ..Container::default()
    };
    auth::add_to_container(&mut autoscaler, cx.cluster);
    tls::add_to_container(&mut autoscaler, cx);
    if let Some(options) = &cx.cluster.spec.autoscaler_options {
        apply(&mut autoscaler, options);
    }
    pod.others.push(autoscaler);
}

/// RC-73: lists grow, everything else is replaced.
fn apply(container: &mut Container, options: &AutoscalerOptions) {
    fn replace<T: Clone>(field: &mut Option<T>, wanted: &Option<T>) {
        if wanted.is_some() {
            field.clone_from(wanted);
        }
    }
    replace(&mut container.resources, &options.resources);
    replace(&mut container.image, &options.image);
    replace(&mut container.image_pull_policy, &options.image_pull_policy);
    replace(&mut container.command, &options.command);
    replace(&mut container.args, &options.args);
    // An empty security context says nothing; many manifests carry one.
    replace(&mut container.security_context, &options.security_context.clone().filter(|context| *context != Default::default()));
    container.push_envs(options.env.iter().flatten().cloned());
    for source in options.env_from.iter().flatten() {
        container.env_from.get_or_insert_default().push(source.clone());
    }
    for mount in options.volume_mounts.iter().flatten() {
        container.push_mount(mount.clone());
    }
}
