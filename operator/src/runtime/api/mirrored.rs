//! The kinds that the operator watches and writes: what is kept of each, and who wants to know of a change.

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    networking::v1::Ingress,
    rbac::v1::{Role, RoleBinding},
};
use kube::Resource;
use shared::{
    api::{RayCluster, RayCronJob, RayJob},
    labels::label,
};

use super::wake;
use crate::build::scheduling::{
    GROUP_SELECTOR,
    pod_group::{Plugins, PodGroup, Volcano},
};
use crate::runtime::{
    Context, Queues,
    cache::{Cache, Change, Kept, Lazy},
    pod_view::{POD_SELECTOR, PodView},
    views::{JOB_SELECTOR, JobView, Meta, ServiceView},
};

/// A kind that the operator watches, writes and keeps a cache of.
pub trait Mirrored: Resource<DynamicType = ()> {
    /// What is kept of it.
    type View: Kept;
    /// Labels of the objects that are watched; all of them if absent.
    const SELECTOR: Option<&'static str>;

    /// Where it is kept.
    fn cache(context: &Context) -> &Cache<Self::View>;

    /// Has those looked at whom a change concerns.
    fn wake(queues: &Queues, change: &Change<Self::View>);

    /// Has those looked at whom a change by the operator itself concerns. The one who made it knows of it already.
    fn wake_others(_queues: &Queues, _change: &Change<Self::View>) {}
}

macro_rules! owned {
    ($($kind:ty => $view:ty, $selector:expr, |$context:ident| $cache:expr, $wake:path;)+) => {$(
        impl Mirrored for $kind {
            type View = $view;
            const SELECTOR: Option<&'static str> = Some($selector);

            fn cache($context: &Context) -> &Cache<$view> {
                $cache
            }

            fn wake(queues: &Queues, change: &Change<$view>) {
                $wake(queues, &**change.object());
            }
        }
    )+};
}

owned! {
    Pod => PodView, POD_SELECTOR, |context| &context.pods, wake::pod;
    Service => ServiceView, label::CLUSTER, |context| &context.services, wake::service;
    Job => JobView, JOB_SELECTOR, |context| &context.batch_jobs, wake::controller;
    ServiceAccount => Meta<ServiceAccount>, label::CLUSTER, |context| &context.owned.service_accounts, wake::controller;
    Role => Meta<Role>, label::CLUSTER, |context| &context.owned.roles, wake::controller;
    RoleBinding => Meta<RoleBinding>, label::CLUSTER, |context| &context.owned.role_bindings, wake::controller;
    Secret => Meta<Secret>, label::CLUSTER, |context| &context.owned.secrets, wake::controller;
    PersistentVolumeClaim => Meta<PersistentVolumeClaim>, label::CLUSTER, |context| &context.owned.claims, wake::controller;
    Ingress => Meta<Ingress>, label::CLUSTER, |context| &context.owned.ingresses, wake::controller;
    PodGroup<Volcano> => PodGroup<Volcano>, GROUP_SELECTOR, |context| &context.pod_groups.volcano, wake::controller;
    PodGroup<Plugins> => PodGroup<Plugins>, GROUP_SELECTOR, |context| &context.pod_groups.plugins, wake::controller;
}

macro_rules! roots {
    ($($kind:ty, |$context:ident| $cache:expr;)+) => {$(
        impl Mirrored for $kind {
            type View = Lazy<$kind>;
            const SELECTOR: Option<&'static str> = None;

            fn cache($context: &Context) -> &Cache<Self::View> {
                $cache
            }

            fn wake(queues: &Queues, change: &Change<Self::View>) {
                wake::root(queues, change);
            }

            fn wake_others(queues: &Queues, change: &Change<Self::View>) {
                wake::root(queues, change);
            }
        }
    )+};
}

roots! {
    RayCluster, |context| context.clusters.cache();
    RayJob, |context| context.jobs.cache();
    RayCronJob, |context| context.cron_jobs.cache();
}
