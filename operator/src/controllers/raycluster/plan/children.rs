//! The objects around the Pods: Services, the way in from outside, the autoscaler's rights, the token, the volume.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::DynamicObject;
use shared::api::RayCluster;
use shared::names;

use crate::build::scheduling::Gang;
use crate::build::{GcsStore, gcs_store, ingress, pvc, rbac, secret, service};
use crate::controllers::raycluster::notes::Note;
use crate::runtime::views::ServiceView;
use crate::settings::Settings;

/// What is to become of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted<T> {
    /// It is to be there like this.
    Here(Box<T>),
    /// It is not to be there. One that is not the cluster's stays.
    Nowhere {
        /// Name of the object.
        name: String,
    },
    /// It stays as it is.
    Untouched,
}

impl<T> Wanted<T> {
    fn here(object: T) -> Self {
        Self::Here(Box::new(object))
    }
}

/// Every object around the Pods. Whoever applies it takes it apart field by field, so that none is forgotten.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChildren {
    /// Service of the head (RC-130).
    pub head_service: Wanted<Service>,
    /// Service that gives the hosts of multi-host groups names (RC-134).
    pub headless_service: Wanted<Service>,
    /// Service for serving (RC-135).
    pub serve_service: Wanted<Service>,
    /// Ingress to the dashboard (RC-141).
    pub ingress: Wanted<Ingress>,
    /// OpenShift Route to the dashboard (RC-143).
    pub route: Wanted<DynamicObject>,
    /// ServiceAccount of the autoscaler (RC-120).
    pub service_account: Wanted<ServiceAccount>,
    /// Rights of the autoscaler (RC-122).
    pub role: Wanted<Role>,
    /// Gives the rights to the ServiceAccount (RC-123).
    pub role_binding: Wanted<RoleBinding>,
    /// Secret with the token; what is in it is drawn when it is made (RC-126).
    pub auth_secret: Wanted<()>,
    /// Volume of the embedded GCS store (RC-146).
    pub gcs_claim: Wanted<PersistentVolumeClaim>,
    /// PodGroup of the gang scheduler (BS-10, BS-51).
    pub pod_group: Gang,
}

impl DesiredChildren {
    /// Everything stays as it is.
    pub fn untouched() -> Self {
        Self {
            head_service: Wanted::Untouched,
            headless_service: Wanted::Untouched,
            serve_service: Wanted::Untouched,
            ingress: Wanted::Untouched,
            route: Wanted::Untouched,
            service_account: Wanted::Untouched,
            role: Wanted::Untouched,
            role_binding: Wanted::Untouched,
            auth_secret: Wanted::Untouched,
            gcs_claim: Wanted::Untouched,
            pod_group: Gang::Leave,
        }
    }
}

/// The objects that a valid cluster is to have, and what there is to say about those that cannot be built. `has_pods` says whether
/// Pods exist that may rest on what an earlier spec asked for; `known_head` is the head's Service as it is.
pub(super) fn desired(
    cluster: &RayCluster,
    has_pods: bool,
    known_head: Option<&ServiceView>,
    settings: &Settings,
) -> (DesiredChildren, Vec<Note>) {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let mut notes = Vec::new();
    let headless_service = if service::needs_headless_workers(cluster) {
        Wanted::here(service::headless_workers(cluster, settings))
    } else {
        Wanted::Nowhere { name: names::headless_service(name) }
    };
    let serve_service = match service::needs_serve(cluster).then(|| service::serve(cluster, settings)) {
        Some(Ok(service)) => Wanted::here(service),
        Some(Err(error)) => {
            notes.push(Note::warning("FailedToCreateService", "Create", error.to_string()).about("serve service"));
            Wanted::Untouched
        }
        None => Wanted::Nowhere { name: names::serve_service(name) },
    };
    let (exposed, by_route) = (ingress::wanted(cluster), ingress::uses_route(settings));
    let ingress = if exposed && !by_route {
        Wanted::here(ingress::ingress(cluster, settings))
    } else {
        Wanted::Nowhere { name: names::ingress(name) }
    };
    let route = match (settings.platform.openshift, exposed && by_route) {
        (false, _) => Wanted::Untouched,
        (true, true) => Wanted::here(ingress::route(cluster, settings)),
        (true, false) => Wanted::Nowhere { name: names::route(name, namespace) },
    };
    let autoscaling = cluster.spec.autoscaling();
    let service_account = match (autoscaling, rbac::users_service_account(cluster)) {
        (false, _) => Wanted::Nowhere { name: names::autoscaler_account(name) },
        (true, None) => Wanted::here(rbac::service_account(cluster, settings)),
        // The running head may still use the one that was made before the user named another.
        (true, Some(_)) => Wanted::Untouched,
    };
    let (role, role_binding) = if autoscaling {
        (Wanted::here(rbac::role(cluster, settings)), Wanted::here(rbac::role_binding(cluster, settings)))
    } else {
        let name = names::autoscaler_role(name);
        (Wanted::Nowhere { name: name.clone() }, Wanted::Nowhere { name })
    };
    let auth_secret = match (secret::wanted(cluster), has_pods) {
        (true, _) => Wanted::here(()),
        // A container of a running Pod reads its token again when it restarts.
        (false, true) => Wanted::Untouched,
        (false, false) => Wanted::Nowhere { name: names::auth_secret(name) },
    };
    // A volume holds state: it is never deleted because the spec changed.
    let gcs_claim = match gcs_store(cluster) {
        Some(GcsStore::Embedded) if pvc::users_claim(cluster).is_none() => Wanted::here(pvc::gcs(cluster)),
        _ => Wanted::Untouched,
    };
    let (head_service, note) = head_service(service::head(cluster, settings), known_head);
    notes.extend(note);
    let children = DesiredChildren {
        head_service,
        headless_service,
        serve_service,
        ingress,
        route,
        service_account,
        role,
        role_binding,
        auth_secret,
        gcs_claim,
        // What it is to be follows from what becomes of the Pods.
        pod_group: Gang::Leave,
    };
    (children, notes)
}

/// A Service keeps its address, or the lack of one, for life (C-32). Where a type is asked for that needs an address, a Service without
/// one is deleted, and made anew at the next look. One that has an address keeps it, although it would be made without one today.
fn head_service(mut wanted: Service, known: Option<&ServiceView>) -> (Wanted<Service>, Option<Note>) {
    let address = known.map(|known| &*known.spec.cluster_ip).unwrap_or_default();
    let name = wanted.metadata.name.clone().unwrap_or_default();
    if let Some(spec) = &mut wanted.spec {
        let kind = spec.type_.as_deref().unwrap_or_default();
        if address == "None" && matches!(kind, "NodePort" | "LoadBalancer") {
            let text = format!("Service {name} is made anew, because type {kind} needs an address and the Service was made without one");
            return (Wanted::Nowhere { name }, Some(Note::normal("UpdatedService", "Update", text)));
        }
        if !matches!(address, "" | "None") && spec.cluster_ip.as_deref() == Some("None") {
            spec.cluster_ip = None;
        }
    }
    (Wanted::here(wanted), None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_32_a_service_keeps_its_address_or_is_made_anew() {
        // type and address wanted, address there is; is it kept, and with which address in the request
        let table = [
            (None, Some("None"), None, true, Some("None")),
            (None, Some("None"), Some("None"), true, Some("None")),
            (Some("LoadBalancer"), None, None, true, None),
            (Some("LoadBalancer"), None, Some("None"), false, None),
            (Some("NodePort"), None, Some("None"), false, None),
            (Some("LoadBalancer"), None, Some("10.1.1.1"), true, None),
            (None, Some("None"), Some("10.1.1.1"), true, None),
            (Some("ClusterIP"), None, Some("None"), true, None),
        ];
        for (kind, address, known, kept, sent) in table {
            let wanted: Service =
                serde_json::from_value(json!({ "metadata": { "name": "s" }, "spec": { "type": kind, "clusterIP": address } })).unwrap();
            let known: Option<ServiceView> = known
                .map(|address| serde_json::from_value(json!({ "metadata": { "name": "s" }, "spec": { "clusterIP": address } })).unwrap());
            let (step, note) = head_service(wanted, known.as_ref());
            match step {
                Wanted::Here(service) if kept => assert_eq!(service.spec.unwrap().cluster_ip.as_deref(), sent),
                Wanted::Nowhere { .. } if !kept => assert!(note.is_some()),
                other => panic!("{kind:?} {address:?} {known:?}: {other:?}"),
            }
        }
    }
}
