//! The life of the process: find the cluster, fill the caches, become the leader, reconcile, stop.

use std::{future::Future, sync::Arc, time::Duration};

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    networking::v1::Ingress,
    rbac::v1::{Role, RoleBinding},
};
use shared::{
    api::{RayCluster, RayCronJob, RayJob},
    features::Feature,
};
use tokio::sync::watch;

use super::{
    Context, DashboardAccess, Parts,
    cache::Scope,
    client,
    clock::Clock,
    controller::run_controller,
    crds,
    health::{Readiness, Servers},
    lease::{self, Candidate, Lost},
    metrics::{Metrics, scrape},
    start::{self, Facts},
    watch::{Listing, Watches},
};
use crate::{
    build::scheduling::{
        Scheduler,
        pod_group::{Plugins, PodGroup, Volcano},
    },
    config::Options,
    controllers::{raycluster::RayClusterController, raycronjob::RayCronJobController, rayjob::RayJobController},
    settings::VERSION,
};

/// Pause between two looks for definitions that are not there yet.
const DEFINITIONS_PAUSE: Duration = Duration::from_secs(2);
/// How long work in progress may take after the order to stop.
const GRACE: Duration = Duration::from_millis(900);

/// Runs the operator until `stop` is done, or until it cannot go on. `variable` gives the environment.
///
/// # Errors
/// A sentence for the user, if the process ends for another reason than `stop`.
pub async fn run(options: Options, variable: impl Fn(&str) -> Option<String>, stop: impl Future<Output = ()>) -> Result<(), String> {
    let metrics = Metrics::default();
    let readiness = Readiness::default();
    let _servers = Servers::start(&options.probe_address, &options.metrics_address, readiness.clone(), metrics.clone()).await?;
    let (sender, receiver) = watch::channel(false);
    let stop_told = Stop(receiver);
    let telling = async {
        stop.await;
        tracing::info!("stopping");
        readiness.wait_for("the operator stops");
        let _ = sender.send(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = operate(&options, variable("KUBECONFIG"), metrics, &readiness, &stop_told) => result,
        () = telling => Ok(()),
    }
}

/// Tells when to stop.
#[derive(Clone)]
struct Stop(watch::Receiver<bool>);

impl Stop {
    async fn wait(&self) {
        // The sender lives as long as anybody can wait.
        let _ = self.0.clone().wait_for(|stop| *stop).await;
    }

    /// The outcome of `work`, or nothing if the order to stop comes first.
    async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            outcome = work => Some(outcome),
            () = self.wait() => None,
        }
    }
}

async fn operate(
    options: &Options,
    kubeconfig: Option<String>,
    metrics: Metrics,
    readiness: &Readiness,
    stop: &Stop,
) -> Result<(), String> {
    readiness.wait_for("looking for the cluster");
    let Some(prepared) = stop.or(prepare(options, kubeconfig, metrics)).await else { return Ok(()) };
    let Prepared { context, facts, scopes, candidate } = prepared?;
    let mut leadership = Leadership { candidate };
    let mut watches = Watches::new(Arc::clone(&context), scopes, listing(facts));

    // A standby fills its caches, too. Only where the definitions are missing and this operator is to install them, it must lead first.
    let Some(missing) = stop.or(missing_kinds(&context)).await else { return Ok(()) };
    let installs = options.manage_crds && !missing?.is_empty();
    if !installs {
        let Some(found) = stop.or(begin_watching(&context, &mut watches, readiness)).await else { return Ok(()) };
        found?;
    }
    context.metrics.leader(lease::NAME, false);
    if stop.or(leadership.acquire()).await.is_none() {
        return Ok(());
    }
    context.metrics.leader(lease::NAME, true);
    let work = async {
        let begin = async {
            if options.manage_crds {
                crds::keep_current(&context.client).await;
            }
            if installs {
                begin_watching(&context, &mut watches, readiness).await?;
            }
            watches.complete().await;
            Ok::<(), String>(())
        };
        match stop.or(begin).await {
            Some(Ok(())) => {
                reconcile(&context, options.concurrency, stop).await;
                Ok(())
            }
            Some(error) => error,
            None => Ok(()),
        }
    };
    let result = tokio::select! {
        lost = leadership.hold() => Err(format!("this process no longer leads: {lost}")),
        result = work => result,
    };
    context.metrics.leader(lease::NAME, false);
    // Whoever has lost the lease has nothing to give back.
    if result.is_ok() {
        leadership.release().await;
    }
    result
}

/// What there is before anything is watched.
struct Prepared {
    context: Arc<Context>,
    facts: Facts,
    scopes: Vec<Scope>,
    candidate: Option<Candidate>,
}

async fn prepare(options: &Options, kubeconfig: Option<String>, metrics: Metrics) -> Result<Prepared, String> {
    let config = client::configuration(&options.kubeconfig, kubeconfig).await?;
    let unusable = |error: kube::Error| format!("cannot make a client for the API server: {error}");
    let limit = Some((options.qps, options.burst)).filter(|(qps, _)| *qps > 0.0);
    let client = client::client(config.clone(), metrics.clone(), limit).map_err(unusable)?;
    let facts = start::facts(&client).await?;
    start::check_gates(options.settings.features, facts.version)?;
    if let Some(scheduler) = options.settings.scheduler {
        start::check_scheduler(&client, scheduler).await?;
    }
    tracing::info!(version = VERSION, kubernetes = %facts.version, openshift = facts.platform.openshift, gates = %options.settings.features, "starting");

    let scopes = match options.namespaces.as_slice() {
        [] => vec![Scope::Cluster],
        names => names.iter().map(|name| Scope::Namespace(name.as_str().into())).collect(),
    };
    let mut settings = options.settings.clone();
    settings.platform = facts.platform;
    let clock = Clock::system();
    let dashboard = if options.use_kubernetes_proxy { DashboardAccess::ApiServerProxy } else { DashboardAccess::Direct };
    let parts = Parts { client, settings, dashboard, scopes: scopes.clone(), metrics: metrics.clone(), clock: clock.clone() };
    let context = Arc::new(Context::new(parts));
    scrape::register(&context, options.ray_metrics);

    let candidate = match options.leader_election {
        // A client of its own: the lease must not wait behind other requests.
        true => {
            let client = client::client(config, metrics, None).map_err(unusable)?;
            let namespace = Some(options.leader_election_namespace.as_str()).filter(|namespace| !namespace.is_empty());
            let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
            Some(Candidate::new(client, &namespace, lease::identity(), clock))
        }
        false => None,
    };
    Ok(Prepared { context, facts, scopes, candidate })
}

/// The lease, or nothing where none is needed.
struct Leadership {
    candidate: Option<Candidate>,
}

impl Leadership {
    async fn acquire(&mut self) {
        if let Some(candidate) = &mut self.candidate {
            candidate.acquire().await;
        }
    }

    async fn hold(&mut self) -> Lost {
        match &mut self.candidate {
            Some(candidate) => candidate.hold().await,
            None => std::future::pending().await,
        }
    }

    async fn release(self) {
        if let Some(candidate) = self.candidate {
            candidate.release().await;
        }
    }
}

async fn missing_kinds(context: &Context) -> Result<Vec<&'static str>, String> {
    start::missing_kinds(&context.client, &start::wanted_kinds(context.settings.features)).await
}

/// Waits until the definitions are there, then watches everything.
async fn begin_watching(context: &Arc<Context>, watches: &mut Watches, readiness: &Readiness) -> Result<(), String> {
    loop {
        let missing = missing_kinds(context).await?;
        if missing.is_empty() {
            break;
        }
        let reason = format!(
            "the CustomResourceDefinitions of {} are missing: apply the ones in the chart's crds/, or start the operator with --manage-crds",
            missing.join(", ")
        );
        if readiness.get() != Err(reason.clone()) {
            tracing::error!("{reason}");
            readiness.wait_for(reason);
        }
        tokio::time::sleep(DEFINITIONS_PAUSE).await;
    }
    watches.start::<RayCluster>();
    watches.start::<RayJob>();
    if context.settings.features.enabled(Feature::RayCronJob) {
        watches.start::<RayCronJob>();
    }
    watches.start::<Pod>();
    watches.start::<Service>();
    watches.start::<Job>();
    watches.start::<ServiceAccount>();
    watches.start::<Role>();
    watches.start::<RoleBinding>();
    watches.start::<Secret>();
    watches.start::<PersistentVolumeClaim>();
    watches.start::<Ingress>();
    match context.settings.scheduler {
        Some(Scheduler::Volcano) => watches.start::<PodGroup<Volcano>>(),
        Some(Scheduler::SchedulerPlugins) => watches.start::<PodGroup<Plugins>>(),
        Some(Scheduler::YuniKorn | Scheduler::Kai) | None => {}
    }
    readiness.ask(watches.readiness());
    Ok(())
}

fn listing(facts: Facts) -> Listing {
    if facts.version.streams_lists() { Listing::Streamed } else { Listing::Paged }
}

/// Runs every controller until the order to stop, and a little longer.
async fn reconcile(context: &Arc<Context>, concurrency: u32, stop: &Stop) {
    tracing::info!(
        rayclusters = context.clusters.cache().len(),
        rayjobs = context.jobs.cache().len(),
        pods = context.pods.len(),
        "everything is listed, and this process leads: reconciling"
    );
    let clusters = Arc::new(RayClusterController::new(Arc::clone(context)));
    let jobs = Arc::new(RayJobController::new(Arc::clone(context)));
    let inquirer = jobs.inquirer().clone();
    let cron = Arc::new(RayCronJobController::new(Arc::clone(context)));
    let (queues, metrics) = (&context.queues, &context.metrics);
    let end = || (stop.wait(), GRACE);
    let controllers = async {
        // Without its gate RayCronJobs are not watched, and their queue stays empty.
        tokio::join!(
            run_controller(clusters, context.clusters.clone(), queues.clusters.clone(), metrics.clone(), concurrency, end()),
            run_controller(jobs, context.jobs.clone(), queues.jobs.clone(), metrics.clone(), concurrency, end()),
            run_controller(cron, context.cron_jobs.clone(), queues.cron_jobs.clone(), metrics.clone(), concurrency, end()),
        )
    };
    tokio::select! {
        _ = controllers => {}
        () = inquirer.run() => {}
    }
}
