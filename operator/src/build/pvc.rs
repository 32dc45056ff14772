//! The claim for embedded GCS storage (RC-145, RC-146).

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::ObjectMeta;
use shared::api::RayCluster;
use shared::api::raycluster::{GcsStorage, GcsStorageDeletionPolicy};
use shared::labels::label;
use shared::names;

use super::owner_reference;

fn storage(cluster: &RayCluster) -> Option<&GcsStorage> {
    cluster.spec.gcs_fault_tolerance_options.as_ref()?.storage.as_ref()
}

/// Claim that the user brings, if any; it is used and never changed.
pub fn users_claim(cluster: &RayCluster) -> Option<&str> {
    storage(cluster)?.claim_name.as_deref().filter(|name| !name.is_empty())
}

/// Name of the claim that the head mounts (RC-85).
pub fn gcs_claim_name(cluster: &RayCluster) -> String {
    users_claim(cluster).map_or_else(|| names::gcs_claim(cluster.metadata.name.as_deref().unwrap_or_default()), str::to_owned)
}

/// Whether the claim stays when the cluster goes; it then has no owner.
pub fn is_retained(cluster: &RayCluster) -> bool {
    storage(cluster).is_some_and(|storage| storage.deletion_policy == Some(GcsStorageDeletionPolicy::Retain))
}

/// The claim that the operator makes where the user brings none.
pub fn gcs(cluster: &RayCluster) -> PersistentVolumeClaim {
    let storage = storage(cluster).cloned().unwrap_or_default();
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let size = storage.size.unwrap_or_else(|| Quantity("1Gi".to_owned()));
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(names::gcs_claim(&name)),
            namespace: cluster.metadata.namespace.clone(),
            labels: Some([(label::CLUSTER.to_owned(), name)].into()),
            owner_references: (!is_retained(cluster)).then(|| vec![owner_reference(cluster)]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(storage.access_modes.filter(|modes| !modes.is_empty()).unwrap_or_else(|| vec!["ReadWriteOnce".to_owned()])),
            resources: Some(VolumeResourceRequirements { requests: Some([("storage".to_owned(), size)].into()), limits: None }),
            storage_class_name: storage.storage_class_name,
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
