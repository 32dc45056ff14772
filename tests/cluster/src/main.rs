//! `testcluster`: the test cluster from the command line.

mod commands;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

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
    /// Start a cluster with one real node and leave it running.
    Up {
        /// CPUs that the node says it has (default: the machine's, and at least 4).
        #[arg(long, value_name = "COUNT")]
        cpus: Option<u32>,
        /// Image archive to load; may be given several times.
        #[arg(long, value_name = "TAR")]
        image: Vec<PathBuf>,
        /// Do not load the Ray image.
        #[arg(long)]
        without_ray: bool,
    },
    /// End the cluster that `up` started and remove everything of it.
    Down,
    /// Say whether the cluster runs, and with what.
    Status,
    /// Print lines for a shell: eval "$(testcluster env)".
    Env,
    /// Run kubectl against the cluster.
    #[command(trailing_var_arg = true)]
    Kubectl {
        /// Arguments of kubectl.
        #[arg(allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run helm against the cluster.
    #[command(trailing_var_arg = true)]
    Helm {
        /// Arguments of helm.
        #[arg(allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Load an image archive into the node.
    LoadImage {
        /// The archive, as `docker save` writes it.
        archive: PathBuf,
    },
    /// Stop a container through the container runtime, as `crictl stop` does.
    StopContainer {
        /// The container's id, with or without `containerd://`.
        id: String,
    },
    /// Make the archive of an image and print its path.
    Image {
        /// Which one.
        #[arg(value_enum)]
        which: commands::Which,
    },
    /// Print the path of kubectl or helm, fetched if it is missing; needs no cluster.
    Tool {
        /// Which one.
        #[arg(value_enum)]
        which: commands::Tool,
    },
    /// List what earlier runs left behind, or a running cluster has in use; exit with 1 if there is anything.
    Leftovers,
}

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(Arguments::parse().command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("testcluster: {error:#}");
            ExitCode::from(2)
        }
    }
}
