//! Where log lines go, and what becomes of a panic.

use std::panic;

use anyhow::Context;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::args::LogFormat;

/// Sends log lines to stderr. To be called once, by the program.
///
/// Panics become one line with the place and nothing else: their text may quote what was being reviewed.
pub fn init(format: LogFormat, level: &str) -> anyhow::Result<()> {
    let filter: Targets = level.parse().with_context(|| format!("--log-level {level:?}"))?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Console => layer.boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().context("logging was set up already")?;
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a bug: panic");
    }));
    Ok(())
}
