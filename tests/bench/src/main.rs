//! `make bench`: what the programs cost, beside the floor and, where a path is given, beside another program.

mod apply;
mod fleet;
mod jobs;
mod measure;
mod objects;
mod offline;
mod operator;
mod server;
mod watch;
mod webhook;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "benchmarks")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// RayClusters on fake nodes at a real API server.
    Fleet(fleet::Options),
    /// RayJobs on fake nodes with dashboards that are played.
    Jobs(jobs::Options),
    /// Reviews over TLS.
    Webhook(webhook::Options),
    /// RayJobs applied by kubectl, without and with the webhook.
    Apply(apply::Options),
    /// Files checked without a cluster, beside kubeconform.
    Check(offline::Options),
    /// All of them, at their usual sizes.
    All {
        /// Operator to put beside ours.
        #[arg(long, env = "PEER_OPERATOR")]
        peer_operator: Option<PathBuf>,
        /// Operator with a webhook such as KubeRay's, to put beside ours.
        #[arg(long, env = "PEER_WEBHOOK")]
        peer_webhook: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // An interrupted run is dropped, and with it the programs that it has started.
    let result = tokio::select! {
        result = run(Arguments::parse().command) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benchmarks: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Fleet(options) => fleet::run(&options).await,
        Command::Jobs(options) => jobs::run(&options).await,
        Command::Webhook(options) => webhook::run(&options).await,
        Command::Apply(options) => apply::run(&options).await,
        Command::Check(options) => offline::run(&options).await,
        Command::All { peer_operator, peer_webhook } => all(peer_operator, peer_webhook).await,
    }
}

async fn all(peer_operator: Option<PathBuf>, peer_webhook: Option<PathBuf>) -> anyhow::Result<()> {
    offline::run(&usual()?).await?;
    webhook::run(&webhook::Options { peer: peer_webhook, ..usual()? }).await?;
    apply::run(&usual()?).await?;
    jobs::run(&usual()?).await?;
    fleet::run(&fleet::Options { peer_operator, ..usual()? }).await
}

/// Options of a benchmark at their usual values, which stand at their fields alone.
fn usual<T: clap::Args>() -> anyhow::Result<T> {
    let command = T::augment_args(clap::Command::new("usual"));
    Ok(T::from_arg_matches(&command.try_get_matches_from(["usual"])?)?)
}
