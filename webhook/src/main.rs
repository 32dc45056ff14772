//! Program `kuberay-webhook`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use telemetry::Traces;
use webhook::check;
use webhook::cli::{Cli, Command};
use webhook::serve::{self, ServeArgs, logging};

/// How long the last traces may take at the end.
const LAST_TRACES: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => report(serve(*args)),
        Command::Check(args) => check::run(&args),
    }
}

fn serve(args: ServeArgs) -> anyhow::Result<()> {
    let mut traces = Traces::from_environment("kuberay-webhook", env!("CARGO_PKG_VERSION"), |name| std::env::var(name).ok());
    logging::init(args.log_format, &args.log_level, traces.layer())?;
    traces.report();
    // One thread is enough for tens of thousands of reviews a second and takes the least CPU and memory for each.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(8).build()?;
    let result = runtime.block_on(serve::run(args));
    traces.finish(LAST_TRACES);
    result
}

fn report(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kuberay-webhook: {error:#}");
            ExitCode::FAILURE
        }
    }
}
