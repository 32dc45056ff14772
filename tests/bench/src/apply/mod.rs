//! RayJobs applied by kubectl: without a webhook, with ours, and with one that only says yes, which is what the API server takes for
//! asking at all.

mod yes;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use testcluster::api::ApiServer;
use testcluster::progress::Progress;

use crate::measure::{release, seconds};
use crate::server;
use crate::webhook::Webhook;
use yes::Yes;

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// RayJobs.
    #[arg(long, default_value_t = 1000)]
    pub(crate) jobs: usize,
    /// Times that each way is measured, in turn.
    #[arg(long, default_value_t = 2)]
    pub(crate) rounds: usize,
    /// Our webhook; the release build when absent.
    #[arg(long)]
    pub(crate) webhook: Option<PathBuf>,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// When a part does not start, or a RayJob is refused.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let program = release(options.webhook.as_deref(), "kuberay-webhook");
    let folder = tempfile::tempdir()?;
    let server = server::bare().await?;
    let webhook = Webhook::start(&program, folder.path()).await?;
    let ours = Address { port: webhook.port, ca: &webhook.ca };
    let floor_folder = tempfile::tempdir()?;
    let yes = Yes::start(floor_folder.path()).await?;
    let floor = Address { port: yes.port, ca: &yes.ca };
    let jobs = folder.path().join("jobs.yaml");
    std::fs::write(&jobs, manifest(options.jobs)?)?;
    println!("kubectl apply of {} RayJobs", options.jobs);
    let (mut without, mut with, mut with_floor) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..options.rounds {
        without.push(apply(&server, &format!("without-{round}"), &jobs).await?);
        register(&server, &ours).await?;
        probe(&server, "the API server's use of our webhook", |admitted| !admitted).await?;
        with.push(apply(&server, &format!("with-{round}"), &jobs).await?);
        unregister(&server).await?;
        probe(&server, "the end of our webhook", |admitted| admitted).await?;
        register(&server, &floor).await?;
        probe(&server, "the API server's use of the floor", |_| yes.was_asked()).await?;
        with_floor.push(apply(&server, &format!("floor-{round}"), &jobs).await?);
        unregister(&server).await?;
    }
    let list = |times: &[Duration]| times.iter().copied().map(seconds).collect::<Vec<_>>().join(", ");
    println!("  without a webhook {}; with one that only says yes {}; with ours {}", list(&without), list(&with_floor), list(&with));
    webhook.stop().await?;
    server.stop().await
}

/// Where a webhook serves.
struct Address<'a> {
    port: u16,
    ca: &'a str,
}

async fn apply(server: &ApiServer, namespace: &str, jobs: &Path) -> Result<Duration> {
    server::namespace(server, namespace).await?;
    let started = Instant::now();
    let mut kubectl = server.kubectl();
    kubectl.args(["apply", "--namespace", namespace, "--output=name", "--filename"]).arg(jobs);
    let output = Progress::stderr().step("kubectl apply", async { Ok(kubectl.output().await?) }).await?;
    ensure!(output.status.success(), "kubectl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(started.elapsed())
}

/// The chart's own webhook configurations with the webhook's address in place of its Service's.
async fn configurations(server: &ApiServer, webhook: Option<&Address<'_>>) -> Result<String> {
    let mut helm = server.helm();
    helm.args(["template", "bench"]).arg(testcluster::work_tree().join("charts/kuberay-operator"));
    let output =
        helm.args(["--show-only", "templates/webhook/configurations.yaml", "--set", "webhook.certificates.mode=secret"]).output().await?;
    ensure!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
    let mut text = String::new();
    for document in shared::yaml::documents(&String::from_utf8(output.stdout)?) {
        let mut object = document?.value;
        for entry in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            let path = entry.pointer("/clientConfig/service/path").and_then(Value::as_str).context("a webhook without a path")?;
            if let Some(webhook) = webhook {
                let bundle = base64::engine::general_purpose::STANDARD.encode(webhook.ca);
                let client = json!({"url": format!("https://127.0.0.1:{}{path}", webhook.port), "caBundle": bundle});
                *entry.get_mut("clientConfig").context("a webhook without an address")? = client;
            }
        }
        if !object.is_null() {
            text.push_str(&format!("---\n{object}\n"));
        }
    }
    Ok(text)
}

async fn register(server: &ApiServer, webhook: &Address<'_>) -> Result<()> {
    with_input(server, "create", &configurations(server, Some(webhook)).await?).await
}

/// Tries to create a RayJob without a cluster, which only our webhook refuses, until the outcome is as wanted.
async fn probe(server: &ApiServer, what: &str, wanted: impl Fn(bool) -> bool) -> Result<()> {
    let nothing = json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "nothing"}, "spec": {}});
    let nothing: shared::api::RayJob = serde_json::from_value(nothing)?;
    let api: Api<shared::api::RayJob> = Api::namespaced(server.client(), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let outcome = || async { Ok(wanted(api.create(&dry, &nothing).await.is_ok()).then_some(())) };
    testcluster::wait::until(what, Duration::from_secs(20), outcome).await
}

async fn unregister(server: &ApiServer) -> Result<()> {
    with_input(server, "delete", &configurations(server, None).await?).await
}

async fn with_input(server: &ApiServer, verb: &str, text: &str) -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), text)?;
    let output = server.kubectl().args([verb, "--filename"]).arg(file.path()).output().await?;
    ensure!(output.status.success(), "kubectl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn manifest(jobs: usize) -> Result<String> {
    let text = std::fs::read_to_string(testcluster::work_tree().join("examples/rayjob-sidecar-restart.yaml"))?;
    let mut job = shared::yaml::documents(&text).into_iter().next().context("the example is empty")??.value;
    let mut all = String::new();
    for number in 0..jobs {
        *job.pointer_mut("/metadata/name").context("the example has no name")? = json!(format!("job{number}"));
        all.push_str(&format!("---\n{job}\n"));
    }
    Ok(all)
}
