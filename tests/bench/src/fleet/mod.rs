//! A fleet of RayClusters (one head, two workers each) on fake nodes: how long until all are ready, and what the operator uses for it.
//!
//! The floor is the same Pods and Services created directly by a client, in the same run on the same API server.

mod floor;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use shared::api::RayCluster;
use testcluster::api::FakeNodes;
use testcluster::progress::Progress;

use floor::Pattern;

use crate::measure::{mib, pause, percentile, release, seconds};
use crate::objects::template;
use crate::operator::Operator;
use crate::server::{self, NAMESPACE};
use crate::watch;

/// Requests that the load generator has under way at a time.
const PARALLEL: usize = 16;
/// Most time for one phase.
const LIMIT: Duration = Duration::from_secs(1800);

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// RayClusters.
    #[arg(long, default_value_t = 1000)]
    pub(crate) clusters: usize,
    /// Workers of each.
    #[arg(long, default_value_t = 2)]
    pub(crate) workers: usize,
    /// Seconds to watch the idle operator.
    #[arg(long, default_value_t = 60)]
    pub(crate) idle_seconds: u64,
    /// Leaves the floor out.
    #[arg(long)]
    pub(crate) no_floor: bool,
    /// Our operator; the release build when absent.
    #[arg(long)]
    pub(crate) operator: Option<PathBuf>,
    /// Operator to put beside ours.
    #[arg(long, env = "PEER_OPERATOR")]
    pub(crate) peer_operator: Option<PathBuf>,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// When a part does not start, or a phase takes longer than half an hour.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let ours = release(options.operator.as_deref(), "kuberay-operator");
    println!("fleet of {} RayClusters, 1 head + {} workers each", options.clusters, options.workers);
    let mut programs = vec![("ours", ours)];
    if let Some(peer) = &options.peer_operator {
        programs.push(("peer", peer.clone()));
    }
    let mut pattern = None;
    let mut measured = Vec::new();
    for (name, program) in programs {
        let (figures, seen) = measure_operator(options, &program).await.with_context(|| format!("measuring {}", program.display()))?;
        pattern.get_or_insert(seen);
        measured.push((name, figures));
    }
    let floor = match pattern.filter(|_| !options.no_floor) {
        Some(pattern) => Some(measure_floor(options, &pattern).await?),
        None => None,
    };
    for (name, figures) in measured {
        figures.print(name, floor, options);
    }
    Ok(())
}

/// Name of a cluster: found nowhere else in what belongs to it.
fn name(number: usize) -> String {
    format!("c{number}luster")
}

/// Enough nodes for the Pods of the fleet.
fn nodes(options: &Options) -> Result<FakeNodes> {
    Ok(FakeNodes { count: u32::try_from(options.clusters / 50 + 1)?, ..FakeNodes::default() })
}

async fn measure_floor(options: &Options, pattern: &Pattern) -> Result<Duration> {
    let server = server::start(nodes(options)?).await?;
    let elapsed = pattern.create_all(&server.client(), options).await;
    let control_plane = server::cpu(&server);
    server.stop().await?;
    let elapsed = elapsed?;
    println!("floor: the same Pods and Services created directly: all ready after {}", seconds(elapsed));
    println!("  CPU of the control plane until ready: {control_plane}");
    Ok(elapsed)
}

/// What one operator did.
struct Figures {
    all_ready: Duration,
    to_ready: Vec<Duration>,
    cpu: Duration,
    control_plane: String,
    idle_cpu: Duration,
    resident: u64,
    peak: u64,
    writes: Vec<(String, u64)>,
    relabelled: Duration,
    relabel_cpu: Duration,
    all_gone: Duration,
    delete_cpu: Duration,
}

async fn measure_operator(options: &Options, program: &std::path::Path) -> Result<(Figures, Pattern)> {
    let server = server::start(nodes(options)?).await?;
    let operator = Operator::start(&server, program, &[], &[]).await?;
    let client = server.client();
    let clusters: Api<RayCluster> = Api::namespaced(client.clone(), NAMESPACE);

    let before = operator.cpu()?;
    let started = Instant::now();
    let ready = watch::clusters(&client);
    let names: Vec<String> = (0..options.clusters).map(name).collect();
    let created: Vec<(String, Instant)> = stream::iter(names.iter().map(|name| {
        let clusters = clusters.clone();
        async move {
            let at = Instant::now();
            clusters.create(&PostParams::default(), &cluster(name, options.workers)?).await?;
            Ok::<_, anyhow::Error>((name.clone(), at))
        }
    }))
    .buffer_unordered(PARALLEL)
    .try_collect()
    .await?;
    let ready = Progress::stderr().step("until all are ready", ready.wait(options.clusters, LIMIT)).await?;
    let all_ready = started.elapsed();
    let to_ready = created.iter().filter_map(|(name, at)| ready.get(name).map(|end| end.duration_since(*at))).collect();
    let cpu = operator.cpu()?.saturating_sub(before);
    let control_plane = server::cpu(&server);
    let writes = operator.writes().await.unwrap_or_default();

    let before = operator.cpu()?;
    Progress::stderr().step("idle", pause(options.idle_seconds)).await?;
    let idle_cpu = operator.cpu()?.saturating_sub(before);
    let (resident, _) = operator.memory()?;
    let pattern = Pattern::of(&client, &name(0)).await?;

    let before = operator.cpu()?;
    let started = Instant::now();
    relabel(&clusters, &names).await?;
    operator.wait_quiet(LIMIT).await?;
    let (relabelled, relabel_cpu) = (started.elapsed(), operator.cpu()?.saturating_sub(before));

    let before = operator.cpu()?;
    let started = Instant::now();
    let (background, all) = (DeleteParams::background(), ListParams::default());
    server::again(|| clusters.delete_collection(&background, &all)).await.context("deleting all")?;
    Progress::stderr().step("until all are gone", watch::all_gone(&client, LIMIT)).await?;
    let (all_gone, delete_cpu) = (started.elapsed(), operator.cpu()?.saturating_sub(before));
    let (_, peak) = operator.memory()?;
    operator.stop().await?;
    server.stop().await?;
    let figures = Figures {
        all_ready,
        to_ready,
        cpu,
        control_plane,
        idle_cpu,
        resident,
        peak,
        writes,
        relabelled,
        relabel_cpu,
        all_gone,
        delete_cpu,
    };
    Ok((figures, pattern))
}

impl Figures {
    fn print(mut self, name: &str, floor: Option<Duration>, options: &Options) {
        let times_floor =
            floor.map(|floor| format!(" ({:.2} x floor)", self.all_ready.as_secs_f64() / floor.as_secs_f64())).unwrap_or_default();
        println!("{name}:");
        println!("  all ready after {}{times_floor}", seconds(self.all_ready));
        println!(
            "  creation to ready p50 {} p99 {}",
            seconds(percentile(&mut self.to_ready, 50)),
            seconds(percentile(&mut self.to_ready, 99))
        );
        println!("  CPU until ready {}, idle {} in {} s", seconds(self.cpu), seconds(self.idle_cpu), options.idle_seconds);
        println!("  CPU of the control plane until ready: {}", self.control_plane);
        println!("  resident {}, peak {}", mib(self.resident), mib(self.peak));
        #[allow(clippy::cast_precision_loss)] // for people
        let each = |count: u64| count as f64 / options.clusters.max(1) as f64;
        let total: u64 = self.writes.iter().map(|(_, count)| count).sum();
        if total > 0 {
            let parts: Vec<String> = self.writes.iter().map(|(what, count)| format!("{:.1} {what}", each(*count))).collect();
            println!("  {:.1} API writes a cluster: {}", each(total), parts.join(", "));
        }
        println!("  a label on every cluster: quiet after {}, CPU {}", seconds(self.relabelled), seconds(self.relabel_cpu));
        println!("  all deleted: gone after {}, CPU {}", seconds(self.all_gone), seconds(self.delete_cpu));
    }
}

async fn relabel(clusters: &Api<RayCluster>, names: &[String]) -> Result<()> {
    stream::iter(names)
        .map(|name| async move {
            let (params, patch) = (PatchParams::default(), Patch::Merge(json!({"metadata": {"labels": {"team": "blue"}}})));
            server::again(|| clusters.patch(name, &params, &patch)).await.map(drop)
        })
        .buffer_unordered(PARALLEL)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// A RayCluster such as people write, without anything special.
fn cluster(name: &str, workers: usize) -> Result<RayCluster> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "rayVersion": "2.56.0",
            "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
            "workerGroupSpecs": [{
                "groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": 10,
                "rayStartParams": {}, "template": template("ray-worker"),
            }],
        },
    }))?)
}
