//! Head and worker Pods (RC-30..RC-38). The order of steps is visible in the result: it decides the order of containers, variables
//! and mounts, and which value wins where two parts set the same thing.

mod autoscaler;
mod collector;
mod draft;
mod fault_tolerance;
mod metadata;
mod probes;
mod tls;
mod volumes;
mod wait_gcs;

use k8s_openapi::api::core::v1::{ContainerPort, Pod};
use shared::api::RayCluster;
use shared::api::raycluster::{AutoscalerVersion, WorkerGroupSpec};
use shared::labels::{HEAD_GROUP, annotation, node_type, port};
use shared::names;

pub(super) use self::draft::Draft;
use super::container::ContainerExt;
use super::context::Context;
use super::ray_start::{self, Params};
use super::scheduling::{self, Parent};
use super::{BuildError, auth, env, owner_reference, shell};
use crate::settings::Settings;

/// Part that a Pod plays in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Runs the control services, the dashboard and the job server.
    Head,
    /// Runs work.
    Worker,
}

impl Node {
    /// Value of the node type label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Head => node_type::HEAD,
            Self::Worker => node_type::WORKER,
        }
    }
}

/// Place of a worker Pod in its group (RC-18); given to [`worker`] when the gate RayMultiHostIndexing is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Index of the replica within the group.
    pub index: i32,
    /// Name of the replica, see [`Replica::generate_name`]. Only written to Pods of multi-host groups.
    pub name: String,
    /// Index of the host within the replica. Only written to Pods of multi-host groups.
    pub host_index: i32,
}

impl Replica {
    /// A name for a new replica of `group` from random numbers (RC-15: five characters behind the group's name).
    pub fn generate_name(group: &str, random: [u8; 5]) -> String {
        names::check_label(&format!("{group}-{}", names::suffix(&random)))
    }
}

/// The head Pod of a cluster (RC-30, RC-31).
///
/// # Errors
/// When the template has no container.
pub fn head(cluster: &RayCluster, settings: &Settings) -> Result<Pod, BuildError> {
    let cx = Context::new(cluster, settings);
    let group = &cluster.spec.head_group_spec;
    let mut pod = Draft::from_template(&group.template, "spec.headGroupSpec.template")?;
    let mut params = ray_start::group_params(group.ray_start_params.as_ref(), group.resources.as_ref(), group.labels.as_ref());

    pod.metadata.namespace = cluster.metadata.namespace.clone();
    if settings.switches.deterministic_head_pod_name {
        pod.metadata.name = Some(names::head_pod(cx.name));
        pod.metadata.generate_name = None;
    } else {
        // A name in the template wins over this one, as the API server has it.
        pod.metadata.generate_name = Some(names::pod_name(cx.name, node_type::HEAD, true));
    }
    metadata::label_head(&mut pod, &cx);
    ray_start::add_head_defaults(&mut params);
    metadata::annotate_head(&mut pod, &cx);
    if cluster.spec.autoscaling() {
        autoscaler::add(&mut pod, &mut params, &cx);
    }
    fault_tolerance::add_to_head(&mut pod, &mut params, &cx);
    finish(&mut pod, Node::Head, HEAD_GROUP, params, &cx);
    Ok(pod.into_pod())
}

/// A worker Pod of `group` (RC-32).
///
/// # Errors
/// When the template has no container.
pub fn worker(cluster: &RayCluster, group: &WorkerGroupSpec, replica: Option<&Replica>, settings: &Settings) -> Result<Pod, BuildError> {
    let cx = Context::new(cluster, settings);
    let mut pod = Draft::from_template(&group.template, &worker_template_path(cluster, group))?;
    let mut params = ray_start::group_params(group.ray_start_params.as_ref(), group.resources.as_ref(), group.labels.as_ref());

    pod.metadata.namespace = cluster.metadata.namespace.clone();
    pod.metadata.name = None;
    pod.metadata.generate_name = Some(names::worker_pod_prefix(cx.name, &group.group_name));
    if settings.switches.init_container_injection {
        let wait = wait_gcs::container(&pod.ray, &cx);
        pod.init_containers.push(wait);
    }
    metadata::label_worker(&mut pod, group, replica, &cx);
    ray_start::add_worker_defaults(&mut params, &cx.gcs_address());
    metadata::annotate(&mut pod, &cx);
    fault_tolerance::add_to_worker(&mut pod, &cx);
    if autoscaler::version(cluster) == Some(AutoscalerVersion::V2) {
        pod.spec.restart_policy = Some("Never".to_owned());
    }
    finish(&mut pod, Node::Worker, &group.group_name, params, &cx);
    Ok(pod.into_pod())
}

/// What head and workers have in common (RC-31.8 to 16, RC-32.8 to 16, RC-33).
fn finish(pod: &mut Draft, node: Node, group: &str, mut params: Params, cx: &Context<'_>) {
    add_metrics_port(pod);
    auth::add_to_pod(pod, cx.cluster);
    tls::add(pod, node, cx);
    let collects = collector::add(pod, node, cx);
    let defaults = &cx.settings.pods;
    pod.others.extend(
        match node {
            Node::Head => &defaults.head_sidecars,
            Node::Worker => &defaults.worker_sidecars,
        }
        .iter()
        .cloned(),
    );
    metadata::add_configured(pod, cx);
    metadata::label_for_serving(pod, node, cx);

    if !params.contains_key("plasma-directory") {
        volumes::add_shared_memory(pod);
    }
    if node == Node::Head && cx.cluster.spec.autoscaling() {
        volumes::share_logs_with(pod, shared::labels::container::AUTOSCALER);
    }
    if collects {
        volumes::share_logs_with(pod, shared::labels::container::HISTORY_COLLECTOR);
    }

    let overwritten = pod.annotation(annotation::OVERWRITE_CONTAINER_CMD).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    // The ports of the probes are those that Ray is told, so they are read once every option is known.
    ray_start::add_container_resources(&mut params, &pod.ray);
    let start = ray_start::command(node, &params);
    if !overwritten && let Some(text) = ray_start::shell_text(&pod.ray, &start) {
        pod.ray.command = Some(shell(cx.settings, false));
        pod.ray.args = Some(vec![text]);
    }
    for init in &mut pod.init_containers {
        init.push_envs(env::head_address(cx));
    }
    for variable in &defaults.env {
        pod.ray.env_if_absent(variable.clone());
    }
    env::add_common(&mut pod.ray, node, &start, cx);
    if collects {
        collector::add_event_variables(&mut pod.ray);
    }
    probes::add(pod, node, &params, cx);
    scheduling::mark_pod(&mut pod.metadata, &mut pod.spec, Parent::Cluster(cx.cluster), group, cx.settings);
    pod.metadata.owner_references = Some(vec![owner_reference(cx.cluster)]);
}

/// RC-36.
fn add_metrics_port(pod: &mut Draft) {
    if pod.ray.port_named(port::METRICS_NAME).is_none() {
        pod.ray.ports.get_or_insert_default().push(ContainerPort {
            name: Some(port::METRICS_NAME.to_owned()),
            container_port: port::METRICS,
            ..ContainerPort::default()
        });
    }
}

/// Where the template of a group stands in the spec, for error texts.
fn worker_template_path(cluster: &RayCluster, group: &WorkerGroupSpec) -> String {
    match cluster.spec.worker_groups().iter().position(|known| known.group_name == group.group_name) {
        Some(index) => format!("spec.workerGroupSpecs[{index}].template"),
        None => format!("spec.workerGroupSpecs[groupName={}].template", group.group_name),
    }
}
