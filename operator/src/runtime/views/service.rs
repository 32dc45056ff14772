//! Services, reduced.

use k8s_openapi::{
    api::core::v1::Service,
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};
use kube::Resource;
use serde::Deserialize;

use crate::runtime::{cache::Kept, trim};

/// A Service, reduced.
#[derive(Resource, Deserialize, Clone, Debug)]
#[resource(inherit = Service)]
#[serde(from = "Read")]
pub struct ServiceView {
    /// Names and owners. Neither labels nor annotations.
    pub metadata: ObjectMeta,
    /// The RayCluster that its label names.
    pub cluster: Option<Box<str>>,
    /// Type, address and ports.
    pub spec: ServiceFacts,
}

/// A Service as it is read.
#[derive(Deserialize)]
struct Read {
    #[serde(deserialize_with = "trim::metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ServiceFacts,
}

impl From<Read> for ServiceView {
    fn from(Read { mut metadata, spec }: Read) -> Self {
        let cluster = trim::take_cluster(&mut metadata);
        trim::to_identity(&mut metadata);
        Self { metadata, cluster, spec }
    }
}

/// What is kept of a Service's spec.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceFacts {
    /// Such as `ClusterIP`.
    #[serde(rename = "type")]
    pub type_: Box<str>,
    /// Address, `None` for a headless Service, empty as long as there is none.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Box<str>,
    /// Ports.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Name, empty if it has none.
    pub name: Box<str>,
    /// Port of the Service.
    pub port: i32,
    /// Port of the Pods, by number or name.
    pub target_port: Option<IntOrString>,
    /// Port of the nodes, for types that have one.
    pub node_port: Option<i32>,
}

impl Kept for ServiceView {
    fn differs(&self, older: &Self) -> bool {
        trim::is_other_version(&self.metadata, &older.metadata)
    }
}
