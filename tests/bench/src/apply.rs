//! RayJobs applied by kubectl, without and with the webhook in the way.

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
    let jobs = folder.path().join("jobs.yaml");
    std::fs::write(&jobs, manifest(options.jobs)?)?;
    println!("kubectl apply of {} RayJobs", options.jobs);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        without.push(apply(&server, &format!("without-{round}"), &jobs).await?);
        register(&server, &webhook).await?;
        with.push(apply(&server, &format!("with-{round}"), &jobs).await?);
        unregister(&server).await?;
    }
    let list = |times: &[Duration]| times.iter().copied().map(seconds).collect::<Vec<_>>().join(", ");
    println!("  without the webhook {}; with it {}", list(&without), list(&with));
    webhook.stop().await?;
    server.stop().await
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
async fn configurations(server: &ApiServer, webhook: Option<&Webhook>) -> Result<String> {
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
                let bundle = base64::engine::general_purpose::STANDARD.encode(&webhook.ca);
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

async fn register(server: &ApiServer, webhook: &Webhook) -> Result<()> {
    with_input(server, "create", &configurations(server, Some(webhook)).await?).await?;
    // Until the API server asks the webhook: a job without a cluster is refused by nobody else.
    testcluster::wait::until("the API server's use of the webhook", Duration::from_secs(20), || async {
        let nothing = json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "nothing"}, "spec": {}});
        let api: Api<shared::api::RayJob> = Api::namespaced(server.client(), "default");
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        Ok(api.create(&dry, &serde_json::from_value(nothing)?).await.is_err().then_some(()))
    })
    .await
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
