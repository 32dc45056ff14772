//! A collector of traces: takes what the programs send over OTLP/HTTP, and keeps it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message;
use testcluster::wait;
use tokio::task::JoinHandle;

use super::PATIENCE;

/// A span as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// `service.name` of the program.
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for a root.
    pub(crate) parent: String,
    /// As OTLP numbers them: 1 internal, 2 server, 3 client.
    pub(crate) kind: i32,
    pub(crate) failed: bool,
    attributes: BTreeMap<String, String>,
}

impl Seen {
    /// An attribute; empty if it is not there.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    /// Name of the object that it is about.
    pub(crate) fn object(&self) -> &str {
        self.get("k8s.object.name")
    }
}

#[derive(Default)]
struct Kept {
    spans: Vec<Seen>,
    /// All bodies, one after another.
    bytes: Vec<u8>,
    /// What `authorization` said.
    credentials: Vec<String>,
}

/// Takes spans until it is dropped.
pub(crate) struct Collector {
    kept: Arc<Mutex<Kept>>,
    port: u16,
    task: JoinHandle<()>,
}

impl Collector {
    /// At any free port, or (0 aside) at this one.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept = Arc::<Mutex<Kept>>::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(kept.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { kept, port, task }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn spans(&self) -> Vec<Seen> {
        self.kept.lock().unwrap().spans.clone()
    }

    /// Whether anything that came holds the text.
    pub(crate) fn knows(&self, text: &str) -> bool {
        self.kept.lock().unwrap().bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    pub(crate) fn credentials(&self) -> Vec<String> {
        self.kept.lock().unwrap().credentials.clone()
    }

    /// Waits for a span that is as wanted.
    pub(crate) async fn span(&self, what: &str, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let found = wait::until(what, PATIENCE, || async { Ok(self.spans().into_iter().find(&wanted)) }).await;
        found.unwrap_or_else(|error| {
            let seen: Vec<String> = self.spans().iter().map(|span| format!("{} {} ({})", span.service, span.name, span.object())).collect();
            panic!("{error:#}; there are\n{}", seen.join("\n"))
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(kept): State<Arc<Mutex<Kept>>>, headers: HeaderMap, body: Bytes) -> Bytes {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
    let mut kept = kept.lock().unwrap();
    kept.bytes.extend_from_slice(&body);
    kept.credentials.extend(headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()));
    for resource in request.resource_spans {
        let about = resource.resource.map(|resource| texts(&resource.attributes)).unwrap_or_default();
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            kept.spans.push(Seen {
                service: about.get("service.name").cloned().unwrap_or_default(),
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                kind: span.kind,
                // As OTLP numbers them: 2 is an error.
                failed: span.status.is_some_and(|status| status.code == 2),
                attributes: texts(&span.attributes),
            });
        }
    }
    // An empty answer says that all were taken.
    Bytes::new()
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    attributes.iter().map(|attribute| (attribute.key.clone(), attribute.value.as_ref().map(text).unwrap_or_default())).collect()
}

fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(yes)) => yes.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
