//! Pure: Kubernetes objects from a spec and the settings, one file per kind of child.
//!
//! Every function here is total: the same cluster and the same [`Settings`](crate::settings::Settings) always give the same
//! object, and a spec that cannot be built gives a [`BuildError`] that names the field. Names, labels, environment variables and
//! commands are those of KubeRay, so that clusters made by either operator look alike; what differs on purpose stands in
//! `docs/differences.md`.

pub mod auth;
mod container;
mod context;
pub mod env;
mod gcs_store;
pub mod ingress;
pub mod job_cluster;
pub mod pod;
pub mod pvc;
pub mod ray_start;
pub mod rbac;
pub mod redis_cleanup;
pub mod resources;
pub mod scheduling;
pub mod secret;
pub mod security;
pub mod service;
mod spec_hash;
pub mod submitter;

pub use container::shell;
pub use context::{Creator, head_fqdn, head_service_name};
pub use gcs_store::{GcsStore, gcs_store};
pub use spec_hash::spec_hash;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;

/// Why an object cannot be built from a spec. The text names the field to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A Pod template without containers: there is nothing that could run Ray (RC-202).
    #[error("{path}: the Pod template needs at least one container; the first one runs Ray")]
    NoContainers {
        /// The list that is empty.
        path: String,
    },
    /// A serve Service was asked for, but the head declares ports and none of them is for serving (RC-135, RS-73).
    #[error(
        "spec.headGroupSpec.template.spec.containers[0].ports: a serve Service needs a port named `serve` or `serve-…`; add one, or \
         declare no ports at all to get the default port 8000"
    )]
    NoServePort,
}

/// Controller owner reference to `owner` (RC-25). The uid is empty only for an object that the API server has not stored yet.
pub fn owner_reference<T: Resource<DynamicType = ()>>(owner: &T) -> OwnerReference {
    OwnerReference {
        api_version: T::api_version(&()).into_owned(),
        kind: T::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
