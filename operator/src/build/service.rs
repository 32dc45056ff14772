//! Services: head, headless workers, serve, and the head Service of a RayJob or RayService (RC-130..RC-135, RJ-90, RS-70).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kube::Resource;
use kube::core::ObjectMeta;
use shared::api::RayCluster;
use shared::labels::{APPLICATION_NAME, OPERATOR_NAME, annotation, label, node_type, port};
use shared::names;

use super::context::{Context, head_service_name};
use super::resources::hosts_per_replica;
use super::{BuildError, owner_reference};
use crate::settings::Settings;

/// The Service of the cluster's head (RC-131..RC-133).
pub fn head(cluster: &RayCluster, settings: &Settings) -> Service {
    let cx = Context::new(cluster, settings);
    let group = &cluster.spec.head_group_spec;
    let of_user = group.head_service.clone();
    let mut service = of_user.clone().unwrap_or_default();
    service.status = None;

    let mut labels = service.metadata.labels.take().unwrap_or_default();
    labels.extend(head_labels(&cx));
    let mut annotations = service.metadata.annotations.take().unwrap_or_default();
    annotations.extend(cluster.spec.head_service_annotations.clone().unwrap_or_default());
    service.metadata = ObjectMeta {
        name: Some(head_service_name(cluster)),
        namespace: cluster.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        owner_references: Some(vec![owner_reference(cluster)]),
        ..ObjectMeta::default()
    };

    let spec = service.spec.get_or_insert_default();
    spec.selector = Some(head_selector(&cx));
    if spec.type_.as_deref().is_none_or(str::is_empty) {
        spec.type_ = group.service_type.clone().filter(|kind| !kind.is_empty());
    }
    spec.ports = Some(merge_ports(spec.ports.take().unwrap_or_default(), head_ports(cluster)));
    if of_user.is_none() && !settings.switches.head_cluster_ip_service && spec.type_.as_deref().is_none_or(|kind| kind == "ClusterIP") {
        // Without an address of its own the name leads to the head Pod itself, on every port, and before it is ready: workers must
        // reach the head while it starts.
        spec.cluster_ip = Some("None".to_owned());
        spec.publish_not_ready_addresses = Some(true);
    }
    service
}

/// The head Service of the RayJob or RayService `owner`, whose name stays while clusters come and go (RJ-90, RS-70): like the
/// cluster's own, without the addresses and node ports that only one Service can have.
pub fn head_for_owner<T>(owner: &T, cluster: &RayCluster, settings: &Settings) -> Service
where
    T: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let mut service = head(cluster, settings);
    let name = owner.meta().name.as_deref().unwrap_or_default();
    service.metadata.name = Some(names::head_service(name));
    service.metadata.namespace = owner.meta().namespace.clone();
    service.metadata.labels = Some(to_map([
        (label::ORIGINATED_FROM_CR_NAME, name.to_owned()),
        (label::ORIGINATED_FROM_CRD, T::kind(&()).into_owned()),
        (label::NODE_TYPE, node_type::HEAD.to_owned()),
        (label::IDENTIFIER, names::identifier(name, node_type::HEAD)),
    ]));
    service.metadata.owner_references = Some(vec![owner_reference(owner)]);
    if let Some(spec) = &mut service.spec {
        spec.cluster_ip = spec.cluster_ip.take().filter(|address| address == "None");
        spec.cluster_ips = None;
        spec.load_balancer_ip = None;
        spec.health_check_node_port = None;
        for port in spec.ports.iter_mut().flatten() {
            port.node_port = None;
        }
    }
    service
}

/// Whether the cluster has groups whose hosts must find each other by name (RC-134).
pub fn needs_headless_workers(cluster: &RayCluster) -> bool {
    cluster.spec.worker_groups().iter().any(|group| hosts_per_replica(group) > 1)
}

/// The headless Service that gives the hosts of multi-host groups names (RC-134).
pub fn headless_workers(cluster: &RayCluster, settings: &Settings) -> Service {
    let cx = Context::new(cluster, settings);
    Service {
        metadata: ObjectMeta {
            name: Some(names::headless_service(cx.name)),
            namespace: cluster.metadata.namespace.clone(),
            labels: Some(to_map([(label::HEADLESS_WORKER_SVC, cx.name.to_owned()), (label::CLUSTER, cx.name.to_owned())])),
            owner_references: Some(vec![owner_reference(cluster)]),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some(to_map([(label::CLUSTER, cx.name.to_owned()), (label::NODE_TYPE, node_type::WORKER.to_owned())])),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Whether a cluster that stands for itself asks for a serve Service (RC-15).
pub fn needs_serve(cluster: &RayCluster) -> bool {
    cluster.metadata.annotations.as_ref().and_then(|all| all.get(annotation::ENABLE_SERVE_SERVICE)).is_some_and(|value| value == "true")
}

/// The serve Service of a cluster that stands for itself (RC-135).
///
/// # Errors
/// When the head declares ports and none of them is for serving.
pub fn serve(cluster: &RayCluster, settings: &Settings) -> Result<Service, BuildError> {
    let cx = Context::new(cluster, settings);
    let ports = serve_ports(cluster);
    if ports.is_empty() {
        return Err(BuildError::NoServePort);
    }
    Ok(Service {
        metadata: ObjectMeta {
            name: Some(names::serve_service(cx.name)),
            namespace: cluster.metadata.namespace.clone(),
            labels: Some(to_map([
                (label::CLUSTER, cx.name.to_owned()),
                (label::ORIGINATED_FROM_CR_NAME, cx.name.to_owned()),
                (label::ORIGINATED_FROM_CRD, "RayCluster".to_owned()),
                (label::SERVE, names::check_label(&format!("{}-serve", cx.name))),
            ])),
            owner_references: Some(vec![owner_reference(cluster)]),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            type_: cluster.spec.head_group_spec.service_type.clone().filter(|kind| !kind.is_empty()),
            selector: Some(to_map([(label::CLUSTER, cx.name.to_owned())])),
            ports: Some(ports),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}

/// Ports of the head that are for serving, sorted by name: `serve` and `serve-…` (RC-135, RS-72). Empty if the head declares ports
/// without such a name.
pub fn serve_ports(cluster: &RayCluster) -> Vec<ServicePort> {
    let is_serving = |name: &str| name == port::SERVE_NAME || name.strip_prefix(port::SERVE_NAME).is_some_and(|rest| rest.starts_with('-'));
    head_ports(cluster)
        .into_iter()
        .filter(|port| port.name.as_deref().is_some_and(is_serving))
        .map(|port| ServicePort { app_protocol: None, ..port })
        .collect()
}

/// Port of the head Service that leads to the dashboard: the one called `dashboard`, or 8265 (RC-141).
pub fn dashboard_port(cluster: &RayCluster) -> i32 {
    let of_user = cluster.spec.head_group_spec.head_service.as_ref().and_then(|service| service.spec.as_ref()?.ports.clone());
    dashboard_of(&merge_ports(of_user.unwrap_or_default(), head_ports(cluster)))
}

/// Port of the head container that the dashboard listens on, as far as the container's ports tell (RC-143).
pub fn dashboard_container_port(cluster: &RayCluster) -> i32 {
    dashboard_of(&head_ports(cluster))
}

fn dashboard_of(ports: &[ServicePort]) -> i32 {
    ports.iter().find(|port| port.name.as_deref() == Some(port::DASHBOARD_NAME)).map_or(port::DASHBOARD, |port| port.port)
}

/// The ports of the head container, or Ray's defaults if it declares none, sorted by name (RC-131). Two ports of one name or one
/// number cannot stand in one Service: the first that is declared stays.
fn head_ports(cluster: &RayCluster) -> Vec<ServicePort> {
    const DEFAULTS: [(&str, i32); 5] = [
        (port::CLIENT_NAME, port::CLIENT),
        (port::GCS_NAME, port::GCS),
        (port::DASHBOARD_NAME, port::DASHBOARD),
        (port::METRICS_NAME, port::METRICS),
        (port::SERVE_NAME, port::SERVE),
    ];
    let ray = cluster.spec.head_group_spec.template.spec.as_ref().and_then(|spec| spec.containers.first());
    let declared: Vec<(String, i32)> = ray
        .and_then(|ray| ray.ports.as_ref())
        .into_iter()
        .flatten()
        .map(|port| (port_name(port.name.as_deref(), port.container_port), port.container_port))
        .collect();
    let metrics = (port::METRICS_NAME.to_owned(), port::METRICS);
    let wanted = if declared.is_empty() { DEFAULTS.map(|(name, number)| (name.to_owned(), number)).to_vec() } else { declared };
    let mut ports = BTreeMap::new();
    for (name, number) in wanted.into_iter().chain([metrics]) {
        if !ports.contains_key(&name) && !ports.values().any(|known| *known == number) {
            ports.insert(name, number);
        }
    }
    ports
        .into_iter()
        .map(|(name, port)| ServicePort { name: Some(name), port, app_protocol: Some("tcp".to_owned()), ..ServicePort::default() })
        .collect()
}

fn port_name(name: Option<&str>, number: i32) -> String {
    match name {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => format!("{number}-port"),
    }
}

/// The user's ports, then ours as far as name and number are still free; a Service with both would be refused (RC-133).
fn merge_ports(mut ports: Vec<ServicePort>, ours: Vec<ServicePort>) -> Vec<ServicePort> {
    for port in &mut ports {
        // With more than one port each needs a name.
        port.name = Some(port_name(port.name.as_deref(), port.port));
    }
    let names: BTreeSet<String> = ports.iter().filter_map(|port| port.name.clone()).collect();
    let numbers: BTreeSet<i32> =
        ports.iter().filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP")).map(|port| port.port).collect();
    ports.extend(
        ours.into_iter().filter(|port| !numbers.contains(&port.port) && port.name.as_ref().is_none_or(|name| !names.contains(name))),
    );
    ports
}

/// Labels of the head Service (RC-23).
fn head_labels(cx: &Context<'_>) -> BTreeMap<String, String> {
    let template = cx.cluster.spec.head_group_spec.template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let application = template.and_then(|labels| labels.get(label::K8S_NAME)).map_or(APPLICATION_NAME, String::as_str);
    to_map([
        (label::CLUSTER, cx.name.to_owned()),
        (label::NODE_TYPE, node_type::HEAD.to_owned()),
        (label::IDENTIFIER, names::identifier(cx.name, node_type::HEAD)),
        (label::K8S_NAME, application.to_owned()),
        (label::K8S_CREATED_BY, OPERATOR_NAME.to_owned()),
    ])
}

/// Labels by which the head Service finds the head: the same keys with the values that the Pod really has, also where the user set
/// them on the group or its template.
fn head_selector(cx: &Context<'_>) -> BTreeMap<String, String> {
    let group = &cx.cluster.spec.head_group_spec;
    let mut selector = head_labels(cx);
    let template = group.template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    for key in [label::IDENTIFIER, label::K8S_NAME, label::K8S_CREATED_BY] {
        if let Some(value) = [group.labels.as_ref(), template].into_iter().flatten().find_map(|labels| labels.get(key)) {
            selector.insert(key.to_owned(), value.clone());
        }
    }
    selector
}

fn to_map<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}
