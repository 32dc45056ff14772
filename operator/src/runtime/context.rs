//! What all controllers share.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Namespace, PersistentVolumeClaim, Secret, ServiceAccount},
    networking::v1::Ingress,
    rbac::v1::{Role, RoleBinding},
};
use kube::Client;
use serde_json::Value;
use shared::{
    api::{RayCluster, RayCronJob, RayJob},
    validation::Kind,
};

use super::{
    api::{Calls, controller_of},
    cache::{Cache, Kept, Lazy, Root, Roots, Scope},
    clock::Clock,
    events::Events,
    metrics::Metrics,
    pod_groups::PodGroups,
    pod_view::PodView,
    queue::Queue,
    softening::{Judgement, Labels, Softening},
    views::{JobView, Meta, ServiceView},
};
use crate::settings::Settings;

/// What all controllers share. Kept in an [`Arc`].
///
/// Caches answer "which of them belong to X" ([`Cache::in_group`]). What X is:
/// - for `pods` and `services`, the name of a RayCluster (label `ray.io/cluster`),
/// - for every other kind, the uid of the object's controller.
pub struct Context {
    /// For calls that have no helper here.
    pub client: Client,
    /// What was decided at start.
    pub settings: Arc<Settings>,
    /// How the Ray dashboard is reached.
    pub dashboard: DashboardAccess,
    /// Pods of Ray, by RayCluster.
    pub pods: Cache<PodView>,
    /// RayClusters, by the uid of the RayJob or RayService that made them.
    pub clusters: Roots<RayCluster>,
    /// RayJobs, by the uid of the RayCronJob that made them.
    pub jobs: Roots<RayJob>,
    /// RayCronJobs. Empty unless the feature gate `RayCronJob` is on.
    pub cron_jobs: Roots<RayCronJob>,
    /// Jobs made by the operator, by the uid of their RayJob or RayCluster.
    pub batch_jobs: Cache<JobView>,
    /// Services of RayClusters, by RayCluster.
    pub services: Cache<ServiceView>,
    /// Other objects made by the operator, by the uid of their RayCluster.
    pub owned: Owned,
    /// PodGroups made by the operator, where a gang scheduler was chosen that has them.
    pub pod_groups: PodGroups,
    /// Which objects are to be looked at.
    pub queues: Queues,
    /// Calls to the API server that bypass the caches.
    pub calls: Calls,
    /// Rules that only warn.
    softening: Softening,
    /// Where events are told.
    pub events: Events,
    /// What Prometheus gets to know.
    pub metrics: Metrics,
    /// The time.
    pub clock: Clock,
}

/// Caches of objects of which only the metadata is kept. All have the label `ray.io/cluster`.
#[derive(Clone)]
#[allow(missing_docs)] // the kinds speak for themselves
pub struct Owned {
    pub service_accounts: Cache<Meta<ServiceAccount>>,
    pub roles: Cache<Meta<Role>>,
    pub role_bindings: Cache<Meta<RoleBinding>>,
    pub secrets: Cache<Meta<Secret>>,
    pub claims: Cache<Meta<PersistentVolumeClaim>>,
    pub ingresses: Cache<Meta<Ingress>>,
}

/// The queues of the controllers. To have an object looked at is cheap and never wrong.
#[derive(Clone, Default)]
pub struct Queues {
    /// RayClusters.
    pub clusters: Queue,
    /// RayJobs.
    pub jobs: Queue,
    /// RayCronJobs.
    pub cron_jobs: Queue,
}

/// How the Ray dashboard is reached (RC-252).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DashboardAccess {
    /// Directly, by the name of the head Service.
    #[default]
    Direct,
    /// Through the API server's proxy, for an operator outside the cluster (`--use-kubernetes-proxy`).
    ApiServerProxy,
}

/// The parts of a [`Context`] that do not follow from others.
pub struct Parts {
    /// Client for everything but the lease.
    pub client: Client,
    /// What was decided at start.
    pub settings: Settings,
    /// How the Ray dashboard is reached.
    pub dashboard: DashboardAccess,
    /// The namespaces that are watched.
    pub scopes: Vec<Scope>,
    /// What Prometheus gets to know.
    pub metrics: Metrics,
    /// The time.
    pub clock: Clock,
}

impl Context {
    /// A context with empty caches, which [`watch`](super::watch) fills.
    pub fn new(parts: Parts) -> Self {
        let Parts { client, settings, dashboard, scopes, metrics, clock } = parts;
        Self {
            softening: Softening::new(settings.rules_file.clone()),
            settings: Arc::new(settings),
            dashboard,
            pods: Cache::new(PodView::cluster, &scopes),
            clusters: Roots::new(|cluster: &Lazy<RayCluster>| controller_uid(cluster), &scopes),
            jobs: Roots::new(|job: &Lazy<RayJob>| controller_uid(job), &scopes),
            cron_jobs: Roots::new(|_: &Lazy<RayCronJob>| None, &scopes),
            batch_jobs: Cache::new(|job: &JobView| controller_uid(job), &scopes),
            services: Cache::new(|service: &ServiceView| service.cluster.as_deref(), &scopes),
            owned: Owned {
                service_accounts: by_controller(&scopes),
                roles: by_controller(&scopes),
                role_bindings: by_controller(&scopes),
                secrets: by_controller(&scopes),
                claims: by_controller(&scopes),
                ingresses: by_controller(&scopes),
            },
            pod_groups: PodGroups::new(&scopes),
            queues: Queues::default(),
            calls: Calls::new(client.clone(), metrics.clone()),
            events: Events::start(client.clone(), clock.clone(), metrics.clone()),
            client,
            metrics,
            clock,
        }
    }
}

impl Context {
    /// What the rules have against a stored object, apart from those that only warn in its namespace.
    pub async fn judge(&self, kind: Kind, object: &Value) -> Judgement {
        let labels = async |namespace: &str| match self.calls.get::<Namespace, Namespace>("", namespace).await {
            Ok(found) => found.and_then(|namespace| namespace.metadata.labels).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(namespace, %error, "cannot read the labels of a namespace, by which --rules-file chooses");
                Labels::new()
            }
        };
        self.softening.judge(kind, object, &self.settings.features, labels).await
    }
}

fn by_controller<T: Kept>(scopes: &[Scope]) -> Cache<T> {
    Cache::new(|object: &T| controller_uid(object), scopes)
}

fn controller_uid(object: &impl kube::Resource) -> Option<&str> {
    controller_of(object.meta()).map(|owner| owner.uid.as_str())
}

/// A kind with a queue of its own.
pub trait Queued: Root {
    /// Where its objects queue.
    fn queue(queues: &Queues) -> &Queue;
}

impl Queued for RayCluster {
    fn queue(queues: &Queues) -> &Queue {
        &queues.clusters
    }
}

impl Queued for RayJob {
    fn queue(queues: &Queues) -> &Queue {
        &queues.jobs
    }
}

impl Queued for RayCronJob {
    fn queue(queues: &Queues) -> &Queue {
        &queues.cron_jobs
    }
}
