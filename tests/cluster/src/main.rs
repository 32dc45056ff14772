//! `testcluster`: the test cluster from the command line.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use testcluster::{
    api::{self, ApiServer, FakeNodes},
    progress::Progress,
};

/// A Kubernetes cluster for tests and demos, made of programs that package registries serve.
#[derive(Parser)]
#[command(name = "testcluster")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an API server with a controller-manager until Ctrl-C.
    Api {
        /// YAML file or folder with CRDs and other objects to apply; may be given several times.
        #[arg(long, value_name = "PATH")]
        apply: Vec<PathBuf>,
        /// Run the scheduler and this many fake nodes too.
        #[arg(long, value_name = "COUNT")]
        fake_nodes: Option<u32>,
    },
    /// List what earlier runs left behind; exit with 1 if there is anything.
    Leftovers,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse().command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("testcluster: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Api { apply, fake_nodes } => run_api(apply, fake_nodes).await,
        Command::Leftovers => {
            let lines = api::leftovers();
            lines.iter().for_each(|line| println!("{line}"));
            Ok(if lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

async fn run_api(manifests: Vec<PathBuf>, fake_nodes: Option<u32>) -> anyhow::Result<ExitCode> {
    let options = api::Options {
        manifests,
        scheduler: fake_nodes.is_some(),
        fake_nodes: fake_nodes.map(|count| FakeNodes { count, ..FakeNodes::default() }),
        progress: Progress::stderr(),
        ..api::Options::default()
    };
    // Dropped half way, an instance is cleaned up by its guard.
    let server = tokio::select! {
        server = ApiServer::start(options) => server?,
        interrupted = testcluster::interrupted() => return interrupted.map(|()| ExitCode::FAILURE),
    };
    println!("export KUBECONFIG={}", server.kubeconfig_path().display());
    eprintln!("running; Ctrl-C ends it");
    testcluster::interrupted().await?;
    server.stop().await?;
    Ok(ExitCode::SUCCESS)
}
