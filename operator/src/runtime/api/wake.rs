//! Whom a change concerns.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use shared::labels::GROUP;

use super::controller_of;
use crate::runtime::{
    ObjectKey, Queued, Queues,
    cache::{Change, Lazy, Root},
    pod_view::PodView,
    views::ServiceView,
};

/// The RayCluster to which a Pod belongs by its label.
pub(super) fn pod(queues: &Queues, pod: &PodView) {
    cluster(queues, &pod.metadata, pod.cluster());
}

/// The RayCluster to which a Service belongs by its label.
pub(super) fn service(queues: &Queues, service: &ServiceView) {
    cluster(queues, &service.metadata, service.cluster.as_deref());
}

fn cluster(queues: &Queues, meta: &ObjectMeta, name: Option<&str>) {
    if let Some(name) = name {
        queues.clusters.wake(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), name));
    }
}

/// The Ray object that controls this one.
pub(super) fn controller<K: Resource>(queues: &Queues, object: &K) {
    controller_in(queues, object.meta());
}

fn controller_in(queues: &Queues, meta: &ObjectMeta) {
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
    let edited = match change {
        Change::Set { old: Some(old), new } => new.is_edited(old),
        Change::Set { old: None, .. } | Change::Gone { .. } => true,
    };
    if edited {
        T::queue(queues).wake_now(ObjectKey::of(&**change.object()));
    }
    controller_in(queues, change.object().meta());
}
