use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Instant,
};

use opentelemetry::Context;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SpanData, SpanProcessor},
};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

/// Keeps spans where a test finds them.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanProcessor for Kept {
    fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().unwrap().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// The names of the spans that would be sent of what `work` does.
fn sent(work: impl FnOnce()) -> Vec<SpanData> {
    let kept = Kept::default();
    let processor = WorthSending { next: kept.clone(), fruitful: Mutex::default() };
    let provider = SdkTracerProvider::builder().with_span_processor(processor).build();
    let traces = Traces { provider: Some(provider), news: Vec::new() };
    tracing::subscriber::with_default(tracing_subscriber::registry().with(vec![traces.layer().unwrap()]), work);
    std::mem::take(&mut *kept.0.lock().unwrap())
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| &*span.name).collect()
}

#[test]
fn only_spans_for_traces_are_sent_and_children_before_parents() {
    let spans = sent(|| {
        let _others = tracing::info_span!("of a library").entered();
        let pass = tracing::info_span!(target: TARGET, "pass", otel.name = "reconcile RayCluster", outcome = tracing::field::Empty);
        let within = pass.enter();
        tracing::info_span!("of the log").in_scope(|| {
            tracing::info_span!(target: TARGET, "write", otel.kind = "client").in_scope(|| tracing::info!("a line of the log"));
        });
        drop(within);
        pass.record("outcome", "success");
    });
    assert_eq!(names(&spans), ["write", "reconcile RayCluster"]);
    assert_eq!(spans[0].parent_span_id, spans[1].span_context.span_id());
    assert!(spans[0].events.is_empty(), "log lines are no part of a trace");
    assert_eq!(spans[1].attributes, [KeyValue::new("outcome", "success")]);
}

#[test]
fn work_that_found_nothing_to_do_is_not_sent() {
    let pass = || tracing::info_span!(target: TARGET, "pass", otel.status_code = tracing::field::Empty);
    assert_eq!(names(&sent(|| drop(pass()))), [""; 0]);
    for (status, wanted) in [("ERROR", &["pass"][..]), ("OK", &[])] {
        let spans = sent(|| {
            pass().record("otel.status_code", status);
        });
        assert_eq!(names(&spans), wanted, "{status}");
    }
    assert_eq!(names(&sent(|| pass().in_scope(|| drop(pass())))), ["pass", "pass"]);
    for kind in ["server", "client"] {
        assert_eq!(names(&sent(|| drop(tracing::info_span!(target: TARGET, "call", otel.kind = kind)))), ["call"]);
    }
}

#[test]
fn a_trace_goes_on_across_requests() {
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = |value: &str| HeaderMap::from_iter([(http::HeaderName::from_static(TRACEPARENT), value.parse().unwrap())]);
    let mut handed_on = HeaderMap::new();
    let spans = sent(|| {
        let span = tracing::info_span!(target: TARGET, "review");
        continue_trace(&span, &headers(given));
        hand_on(&span, &mut handed_on);
    });
    assert_eq!(spans[0].span_context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(spans[0].parent_span_id.to_string(), "b7ad6b7169203331");
    let wanted = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", spans[0].span_context.span_id());
    assert_eq!(handed_on[TRACEPARENT], wanted.as_str());

    let unwanted = given.replace("-01", "-00");
    let dropped = sent(|| continue_trace(&tracing::info_span!(target: TARGET, "review"), &headers(&unwanted)));
    assert!(dropped.is_empty(), "the caller has decided that its trace is not kept");
    let garbled = sent(|| continue_trace(&tracing::info_span!(target: TARGET, "review", otel.kind = "server"), &headers("00-garbled")));
    assert_eq!(garbled[0].parent_span_id, opentelemetry::trace::SpanId::INVALID, "a trace of its own");
}

#[test]
fn nothing_is_handed_on_without_a_collector() {
    let traces = Traces::from_environment("p", "1", |_| None);
    assert!(traces.layer().is_none());
    let mut headers = HeaderMap::new();
    hand_on(&tracing::info_span!(target: TARGET, "review"), &mut headers);
    assert!(headers.is_empty());
    traces.finish(Duration::ZERO);
}

#[test]
fn a_mistake_is_for_the_log_and_nothing_else() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")),
    ] {
        let variables = [(name, value), ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1")];
        let find = |wanted: &str| variables.iter().find(|(key, _)| *key == wanted).map(|(_, value)| (*value).to_owned());
        let mut traces = Traces::from_environment("p", "1", find);
        assert!(traces.layer().is_none(), "{name}={value}");
        assert!(matches!(&traces.news[..], [News::Useless(said)] if said.contains(name) && said.contains(value)), "{:?}", traces.news);
        traces.report();
        assert!(traces.news.is_empty());
    }
}

#[test]
fn the_end_does_not_wait_for_a_collector_that_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let traces = Traces::from_environment("p", "1", |name| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| endpoint.clone()));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(vec![traces.layer().unwrap()]), || {
        drop(tracing::info_span!(target: TARGET, "review", otel.kind = "server"));
    });
    let began = Instant::now();
    traces.finish(Duration::from_millis(200));
    let took = began.elapsed();
    assert!((Duration::from_millis(150)..Duration::from_secs(2)).contains(&took), "{took:?}");
}
