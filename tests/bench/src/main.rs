//! `make bench`: what the programs cost, beside the floor and, where a path is given, beside another program.

mod fleet;
mod measure;

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
    /// All of them, at their usual sizes.
    All {
        /// Operator to put beside ours.
        #[arg(long, env = "PEER_OPERATOR")]
        peer_operator: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = match Arguments::parse().command {
        Command::Fleet(options) => fleet::run(&options).await,
        Command::All { peer_operator } => fleet::run(&fleet::Options { peer_operator, ..fleet::Options::default() }).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benchmarks: {error:#}");
            ExitCode::FAILURE
        }
    }
}
