//! The log: one line a change, in KubeRay's form (RC-240), on standard output and perhaps in a file.

mod format;
mod rotate;

use std::{io, path::Path};

use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::config::{Encoder, LogOptions};
use format::{Console, Json};
use rotate::Rotating;

/// Sends everything that is logged to where `options` say. `filter`, as from `RUST_LOG`, goes before their level. `traces` gets to see
/// everything, too.
///
/// # Errors
/// When the log file cannot be opened, or a log has been started before.
pub fn start(options: &LogOptions, filter: Option<&str>, traces: Option<Sink>) -> io::Result<()> {
    let file = match &options.file {
        Some((path, encoder)) => Some(sink(*encoder, Rotating::open(Path::new(path))?)),
        None => None,
    };
    let log = vec![sink(options.stdout, io::stdout)].into_iter().chain(file).collect::<Vec<_>>();
    let log = log.with_filter(levels(options, filter)).boxed();
    let layers = vec![log].into_iter().chain(traces).collect::<Vec<_>>();
    tracing_subscriber::registry().with(layers).try_init().map_err(io::Error::other)
}

/// Libraries report every retry of theirs; this program says itself what matters of it. Spans for traces are no context of a line.
fn levels(options: &LogOptions, filter: Option<&str>) -> EnvFilter {
    let own = || format!("{},kube_client=error,kube_runtime=off,hyper_util=warn,h2=warn,rustls=warn,tower=warn", options.level);
    let filter = filter.filter(|filter| !filter.is_empty()).map_or_else(own, str::to_owned);
    EnvFilter::new(format!("{filter},{}=off", telemetry::TARGET))
}

/// What gets to see lines and spans.
pub type Sink = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

fn sink<W>(encoder: Encoder, writer: W) -> Sink
where
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    // Context of a reconcile is kept as JSON, whatever the form of the line.
    let layer = fmt::layer().with_ansi(false).fmt_fields(fmt::format::JsonFields::new()).with_writer(writer);
    match encoder {
        Encoder::Json => layer.event_format(Json).boxed(),
        Encoder::Console => layer.event_format(Console).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn spans_for_traces_do_not_exist_without_a_collector_whatever_is_logged() {
        let options = LogOptions { level: tracing::Level::DEBUG, stdout: Encoder::Json, file: None };
        for filter in [None, Some("trace"), Some("kuberay=trace,info"), Some("kuberay::trace=trace,info")] {
            let log = fmt::layer().with_writer(io::sink).with_filter(levels(&options, filter)).boxed();
            let others = fmt::layer().with_writer(io::sink).with_filter(LevelFilter::OFF).boxed();
            tracing::subscriber::with_default(tracing_subscriber::registry().with(vec![log, others]), || {
                assert!(tracing::info_span!(target: telemetry::TARGET, "reconcile").is_disabled(), "{filter:?}");
                assert!(!tracing::info_span!("reconcile").is_disabled(), "{filter:?}");
            });
        }
    }
}
