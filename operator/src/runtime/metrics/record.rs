//! Metrics that are counted as things happen.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::Registry,
};

/// How a look at an object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing left to do.
    Success,
    /// Well, and to be looked at again after a time.
    RequeueAfter,
    /// It failed.
    Error,
    /// It panicked.
    Panic,
    /// The object cannot be decoded.
    Undecodable,
    /// The object no longer exists.
    Gone,
}

impl Outcome {
    /// As in the metric.
    pub fn label(self) -> &'static str {
        match self {
            Self::Success | Self::Gone => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error | Self::Panic | Self::Undecodable => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerResult {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    kind: String,
    verb: &'static str,
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    verb: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventFate {
    fate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cluster {
    name: String,
    namespace: String,
    uid: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobRun {
    name: String,
    namespace: String,
    uid: String,
    job_deployment_status: String,
    retry_count: i32,
}

#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

const RECONCILE_BUCKETS: Buckets = Buckets(&[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);
const REQUEST_BUCKETS: Buckets = Buckets(&[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]);

type Histograms<L> = Family<L, Histogram, Buckets>;
type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

/// Metrics that are counted as things happen. Reached through [`Metrics`](super::Metrics).
pub struct Records {
    reconciles: Family<ControllerResult, Counter>,
    errors: Family<Controller, Counter>,
    panics: Family<Controller, Counter>,
    durations: Histograms<Controller>,
    concurrency: Family<Controller, Gauge>,
    queue_waits: Histograms<Controller>,
    writes: Family<Write, Counter>,
    requests: Family<Request, Counter>,
    request_durations: Histograms<Call>,
    leader: Family<Name, Gauge>,
    events: Family<EventFate, Counter>,
    provisioned: Family<Cluster, Seconds>,
    runs: Family<JobRun, Seconds>,
    kuberay: std::sync::atomic::AtomicBool,
    /// Series of objects that may go away, so that they can be dropped with the object.
    known: std::sync::Mutex<Known>,
}

#[derive(Default)]
struct Known {
    clusters: std::collections::HashSet<Cluster>,
    runs: std::collections::HashSet<JobRun>,
}

impl Records {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let records = Self {
            reconciles: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            durations: Family::new_with_constructor(RECONCILE_BUCKETS),
            concurrency: Family::default(),
            queue_waits: Family::new_with_constructor(RECONCILE_BUCKETS),
            writes: Family::default(),
            requests: Family::default(),
            request_durations: Family::new_with_constructor(REQUEST_BUCKETS),
            leader: Family::default(),
            events: Family::default(),
            provisioned: Family::default(),
            runs: Family::default(),
            kuberay: std::sync::atomic::AtomicBool::new(false),
            known: std::sync::Mutex::default(),
        };
        let r = registry;
        r.register("controller_runtime_reconcile", "Looks at objects, by controller and result", records.reconciles.clone());
        r.register("controller_runtime_reconcile_errors", "Looks at objects that failed", records.errors.clone());
        r.register("controller_runtime_reconcile_panics", "Looks at objects that panicked", records.panics.clone());
        r.register("controller_runtime_reconcile_time_seconds", "Duration of a look at an object", records.durations.clone());
        r.register("controller_runtime_max_concurrent_reconciles", "Objects looked at side by side, at most", records.concurrency.clone());
        r.register("workqueue_queue_duration_seconds", "How long an object waits after its time has come", records.queue_waits.clone());
        r.register("kuberay_api_writes", "Writes to the API server, by kind, verb and result", records.writes.clone());
        r.register("rest_client_requests", "Requests to the API server", records.requests.clone());
        r.register("rest_client_request_duration_seconds", "Time until the API server begins to answer", records.request_durations.clone());
        r.register("leader_election_master_status", "1 while this process holds the lease", records.leader.clone());
        r.register("kuberay_events", "Events by what became of them", records.events.clone());
        records
    }

    /// Registers the metrics about Ray objects, which are there only if they were asked for (RC-260).
    pub(super) fn register_kuberay(&self, registry: &mut Registry) {
        self.kuberay.store(true, std::sync::atomic::Ordering::Relaxed);
        registry.register(
            "kuberay_cluster_provisioned_duration_seconds",
            "Time from the creation of a RayCluster until it was provisioned for the first time",
            self.provisioned.clone(),
        );
        registry.register(
            "kuberay_job_execution_duration_seconds",
            "Time from the beginning of a try of a RayJob until its end",
            self.runs.clone(),
        );
    }

    /// Counts a look at an object.
    pub fn reconciled(&self, controller: &'static str, outcome: Outcome, took: Duration) {
        let label = Controller { controller };
        self.reconciles.get_or_create(&ControllerResult { controller, result: outcome.label() }).inc();
        self.durations.get_or_create(&label).observe(took.as_secs_f64());
        if matches!(outcome, Outcome::Error | Outcome::Panic | Outcome::Undecodable) {
            self.errors.get_or_create(&label).inc();
        }
        if outcome == Outcome::Panic {
            self.panics.get_or_create(&label).inc();
        }
    }

    /// Notes how many objects a controller looks at side by side, and begins its counts at zero: the first failure has to show as a
    /// step, not as the beginning of a series.
    pub fn concurrency(&self, controller: &'static str, concurrency: u32) {
        let label = Controller { controller };
        self.concurrency.get_or_create(&label).set(concurrency.into());
        drop(self.errors.get_or_create(&label));
        drop(self.panics.get_or_create(&label));
        for outcome in [Outcome::Success, Outcome::RequeueAfter, Outcome::Error] {
            drop(self.reconciles.get_or_create(&ControllerResult { controller, result: outcome.label() }));
        }
    }

    /// Notes how long an object waited after its time had come.
    pub fn queue_wait(&self, controller: &'static str, waited: Duration) {
        self.queue_waits.get_or_create(&Controller { controller }).observe(waited.as_secs_f64());
    }

    /// Counts a write. `failure` is absent for success, and 0 for no answer.
    pub fn api_write(&self, kind: &str, verb: &'static str, failure: Option<u16>) {
        let result = failure.map_or_else(|| "ok".to_owned(), |code| if code == 0 { "none".to_owned() } else { code.to_string() });
        self.writes.get_or_create(&Write { kind: kind.to_owned(), verb, result }).inc();
    }

    /// Counts a request of any kind.
    pub fn request(&self, method: &str, host: &str, code: Option<u16>, took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.requests.get_or_create(&Request { code, method: method.to_owned(), host: host.to_owned() }).inc();
        self.request_durations.get_or_create(&Call { verb: method.to_owned(), host: host.to_owned() }).observe(took.as_secs_f64());
    }

    /// Notes whether this process holds the lease called `name`.
    pub fn leader(&self, name: &str, leads: bool) {
        self.leader.get_or_create(&Name { name: name.to_owned() }).set(leads.into());
    }

    /// Counts `count` events of one fate: `sent`, `merged`, `dropped`, `failed`.
    pub fn events(&self, fate: &'static str, count: u64) {
        self.events.get_or_create(&EventFate { fate }).inc_by(count);
    }

    /// Notes how long a RayCluster took until it was provisioned for the first time (RC-481).
    pub fn cluster_provisioned(&self, namespace: &str, name: &str, uid: &str, took: Duration) {
        if self.has_kuberay() {
            let cluster = Cluster { name: name.to_owned(), namespace: namespace.to_owned(), uid: uid.to_owned() };
            self.provisioned.get_or_create(&cluster).set(took.as_secs_f64());
            self.known().clusters.insert(cluster);
        }
    }

    /// Drops what was noted for a RayCluster that is gone (RC-262).
    pub fn cluster_gone(&self, namespace: &str, name: &str) {
        let provisioned = &self.provisioned;
        self.known().clusters.retain(|cluster| {
            let gone = cluster.namespace == namespace && cluster.name == name;
            if gone {
                provisioned.remove(cluster);
            }
            !gone
        });
    }

    /// Notes how long a try of a RayJob took; `status` is the deployment status that ended it, `retry` the number of tries before.
    pub fn job_ran(&self, namespace: &str, name: &str, uid: &str, status: &str, retry: i32, took: Duration) {
        if self.has_kuberay() {
            let run = JobRun {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                uid: uid.to_owned(),
                job_deployment_status: status.to_owned(),
                retry_count: retry,
            };
            self.runs.get_or_create(&run).set(took.as_secs_f64());
            self.known().runs.insert(run);
        }
    }

    /// Drops what was noted for a RayJob that is gone.
    pub fn job_gone(&self, namespace: &str, name: &str) {
        let runs = &self.runs;
        self.known().runs.retain(|run| {
            let gone = run.namespace == namespace && run.name == name;
            if gone {
                runs.remove(run);
            }
            !gone
        });
    }

    fn has_kuberay(&self) -> bool {
        self.kuberay.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
