//! What each subcommand does.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use testcluster::{
    api::{self, ApiServer, FakeNodes},
    cache::Cache,
    fetch,
    image::{self, Program},
    node::{self, Node},
    progress::Progress,
};

use crate::Command;

/// Images that can be made.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Which {
    /// kuberay-operator, from this work tree
    Operator,
    /// kuberay-webhook, from this work tree
    Webhook,
    /// Ray from PyPI on a small Debian
    Ray,
    /// Redis of Debian
    Redis,
    /// the program that holds a Pod's namespaces
    Pause,
}

/// Clients that can be had without a cluster.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Tool {
    /// kubectl
    Kubectl,
    /// helm
    Helm,
}

/// Runs a subcommand.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Api { apply, fake_nodes } => return run_api(apply, fake_nodes).await,
        Command::Up { cpus, image, without_ray } => {
            return up(node::Options { cpus, images: image, ray: !without_ray, ..node::Options::default() }).await;
        }
        Command::Down => node::down(&Progress::stderr()).await?,
        Command::Status => status(&node::attach().await?).await?,
        Command::Env => print_environment(&node::attach().await?),
        Command::Kubectl { arguments } => return pass_through(node::attach().await?.kubectl().args(arguments)).await,
        Command::Helm { arguments } => return pass_through(node::attach().await?.helm().args(arguments)).await,
        Command::LoadImage { archive } => node::attach().await?.load_image(&archive).await?,
        Command::StopContainer { id } => node::attach().await?.stop_container(&id).await?,
        Command::Image { which } => println!("{}", make_image(which).await?.display()),
        Command::Tool { which } => {
            let tools = fetch::kubectl(&Cache::from_env()?, &Progress::stderr()).await?;
            let path = match which {
                Tool::Kubectl => tools.kubectl,
                Tool::Helm => tools.helm,
            };
            println!("{}", path.display());
        }
        Command::Leftovers => {
            let mut lines = api::leftovers();
            lines.extend(node::leftovers()?);
            lines.iter().for_each(|line| println!("{line}"));
            return Ok(if lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_api(manifests: Vec<PathBuf>, fake_nodes: Option<u32>) -> Result<ExitCode> {
    let options = api::Options {
        manifests,
        scheduler: fake_nodes.is_some(),
        fake_nodes: fake_nodes.map(|count| FakeNodes { count, ..FakeNodes::default() }),
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

async fn up(options: node::Options) -> Result<ExitCode> {
    let progress = options.progress.clone();
    let node = tokio::select! {
        node = node::up(options) => node?,
        interrupted = testcluster::interrupted() => {
            interrupted?;
            progress.say("interrupted");
            node::down(&progress).await?;
            return Ok(ExitCode::from(130));
        }
    };
    eprintln!("the cluster is up; `testcluster down` ends it");
    print_environment(&node);
    Ok(ExitCode::SUCCESS)
}

fn print_environment(node: &Node) {
    let tools = node.tools().kubectl.parent().map(|dir| dir.display().to_string()).unwrap_or_default();
    println!("export KUBECONFIG={}", node.kubeconfig_path().display());
    println!("export PATH={tools}:\"$PATH\"");
}

async fn status(node: &Node) -> Result<()> {
    for (name, process) in node.processes() {
        println!("{name}: process {}", process.pid);
    }
    print!("{}", testcluster::process::run(node.kubectl().args(["get", "nodes", "--output=wide"])).await?);
    Ok(())
}

async fn make_image(which: Which) -> Result<PathBuf> {
    let (cache, progress) = (Cache::from_env()?, Progress::stderr());
    match which {
        Which::Operator => image::program(Program::Operator, &progress).await,
        Which::Webhook => image::program(Program::Webhook, &progress).await,
        Which::Ray => image::ray(&cache, &progress).await,
        Which::Redis => image::redis(&cache, &progress).await,
        Which::Pause => image::pause(&cache, &progress).await,
    }
}

/// Runs a program with our own input and output, and ends as it ended.
async fn pass_through(command: &mut tokio::process::Command) -> Result<ExitCode> {
    let status = command.status().await?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
