//! Where log lines go, and what becomes of a panic.

use std::panic;

use anyhow::Context;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::args::LogFormat;

/// What gets to see lines and spans.
pub type Sink = Box<dyn Layer<Registry> + Send + Sync>;

/// Sends log lines to stderr, and shows `traces` everything. To be called once, by the program.
///
/// Panics become one line with the place and nothing else: their text may quote what was being reviewed.
pub fn init(format: LogFormat, level: &str, traces: Option<Sink>) -> anyhow::Result<()> {
    let filter: Targets = level.parse().with_context(|| format!("--log-level {level:?}"))?;
    // Spans for traces are no context of a line.
    let filter = filter.with_target(telemetry::TARGET, LevelFilter::OFF);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Console => layer.boxed(),
    };
    let layers = vec![layer.with_filter(filter).boxed()].into_iter().chain(traces).collect::<Vec<_>>();
    tracing_subscriber::registry().with(layers).try_init().context("logging was set up already")?;
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a bug: panic");
    }));
    Ok(())
}
