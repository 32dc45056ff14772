//! Entry point.

use std::{env, fs, process::ExitCode, time::Duration};

use operator::{
    cli::Flags,
    config::Options,
    runtime::{self, logging},
    settings::VERSION,
};
use telemetry::Traces;
use tokio::signal::unix::{SignalKind, signal};

/// How long the last traces may take at the end.
const LAST_TRACES: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let flags = match Flags::read(env::args()) {
        Ok(flags) => flags,
        Err(shown) => {
            let _ = shown.print();
            return if shown.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match start(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            tracing::error!("{sentence}");
            // Whoever reads no logs sees it, too, and so does everybody if it was said before there was a log.
            eprintln!("kuberay-operator: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn start(flags: &Flags) -> Result<(), String> {
    let variable = |name: &str| env::var(name).ok();
    let file = Some(flags.config.as_str()).filter(|path| !path.is_empty());
    let file = file.map(|path| fs::read_to_string(path).map_err(|error| format!("cannot read the configuration file {path}: {error}")));
    let options = Options::resolve(flags, file.transpose()?.as_deref(), variable).map_err(|error| error.to_string())?;
    let mut traces = Traces::from_environment("kuberay-operator", VERSION, variable);
    logging::start(&options.log, variable("RUST_LOG").as_deref(), traces.layer()).map_err(|error| format!("cannot log: {error}"))?;
    traces.report();
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "TLS was set up twice".to_owned())?;

    // One thread: all of the work is short and waits for others most of the time, and to hand it from thread to thread costs more CPU
    // and memory than a second thread would bring.
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let result = tokio.block_on(async {
        let on = |kind| signal(kind).map_err(|error| format!("cannot be told to stop: {error}"));
        let (mut terminate, mut interrupt) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        runtime::run(options, variable, stop).await
    });
    // What is still under way is given up: the process ends anyway, and whoever lost the lease must not go on.
    tokio.shutdown_background();
    traces.finish(LAST_TRACES);
    result
}
