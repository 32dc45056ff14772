//! An HTTP proxy in front of the API server that answers some requests with errors, loses answers, and cuts watches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::json;

struct Shared {
    client: Client,
    faulty: AtomicBool,
    count: AtomicU64,
    faults: Mutex<BTreeMap<&'static str, u32>>,
}

/// The proxy. It ends with its value.
pub(super) struct FaultyProxy {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl FaultyProxy {
    pub(super) async fn start(client: Client) -> Result<Self> {
        let shared = Arc::new(Shared { client, faulty: AtomicBool::new(false), count: AtomicU64::new(0), faults: Mutex::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { address, shared, task })
    }

    pub(super) fn set_faulty(&self, faulty: bool) {
        self.shared.faulty.store(faulty, Ordering::Relaxed);
    }

    /// How often each fault was made.
    pub(super) fn faults(&self) -> BTreeMap<&'static str, u32> {
        self.shared.faults.lock().unwrap().clone()
    }

    /// A kubeconfig that leads to the proxy.
    pub(super) fn kubeconfig(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join("proxy.kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{ "name": "proxy", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "proxy", "user": {} }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "proxy" } }],
        });
        std::fs::write(&path, config.to_string())?;
        Ok(path)
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn error(code: u16, reason: &str) -> Response {
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": "made by a test", "code": code });
    Response::builder().status(code).header("content-type", "application/json").body(Body::from(status.to_string())).unwrap()
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let is_write = request.method() != http::Method::GET;
    let faulty = shared.faulty.load(Ordering::Relaxed);
    // Spread over the requests: about every third write and every sixth read goes wrong.
    let dice = shared.count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let fault = |name: &'static str| *shared.faults.lock().unwrap().entry(name).or_default() += 1;
    let may_conflict = matches!(*request.method(), http::Method::PATCH | http::Method::PUT);
    let mut lose_answer = false;
    if faulty && !is_watch {
        match (is_write, dice % 18) {
            (true, 0 | 1) => {
                fault("500");
                return error(500, "InternalError");
            }
            (false, 0) => {
                fault("500");
                return error(500, "InternalError");
            }
            (_, 2) => {
                fault("429");
                return error(429, "TooManyRequests");
            }
            (true, 3 | 4) if may_conflict => {
                fault("409");
                return error(409, "Conflict");
            }
            (true, 5..=7) => {
                fault("lost answer");
                lose_answer = true;
            }
            _ => {}
        }
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    let mut forwarded = http::Request::new(kube::client::Body::from(body));
    *forwarded.method_mut() = parts.method;
    *forwarded.uri_mut() = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).parse().unwrap();
    for name in ["accept", "content-type", "user-agent"] {
        if let Some(value) = parts.headers.get(name) {
            forwarded.headers_mut().insert(http::HeaderName::from_static(name), value.clone());
        }
    }
    let Ok(answer) = shared.client.send(forwarded).await else { return error(503, "ServiceUnavailable") };
    if lose_answer {
        return error(504, "Timeout");
    }
    let (mut parts, body) = answer.into_parts();
    for name in ["transfer-encoding", "connection", "content-length"] {
        parts.headers.remove(name);
    }
    let chunks = body.into_data_stream();
    if faulty && is_watch {
        fault("cut watch");
        let life = Duration::from_millis(500 + dice % 4000);
        return Response::from_parts(parts, Body::from_stream(chunks.take_until(tokio::time::sleep(life))));
    }
    Response::from_parts(parts, Body::from_stream(chunks))
}
