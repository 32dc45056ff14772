//! Whom a change concerns.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource as _;
use shared::labels::{GROUP, label};

use super::controller_of;
use crate::runtime::{
    ObjectKey, Queued, Queues,
    cache::{Change, Lazy, Root},
};

/// The RayCluster that the label names.
pub(super) fn labelled_cluster(queues: &Queues, meta: &ObjectMeta) {
    if let Some(cluster) = meta.labels.as_ref().and_then(|labels| labels.get(label::CLUSTER)) {
        queues.clusters.wake(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), cluster.as_str()));
    }
}

/// The Ray object that controls this one.
pub(super) fn controller(queues: &Queues, meta: &ObjectMeta) {
    let Some(owner) = controller_of(meta).filter(|owner| owner.api_version.split('/').next() == Some(GROUP)) else { return };
    let queue = match owner.kind.as_str() {
        "RayCluster" => &queues.clusters,
        "RayJob" => &queues.jobs,
        "RayCronJob" => &queues.cron_jobs,
        _ => return,
    };
    queue.wake(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), owner.name.as_str()));
}

/// The Ray object itself, at once, unless only its status changed; and, whatever changed, the one that controls it.
pub(super) fn root<T: Root + Queued>(queues: &Queues, change: &Change<Lazy<T>>) {
    let meta = change.object().meta();
    let edited = match change {
        Change::Set { old: Some(old), new } => new.is_edited(old),
        Change::Set { old: None, .. } | Change::Gone { .. } => true,
    };
    if edited {
        T::queue(queues).wake_now(ObjectKey::of(&**change.object()));
    }
    controller(queues, meta);
}
