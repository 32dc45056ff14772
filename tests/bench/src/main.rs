//! `make bench`: what the programs cost, beside the floor and, where a path is given, beside another program.

mod fleet;
mod measure;
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
    /// Reviews over TLS.
    Webhook(webhook::Options),
    /// All of them, at their usual sizes.
    All {
        /// Operator to put beside ours.
        #[arg(long, env = "PEER_OPERATOR")]
        peer_operator: Option<PathBuf>,
        /// Webhook to put beside ours, running already: HOST:PORT/PATH.
        #[arg(long, env = "PEER_WEBHOOK")]
        peer_webhook: Option<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = match Arguments::parse().command {
        Command::Fleet(options) => fleet::run(&options).await,
        Command::Webhook(options) => webhook::run(&options).await,
        Command::All { peer_operator, peer_webhook } => all(peer_operator, peer_webhook).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benchmarks: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn all(peer_operator: Option<PathBuf>, peer_webhook: Option<String>) -> anyhow::Result<()> {
    webhook::run(&webhook::Options { peer: peer_webhook, ..webhook::Options::default() }).await?;
    fleet::run(&fleet::Options { peer_operator, ..fleet::Options::default() }).await
}
