//! The command line.

use clap::{Parser, Subcommand};

use crate::check::CheckArgs;
use crate::serve::ServeArgs;

/// Admission control for RayClusters, RayJobs, RayServices and RayCronJobs: every problem at once, with the remedy.
#[derive(Debug, Parser)]
#[command(name = "kuberay-webhook", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the admission paths to an API server until SIGTERM.
    Serve(Box<ServeArgs>),
    /// Check manifests without a cluster: what an API server with this webhook would say about them.
    Check(CheckArgs),
}
