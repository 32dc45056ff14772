//! Program `kuberay-webhook`.

use std::process::ExitCode;

use clap::Parser;
use webhook::check;
use webhook::cli::{Cli, Command};
use webhook::serve::{self, ServeArgs, logging};

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => report(serve(*args)),
        Command::Check(args) => check::run(&args),
    }
}

fn serve(args: ServeArgs) -> anyhow::Result<()> {
    logging::init(args.log_format, &args.log_level)?;
    // One thread is enough for tens of thousands of reviews a second and takes the least CPU and memory for each.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(8).build()?;
    runtime.block_on(serve::run(args))
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
