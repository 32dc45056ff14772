//! RayJobs on fake nodes with a dashboard that is played: how long until all run, what they cost while they run, and how long until all
//! have ended. Half of them submit by HTTP, half by a Kubernetes Job.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use shared::api::RayJob;
use testcluster::api::{ApiServer, FakeNodes};
use testcluster::dashboard::Dashboard;
use testcluster::progress::Progress;

use crate::measure::{mib, pause, release, seconds};
use crate::objects::template;
use crate::operator::Operator;
use crate::server::{self, NAMESPACE};
use crate::watch;

/// Requests that the load generator has under way at a time.
const PARALLEL: usize = 16;
/// Most time for one phase.
const LIMIT: Duration = Duration::from_secs(600);

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// RayJobs.
    #[arg(long, default_value_t = 500)]
    pub(crate) jobs: usize,
    /// Seconds to watch while all jobs run.
    #[arg(long, default_value_t = 60)]
    pub(crate) running_seconds: u64,
    /// Our operator; the release build when absent.
    #[arg(long)]
    pub(crate) operator: Option<PathBuf>,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// When a part does not start, or a job does not end as it should.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let program = release(options.operator.as_deref(), "kuberay-operator");
    println!("{} RayJobs, each with a cluster of its own", options.jobs);
    let nodes = FakeNodes {
        count: u32::try_from(options.jobs / 50 + 1)?,
        pod_cidr: "10.93.0.0/16".to_owned(),
        local_pods: true,
        ..FakeNodes::default()
    };
    let server = server::start(nodes).await?;
    let operator = Operator::start(&server, &program, &["--use-kubernetes-proxy=true"], &[]).await?;
    let result = measure(options, &server, &operator).await;
    operator.stop().await?;
    server.stop().await?;
    result
}

async fn measure(options: &Options, server: &ApiServer, operator: &Operator) -> Result<()> {
    let client = server.client();
    let dashboard = Dashboard::start(client.clone(), NAMESPACE);
    for number in (0..options.jobs).filter(|number| by_kubernetes_job(*number)) {
        // Its submitter is a Pod that only says it has run.
        dashboard.job(&id(number), "RUNNING");
    }

    let phase = Phase::begin(operator, &dashboard).await?;
    let running = watch::jobs(&client, "Running");
    create(&client, options.jobs).await?;
    Progress::stderr().step("until all run", running.wait(options.jobs, LIMIT)).await?;
    phase.end("until all run").await?;

    let phase = Phase::begin(operator, &dashboard).await?;
    Progress::stderr().step("while all run", pause(options.running_seconds)).await?;
    phase.end("while all run").await?;

    let phase = Phase::begin(operator, &dashboard).await?;
    let complete = watch::jobs(&client, "Complete");
    for number in 0..options.jobs {
        dashboard.job(&id(number), "SUCCEEDED");
    }
    Progress::stderr().step("until all are complete", complete.wait(options.jobs, LIMIT)).await?;
    phase.end("until all are complete").await?;
    Progress::stderr().step("until their clusters are gone", watch::clusters_gone(&client, LIMIT)).await?;

    let (resident, peak) = operator.memory()?;
    println!("  resident {}, peak {}", mib(resident), mib(peak));
    verify(&client, options.jobs, &dashboard).await
}

/// What is used from one moment to another.
struct Phase<'a> {
    operator: &'a Operator,
    dashboard: &'a Dashboard,
    started: Instant,
    cpu: Duration,
    requests: u64,
    writes: BTreeMap<String, u64>,
    calls: usize,
}

impl<'a> Phase<'a> {
    async fn begin(operator: &'a Operator, dashboard: &'a Dashboard) -> Result<Self> {
        let requests = operator.counted(REQUESTS).await?;
        let writes = operator.writes().await?.into_iter().collect();
        Ok(Self { operator, dashboard, started: Instant::now(), cpu: operator.cpu()?, requests, writes, calls: dashboard.calls("").len() })
    }

    async fn end(self, title: &str) -> Result<()> {
        println!(
            "  {title}: {}, CPU {:.2} s, {} requests to the API server, of these {} on to the dashboards",
            seconds(self.started.elapsed()),
            self.operator.cpu()?.saturating_sub(self.cpu).as_secs_f64(),
            self.operator.counted(REQUESTS).await? - self.requests,
            self.dashboard.calls("").len() - self.calls,
        );
        let more = |(what, count): (String, u64)| (what.clone(), count - self.writes.get(&what).copied().unwrap_or_default());
        let writes = self.operator.writes().await?.into_iter().map(more).filter(|(_, count)| *count > 0);
        let writes: Vec<String> = writes.map(|(what, count)| format!("{count} {what}")).collect();
        println!("    writes: {}", if writes.is_empty() { "none".to_owned() } else { writes.join(", ") });
        Ok(())
    }
}

const REQUESTS: &str = "rest_client_requests_total";

/// Every job has succeeded, and none was submitted twice.
async fn verify(client: &Client, jobs: usize, dashboard: &Dashboard) -> Result<()> {
    let api: Api<RayJob> = Api::namespaced(client.clone(), NAMESPACE);
    let list = api.list(&ListParams::default()).await?;
    let succeeded = list.iter().filter(|job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1))).count();
    ensure!(list.items.len() == jobs && succeeded == jobs, "{succeeded} of {jobs} RayJobs have succeeded");
    let submitted = (0..jobs).filter(|number| !by_kubernetes_job(*number)).count();
    ensure!(dashboard.submissions().len() == submitted, "{} submissions of {submitted} jobs", dashboard.submissions().len());
    Ok(())
}

async fn create(client: &Client, jobs: usize) -> Result<()> {
    let api: Api<RayJob> = Api::namespaced(client.clone(), NAMESPACE);
    stream::iter(0..jobs)
        .map(|number| {
            let api = api.clone();
            async move { api.create(&PostParams::default(), &job(number)?).await.map(drop).context("creating a RayJob") }
        })
        .buffer_unordered(PARALLEL)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

const fn by_kubernetes_job(number: usize) -> bool {
    number % 2 == 1
}

fn id(number: usize) -> String {
    format!("job-{number}")
}

fn job(number: usize) -> Result<RayJob> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": format!("j{number}"), "namespace": NAMESPACE},
        "spec": {
            "jobId": id(number), "entrypoint": "python work.py", "shutdownAfterJobFinishes": true,
            "submissionMode": if by_kubernetes_job(number) { "K8sJobMode" } else { "HTTPMode" },
            "rayClusterSpec": {"rayVersion": "2.56.0", "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")}},
        },
    }))?)
}
