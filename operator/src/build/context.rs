//! What every builder needs to know of a cluster, worked out once.

use shared::api::RayCluster;
use shared::labels::{annotation, label, port};
use shared::names;

use crate::settings::Settings;

/// Kind of the object that a cluster was made for (RC-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creator {
    /// The cluster stands for itself.
    RayCluster,
    /// A RayJob made it.
    RayJob,
    /// A RayService made it.
    RayService,
}

impl Creator {
    /// Reads the label of the cluster; an unknown value counts as no label.
    pub fn of(cluster: &RayCluster) -> Self {
        match cluster.metadata.labels.as_ref().and_then(|labels| labels.get(label::ORIGINATED_FROM_CRD)).map(String::as_str) {
            Some("RayJob") => Self::RayJob,
            Some("RayService") => Self::RayService,
            _ => Self::RayCluster,
        }
    }

    /// The kind as written in labels.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::RayCluster => "RayCluster",
            Self::RayJob => "RayJob",
            Self::RayService => "RayService",
        }
    }
}

/// Name of the cluster's head Service: the user's, or the generated one (RC-15).
pub fn head_service_name(cluster: &RayCluster) -> String {
    let chosen = cluster.spec.head_group_spec.head_service.as_ref().and_then(|service| service.metadata.name.as_deref());
    match chosen {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => names::head_service(cluster.metadata.name.as_deref().unwrap_or_default()),
    }
}

/// Name under which the head answers in the whole Kubernetes cluster (RC-16).
pub fn head_fqdn(cluster: &RayCluster, settings: &Settings) -> String {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    names::fqdn(&head_service_name(cluster), namespace, &settings.switches.cluster_domain)
}

/// A cluster with the facts derived from it that several builders need.
pub(super) struct Context<'a> {
    pub(super) cluster: &'a RayCluster,
    pub(super) settings: &'a Settings,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) creator: Creator,
    /// Name of the head Service.
    pub(super) head_service: String,
    /// The same with namespace and domain.
    pub(super) fqdn: String,
    /// Port of the GCS server as text: whatever `port` says in the head's `rayStartParams` (RC-45).
    pub(super) head_port: String,
}

impl<'a> Context<'a> {
    pub(super) fn new(cluster: &'a RayCluster, settings: &'a Settings) -> Self {
        let port_param = cluster.spec.head_group_spec.ray_start_params.as_ref().and_then(|params| params.get("port"));
        Self {
            cluster,
            settings,
            name: cluster.metadata.name.as_deref().unwrap_or_default(),
            namespace: cluster.metadata.namespace.as_deref().unwrap_or_default(),
            creator: Creator::of(cluster),
            head_service: head_service_name(cluster),
            fqdn: head_fqdn(cluster, settings),
            head_port: port_param.cloned().unwrap_or_else(|| port::GCS.to_string()),
        }
    }

    /// A label of the cluster object.
    pub(super) fn label(&self, key: &str) -> Option<&'a str> {
        self.cluster.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation of the cluster object.
    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.cluster.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether the user's container commands stay as they are (RC-44).
    pub(super) fn overwrites_command(&self) -> bool {
        self.annotation(annotation::OVERWRITE_CONTAINER_CMD).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// `host:port` of the GCS server as workers see it.
    pub(super) fn gcs_address(&self) -> String {
        format!("{}:{}", self.fqdn, self.head_port)
    }
}
