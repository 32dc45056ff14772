//! What the autoscaler may do: ServiceAccount, Role and RoleBinding (RC-120..RC-124).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::core::ObjectMeta;
use shared::api::RayCluster;
use shared::labels::{APPLICATION_NAME, GROUP, OPERATOR_NAME, label};
use shared::names;

use super::owner_reference;
use crate::settings::Settings;

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// ServiceAccount that the head's template names, if any: the user made it, so it is used as it is and never made or changed here.
pub fn users_service_account(cluster: &RayCluster) -> Option<&str> {
    let spec = cluster.spec.head_group_spec.template.spec.as_ref()?;
    spec.service_account_name.as_deref().filter(|name| !name.is_empty())
}

/// ServiceAccount of the head of an autoscaled cluster: the user's, or one that the operator makes (RC-38).
pub fn service_account_name(cluster: &RayCluster) -> String {
    users_service_account(cluster).map_or_else(|| names::autoscaler_account(cluster_name(cluster)), str::to_owned)
}

/// The ServiceAccount of the autoscaler; without use where [`users_service_account`] names one.
pub fn service_account(cluster: &RayCluster, _settings: &Settings) -> ServiceAccount {
    ServiceAccount { metadata: metadata(cluster, service_account_name(cluster)), ..ServiceAccount::default() }
}

/// What the autoscaler needs: to see and mark the Pods, to resize them in place, and to write replicas into the RayCluster (RC-122).
pub fn role(cluster: &RayCluster, _settings: &Settings) -> Role {
    let rule = |group: &str, resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    Role {
        metadata: metadata(cluster, names::autoscaler_role(cluster_name(cluster))),
        rules: Some(vec![
            rule("", "pods", &["get", "list", "watch", "patch"]),
            rule("", "pods/resize", &["patch"]),
            rule(GROUP, "rayclusters", &["get", "patch"]),
        ]),
    }
}

/// Gives [`role`] to the autoscaler's ServiceAccount (RC-123).
pub fn role_binding(cluster: &RayCluster, _settings: &Settings) -> RoleBinding {
    let role = names::autoscaler_role(cluster_name(cluster));
    RoleBinding {
        metadata: metadata(cluster, role.clone()),
        role_ref: RoleRef { api_group: Some(RBAC_GROUP.to_owned()), kind: "Role".to_owned(), name: role },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: service_account_name(cluster),
            namespace: cluster.metadata.namespace.clone(),
            api_group: None,
        }]),
    }
}

fn cluster_name(cluster: &RayCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

fn metadata(cluster: &RayCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: cluster.metadata.namespace.clone(),
        labels: Some(labels(cluster)),
        owner_references: Some(vec![owner_reference(cluster)]),
        ..ObjectMeta::default()
    }
}

/// Labels of everything around a cluster that is not a Pod or Service (RC-24).
pub(super) fn labels(cluster: &RayCluster) -> BTreeMap<String, String> {
    [(label::CLUSTER, cluster_name(cluster)), (label::K8S_NAME, APPLICATION_NAME), (label::K8S_CREATED_BY, OPERATOR_NAME)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
