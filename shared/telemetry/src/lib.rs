//! Traces of both programs, sent to an OpenTelemetry collector (OTLP over HTTP) where the environment names one.
//!
//! Without a collector there is nothing: no layer, no thread, and a span of [`TARGET`] costs the look at one number. With one, spans are
//! handed to a thread that sends them in batches; if the collector cannot be reached they are dropped, and that is said once.
//!
//! Spans carry names, counts and words of ours. Never content of objects: nobody guards a collector as Secrets are guarded.

mod client;
mod outage;
mod settings;
mod worth;

use std::{collections::HashSet, sync::Mutex, time::Duration};

use http::HeaderMap;
use opentelemetry::{KeyValue, propagation::TextMapPropagator as _, trace::TracerProvider as _};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{BatchSpanProcessor, SdkTracerProvider},
};
use tracing::{Span, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, Registry, filter::Targets};

use client::Client;
use settings::Settings;
use worth::WorthSending;

/// Target of the spans that are sent. Logs leave them out, and other spans are not sent.
pub const TARGET: &str = "kuberay::trace";

/// The header by which a caller says which trace a request belongs to (W3C Trace Context).
const TRACEPARENT: &str = "traceparent";

/// The way that spans go, if they go anywhere.
#[derive(Debug)]
pub struct Traces {
    provider: Option<SdkTracerProvider>,
    /// What there is to be said as soon as there is a log.
    news: Vec<News>,
}

#[derive(Debug)]
enum News {
    Begun(String),
    Remark(String),
    Useless(String),
}

impl Traces {
    /// As the environment wants it, which `variable` gives. `program` and `version` are what a collector gets to know the program by.
    ///
    /// Never fails: a mistake in the environment is for [`Traces::report`].
    pub fn from_environment(program: &str, version: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let begun = settings::read(program, version, variable).and_then(|settings| settings.map(begin).transpose());
        match begun {
            Ok(None) => Self { provider: None, news: Vec::new() },
            Ok(Some((provider, news))) => Self { provider: Some(provider), news },
            Err(sentence) => Self { provider: None, news: vec![News::Useless(sentence)] },
        }
    }

    /// What takes the spans; nothing if they go nowhere. Other layers must leave out [`TARGET`].
    pub fn layer(&self) -> Option<Box<dyn Layer<Registry> + Send + Sync>> {
        let tracer = self.provider.as_ref()?.tracer("kuberay");
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_level(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false);
        Some(layer.with_filter(Targets::new().with_target(TARGET, LevelFilter::INFO)).boxed())
    }

    /// Logs where spans go, or in one line why they go nowhere although somebody wants them to.
    pub fn report(&mut self) {
        for news in self.news.drain(..) {
            match news {
                News::Begun(endpoint) => tracing::info!(endpoint, "sending traces"),
                News::Remark(remark) => tracing::warn!("traces: {remark}"),
                News::Useless(sentence) => tracing::error!("no traces are sent: {sentence}"),
            }
        }
    }

    /// Sends what is left, and waits for that at most so long. Blocks; not to be called within an async runtime.
    pub fn finish(self, within: Duration) {
        if let Some(provider) = self.provider
            && let Err(error) = provider.shutdown_with_timeout(within)
        {
            tracing::debug!(%error, "the last traces were not sent");
        }
    }
}

fn begin(settings: Settings) -> Result<(SdkTracerProvider, Vec<News>), String> {
    let endpoint = settings.endpoint.to_string();
    let client = Client::new(&settings)?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(endpoint.as_str())
        .with_timeout(settings.timeout)
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|error| error.to_string())?;
    let attributes = settings.resource.into_iter().map(|(key, value)| KeyValue::new(key, value));
    let processor = WorthSending { next: BatchSpanProcessor::builder(exporter).build(), fruitful: Mutex::new(HashSet::new()) };
    let provider = SdkTracerProvider::builder()
        .with_sampler(settings.sampling)
        .with_resource(Resource::builder_empty().with_attributes(attributes).build())
        .with_span_processor(processor)
        .build();
    let news = [News::Begun(endpoint)].into_iter().chain(settings.remarks.into_iter().map(News::Remark)).collect();
    Ok((provider, news))
}

/// Makes `span` part of the trace that a request's headers speak of, if they speak of one. To be called before the span is entered.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if !span.is_disabled() && headers.contains_key(TRACEPARENT) {
        // A span that nobody records refuses; there is nothing to continue then.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&HeaderExtractor(headers)));
    }
}

/// Says in a request's headers that it belongs to the trace of `span`.
pub fn hand_on(span: &Span, headers: &mut HeaderMap) {
    if !span.is_disabled() {
        TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(headers));
    }
}

#[cfg(test)]
mod tests;
