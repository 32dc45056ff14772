//! Facts that are read from the caches when somebody asks (RC-260, RC-261).

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};
use shared::{
    api::{RayCluster, RayJob},
    labels::label,
};

use crate::build::scheduling::Scheduler;
use crate::runtime::{
    Context,
    cache::{Cache, Kept, Root, Roots},
    queue::Queue,
};

/// One series: its labels in order.
type Labels = Vec<(&'static str, String)>;

/// A gauge whose series are made when somebody asks.
pub struct Gauges<F> {
    name: &'static str,
    help: &'static str,
    series: F,
}

impl<F: Fn() -> Vec<(Labels, i64)> + Send + Sync + 'static> Gauges<F> {
    /// A gauge called `name`; `series` gives labels and value of each of its series.
    pub fn new(name: &'static str, help: &'static str, series: F) -> Self {
        Self { name, help, series }
    }
}

impl<F> fmt::Debug for Gauges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gauges").field(&self.name).finish()
    }
}

impl<F: Fn() -> Vec<(Labels, i64)> + Send + Sync + 'static> Collector for Gauges<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (labels, value) in (self.series)() {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// Adds everything that is read from the caches: sizes and depths always, facts about Ray objects with `ray` (RC-260).
pub fn register(context: &Arc<Context>, ray: bool) {
    let metrics = &context.metrics;
    let sizes = Arc::clone(context);
    metrics.add(Gauges::new("kuberay_cache_objects", "Objects in a cache, by kind", move || cache_sizes(&sizes)));
    let queues = context.queues.clone();
    metrics.add(Gauges::new("workqueue_depth", "Objects whose time has come and that nobody looks at yet", move || {
        let depth = |name: &str, queue: &Queue| (vec![("name", name.to_owned()), ("controller", name.to_owned())], count(queue.depth()));
        vec![depth("raycluster", &queues.clusters), depth("rayjob", &queues.jobs), depth("raycronjob", &queues.cron_jobs)]
    }));
    if !ray {
        return;
    }
    metrics.enable_kuberay();
    let (info, provisioned) = (context.clusters.clone(), context.clusters.clone());
    metrics.add(Gauges::new("kuberay_cluster_info", "RayClusters and what made them", move || series(&info, cluster_info)));
    metrics.add(Gauges::new("kuberay_cluster_condition_provisioned", "Whether RayClusters are provisioned", move || {
        series(&provisioned, cluster_provisioned)
    }));
    let (info, status) = (context.jobs.clone(), context.jobs.clone());
    metrics.add(Gauges::new("kuberay_job_info", "RayJobs", move || series(&info, identity::<RayJob>)));
    metrics.add(Gauges::new("kuberay_job_deployment_status", "RayJobs and how far they are", move || series(&status, job_status)));
}

fn cache_sizes(context: &Context) -> Vec<(Labels, i64)> {
    fn size<T: Kept>(cache: &Cache<T>) -> (Labels, i64) {
        (vec![("kind", T::kind(&()).into_owned())], count(cache.len()))
    }
    let owned = &context.owned;
    let mut sizes = vec![
        size(&context.pods),
        size(context.clusters.cache()),
        size(context.jobs.cache()),
        size(context.cron_jobs.cache()),
        size(&context.batch_jobs),
        size(&context.services),
        size(&owned.service_accounts),
        size(&owned.roles),
        size(&owned.role_bindings),
        size(&owned.secrets),
        size(&owned.claims),
        size(&owned.ingresses),
    ];
    match context.settings.scheduler {
        Some(Scheduler::Volcano) => sizes.push(size(&context.pod_groups.volcano)),
        Some(Scheduler::SchedulerPlugins) => sizes.push(size(&context.pod_groups.plugins)),
        Some(Scheduler::YuniKorn | Scheduler::Kai) | None => {}
    }
    sizes
}

/// One series with value 1 for each object that can be decoded.
fn series<T: Root>(roots: &Roots<T>, labels: impl Fn(&T) -> Labels) -> Vec<(Labels, i64)> {
    // One at a time: a fleet decoded at once would take many times the memory of the cache.
    roots.cache().all().iter().filter_map(|object| object.decode().ok()).map(|object| (labels(&object), 1)).collect()
}

fn identity<T: kube::Resource>(object: &T) -> Labels {
    let meta = object.meta();
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    vec![("name", text(&meta.name)), ("namespace", text(&meta.namespace)), ("uid", text(&meta.uid))]
}

fn cluster_info(cluster: &RayCluster) -> Labels {
    let labels = cluster.metadata.labels.as_ref();
    let owner = labels.and_then(|labels| labels.get(label::ORIGINATED_FROM_CRD)).cloned().unwrap_or_else(|| "None".to_owned());
    let mut all = identity(cluster);
    all.push(("owner_kind", owner));
    all
}

fn cluster_provisioned(cluster: &RayCluster) -> Labels {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let provisioned = conditions.filter(|condition| condition.type_ == "RayClusterProvisioned").any(|condition| condition.status == "True");
    let mut all = identity(cluster);
    all.push(("condition", provisioned.to_string()));
    all
}

fn job_status(job: &RayJob) -> Labels {
    let status = job.status.as_ref().map(|status| status.job_deployment_status).unwrap_or_default();
    let mut all = identity(job);
    all.push(("deployment_status", status.as_str().to_owned()));
    all
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
