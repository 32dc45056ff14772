//! The way to the dashboard from outside: an Ingress, on OpenShift a Route (RC-140..RC-143).

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec, ServiceBackendPort,
};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta};
use serde_json::json;
use shared::api::RayCluster;
use shared::api::raycluster::IngressPathType;
use shared::labels::{annotation, label, node_type};
use shared::names;

use super::{head_service_name, owner_reference, rbac, service};
use crate::settings::Settings;

/// Whether the dashboard is to be reachable from outside (RC-140).
pub fn wanted(cluster: &RayCluster) -> bool {
    cluster.spec.head_group_spec.enable_ingress == Some(true)
}

/// Whether a Route takes the place of the Ingress here (RC-140).
pub fn uses_route(settings: &Settings) -> bool {
    settings.platform.openshift && !settings.switches.ingress_on_openshift
}

/// The Ingress to the dashboard (RC-141). `spec.ingressClassName` is absent unless the cluster's annotation names a class.
pub fn ingress(cluster: &RayCluster, _settings: &Settings) -> Ingress {
    let options = cluster.spec.head_group_spec.ingress_options.clone().unwrap_or_default();
    let path = HTTPIngressPath {
        path: Some(options.path.filter(|path| !path.is_empty()).unwrap_or_else(|| "/".to_owned())),
        path_type: options.path_type.unwrap_or(IngressPathType::Prefix).as_str().to_owned(),
        backend: IngressBackend {
            service: Some(IngressServiceBackend {
                name: head_service_name(cluster),
                port: Some(ServiceBackendPort { number: Some(service::dashboard_port(cluster)), name: None }),
            }),
            resource: None,
        },
    };
    let class = cluster.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::INGRESS_CLASS)).cloned();
    Ingress {
        metadata: metadata(cluster, names::ingress(name(cluster)), &[annotation::INGRESS_CLASS]),
        spec: Some(IngressSpec {
            ingress_class_name: class,
            rules: Some(vec![IngressRule {
                host: options.host.filter(|host| !host.is_empty()),
                http: Some(HTTPIngressRuleValue { paths: vec![path] }),
            }]),
            tls: options.tls.filter(|tls| !tls.is_empty()),
            default_backend: None,
        }),
        status: None,
    }
}

/// The API that Routes live in.
pub fn route_api() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("route.openshift.io", "v1", "Route"), "routes")
}

/// The Route to the dashboard (RC-143).
pub fn route(cluster: &RayCluster, _settings: &Settings) -> DynamicObject {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let mut route = DynamicObject::new("", &route_api()).data(json!({"spec": {
        "to": {"kind": "Service", "name": head_service_name(cluster), "weight": 100},
        // A Route looks at the endpoints behind the Service.
        "port": {"targetPort": service::dashboard_container_port(cluster)},
        "wildcardPolicy": "None",
    }}));
    route.metadata = metadata(cluster, names::route(name(cluster), namespace), &[]);
    route
}

fn name(cluster: &RayCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

/// The cluster's annotations configure whatever serves the Ingress; what `kubectl` keeps there about the cluster stays behind.
fn metadata(cluster: &RayCluster, name_of_object: String, without: &[&str]) -> ObjectMeta {
    let mut annotations: BTreeMap<String, String> = cluster.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| key != annotation::LAST_APPLIED && !without.contains(&key.as_str()));
    let mut labels = rbac::labels(cluster);
    labels.insert(label::IDENTIFIER.to_owned(), names::identifier(name(cluster), node_type::HEAD));
    ObjectMeta {
        name: Some(name_of_object),
        namespace: cluster.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        owner_references: Some(vec![owner_reference(cluster)]),
        ..ObjectMeta::default()
    }
}
