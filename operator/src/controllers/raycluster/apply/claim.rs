//! The volume of the embedded GCS store (RC-145..RC-147). It holds state, so it is made, adopted and released, but never changed
//! or deleted.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use serde_json::json;
use shared::api::RayCluster;

use super::{Applied, Of, children::foreign};
use crate::build::{owner_reference, pvc};
use crate::controllers::raycluster::memory::ClusterMemory;
use crate::controllers::raycluster::notes::Note;
use crate::controllers::raycluster::plan::Wanted;
use crate::runtime::Context;
use crate::runtime::api::{ApiError, Created, controller_of, is_controlled_by};

/// How long a claim is trusted to be as it was.
const TRUST: SignedDuration = SignedDuration::from_secs(300);
/// Key in [`ClusterMemory::checked`].
const CHECKED: &str = "gcs claim";
const FAILED: &str = "FailedToCreatePVC";

/// Has the claim as it is wanted.
pub(super) async fn apply(
    context: &Context,
    cluster: &RayCluster,
    wanted: Wanted<PersistentVolumeClaim>,
    memory: &mut ClusterMemory,
    applied: &mut Applied,
    now: Timestamp,
) {
    let Wanted::Here(wanted) = wanted else { return };
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&*wanted).unwrap_or_default().hash(&mut hasher);
    let mark = hasher.finish();
    let here = context.owned.claims.get(Of::cluster(cluster).namespace, &wanted.name_any()).is_some();
    if here && memory.checked.get(CHECKED).is_some_and(|(known, at)| *known == mark && now.duration_since(*at) < TRUST) {
        return;
    }
    match keep(context, cluster, &wanted, applied, now).await {
        Ok(()) => {
            memory.checked.insert(CHECKED, (mark, now));
        }
        Err(error) => {
            applied.notes.push(Note::warning(FAILED, "Create", error.to_string()).about(CHECKED));
            applied.fail(error);
        }
    }
}

async fn keep(
    context: &Context,
    cluster: &RayCluster,
    wanted: &PersistentVolumeClaim,
    applied: &mut Applied,
    now: Timestamp,
) -> Result<(), ApiError> {
    let (Of { namespace, uid }, name) = (Of::cluster(cluster), wanted.name_any());
    let found = context.calls.get::<PersistentVolumeClaim, PersistentVolumeClaim>(namespace, &name).await?;
    let Some(found) = found else {
        if let Created::New(_) = context.create(wanted).await? {
            applied.notes.push(Note::normal("CreatedPVC", "Create", format!("Created PersistentVolumeClaim {name}")));
        }
        return Ok(());
    };
    if let Some(difference) = difference(wanted, &found) {
        let text = format!(
            "PersistentVolumeClaim {name} exists with another {difference} than asked for; it stays as it is, because it holds state"
        );
        applied.notes.push(Note::warning(FAILED, "Update", text).about("gcs claim differs"));
    }
    let ours = is_controlled_by(&found.metadata, uid);
    match (pvc::is_retained(cluster), ours, controller_of(&found.metadata)) {
        (true, true, _) => {
            let others: Vec<_> = found.owner_references().iter().filter(|owner| owner.uid != uid).collect();
            context.patch::<PersistentVolumeClaim>(&found.metadata, json!({ "metadata": { "ownerReferences": others } })).await?;
        }
        (false, false, None) => {
            let mut owners = found.owner_references().to_vec();
            owners.push(owner_reference(cluster));
            context.patch::<PersistentVolumeClaim>(&found.metadata, json!({ "metadata": { "ownerReferences": owners } })).await?;
        }
        (false, false, Some(_)) => foreign(applied, "PersistentVolumeClaim", &name, FAILED, now),
        _ => {}
    }
    Ok(())
}

/// The first of size, storage class and access modes in which the claim is not as wanted. A class that is not asked for is the
/// default one, whatever that was.
fn difference(wanted: &PersistentVolumeClaim, found: &PersistentVolumeClaim) -> Option<&'static str> {
    let (wanted, found) = (wanted.spec.as_ref()?, found.spec.as_ref()?);
    let size = |spec: &k8s_openapi::api::core::v1::PersistentVolumeClaimSpec| {
        let requests = spec.resources.as_ref()?.requests.as_ref()?;
        shared::quantity::Quantity::parse(&requests.get("storage")?.0).ok()
    };
    let modes = |spec: &k8s_openapi::api::core::v1::PersistentVolumeClaimSpec| {
        let mut modes = spec.access_modes.clone().unwrap_or_default();
        modes.sort();
        modes
    };
    let class_differs = wanted.storage_class_name.is_some() && wanted.storage_class_name != found.storage_class_name;
    match () {
        () if size(wanted) != size(found) => Some("size"),
        () if class_differs => Some("storage class"),
        () if modes(wanted) != modes(found) => Some("list of access modes"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_compared_by_size_class_and_modes() {
        let claim = |size: &str, class: Option<&str>, modes: &[&str]| -> PersistentVolumeClaim {
            serde_json::from_value(json!({ "spec": {
                "resources": { "requests": { "storage": size } }, "storageClassName": class, "accessModes": modes,
            }}))
            .unwrap()
        };
        let table = [
            (claim("1Gi", None, &["A", "B"]), claim("1024Mi", Some("x"), &["B", "A"]), None),
            (claim("2Gi", None, &["A"]), claim("1Gi", None, &["A"]), Some("size")),
            (claim("1Gi", Some("y"), &["A"]), claim("1Gi", Some("x"), &["A"]), Some("storage class")),
            (claim("1Gi", None, &["A"]), claim("1Gi", None, &["A", "A"]), Some("list of access modes")),
        ];
        for (wanted, found, difference_found) in table {
            assert_eq!(difference(&wanted, &found), difference_found);
        }
    }
}
