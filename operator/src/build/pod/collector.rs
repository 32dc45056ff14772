//! The history server's collector beside every Ray container (RC-99a..RC-99c), behind the gate RayClusterHistoryServer.

use k8s_openapi::api::core::v1::{Container, ResourceRequirements};
use shared::features::Feature;
use shared::labels::{container, env, label, port};

use super::Node;
use super::draft::Draft;
use crate::build::container::{ContainerExt, amounts};
use crate::build::context::Context;
use crate::build::env::{field, value};
use crate::build::{auth, security};

/// Adds the collector; whether there is one now.
pub(super) fn add(pod: &mut Draft, node: Node, cx: &Context<'_>) -> bool {
    let options = cx.cluster.spec.history_server_options.as_ref().and_then(|options| options.collector_options.as_ref());
    let Some(options) = options.filter(|_| cx.settings.features.enabled(Feature::RayClusterHistoryServer)) else { return false };
    let mut collector = Container {
        name: container::HISTORY_COLLECTOR.to_owned(),
        image: options.image.clone(),
        image_pull_policy: options
            .image_pull_policy
            .clone()
            .filter(|policy| !policy.is_empty())
            .or_else(|| Some("IfNotPresent".to_owned())),
        // Its image is not Ray's, so what holds for Ray is asked of it only where admission may ask it of every container.
        security_context: if security::meets_restricted(&pod.spec, &pod.ray) { security::restrictions_of(&pod.ray) } else { None },
        resources: options.resources.clone().or_else(|| {
            Some(ResourceRequirements { limits: Some(amounts("200m", "256Mi")), requests: Some(amounts("50m", "64Mi")), claims: None })
        }),
        ..Container::default()
    };
    collector.push_envs([
        field("POD_IP", "status.podIP"),
        value(env::RAY_CLUSTER_NAME, cx.name),
        value(env::RAY_CLUSTER_NAMESPACE, cx.namespace),
        value("RAY_ROLE", if node == Node::Head { "Head" } else { "Worker" }),
        value("EVENTS_PORT", port::COLLECTOR_EVENTS.to_string()),
        value(env::FQ_RAY_IP, &cx.fqdn),
    ]);
    for (name, key) in [("OWNER_KIND", label::ORIGINATED_FROM_CRD), ("OWNER_NAME", label::ORIGINATED_FROM_CR_NAME)] {
        if let Some(text) = cx.label(key).filter(|text| !text.is_empty()) {
            collector.push_env(value(name, text));
        }
    }
    let users = options.env.as_deref().unwrap_or_default();
    if node == Node::Head && !users.iter().any(|variable| variable.name == env::RAY_DASHBOARD_ADDRESS) {
        collector.push_env(value(env::RAY_DASHBOARD_ADDRESS, format!("http://localhost:{}", port::DASHBOARD)));
    }
    collector.push_envs(users.iter().cloned());
    auth::add_to_container(&mut collector, cx.cluster);
    pod.others.push(collector);
    true
}

/// RC-55.14: Ray sends its events to the collector.
pub(super) fn add_event_variables(ray: &mut Container) {
    const TYPES: &str = "TASK_DEFINITION_EVENT,TASK_LIFECYCLE_EVENT,ACTOR_TASK_DEFINITION_EVENT,TASK_PROFILE_EVENT,\
        DRIVER_JOB_DEFINITION_EVENT,DRIVER_JOB_LIFECYCLE_EVENT,ACTOR_DEFINITION_EVENT,ACTOR_LIFECYCLE_EVENT,NODE_DEFINITION_EVENT,\
        NODE_LIFECYCLE_EVENT";
    let address = format!("http://localhost:{}/v1/events", port::COLLECTOR_EVENTS);
    for (name, text) in [
        ("RAY_enable_ray_event", "true"),
        ("RAY_enable_core_worker_ray_event_to_aggregator", "true"),
        ("RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR", address.as_str()),
        ("RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES", TYPES),
        ("RAY_DASHBOARD_AGGREGATOR_AGENT_PUBLISHER_HTTP_ENDPOINT_EXPOSABLE_EVENT_TYPES", TYPES),
    ] {
        ray.env_if_absent(value(name, text));
    }
}
