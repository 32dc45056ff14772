//! Carries one HTTP request to a dashboard: straight to the head Service, or through the API server's service proxy (RJ-130).

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use super::{
    job::Endpoint,
    reply::{DashboardError, RawReply},
};
use crate::runtime::traces;

/// Longest wait for a whole reply on the straight way.
const DIRECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for a whole reply through the API server, and for Ray to take a job.
const LONG_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept. Longer than two polls of a job are apart, at first.
const IDLE: Duration = Duration::from_secs(20);
/// Header that carries the token; `Authorization` belongs to the API server's proxy (RJ-133).
const TOKEN_HEADER: &str = "x-ray-authorization";

/// One request.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// HTTP method.
    pub method: Method,
    /// Path and query, with a leading slash.
    pub path: String,
    /// JSON body, if any.
    pub body: Option<Bytes>,
    /// Token to show, if any.
    pub token: Option<&'a str>,
    /// Longest body that is accepted, in bytes.
    pub limit: usize,
    /// Whether the request may take long even on the straight way.
    pub patient: bool,
}

impl Call<'_> {
    /// A GET of `path` that accepts up to `limit` bytes.
    pub fn get(path: impl Into<String>, limit: usize) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, token: None, limit, patient: false }
    }
}

/// The way to the dashboards.
#[derive(Clone)]
pub struct Transport(Way);

#[derive(Clone)]
enum Way {
    Direct(Box<Client<HttpConnector, Full<Bytes>>>),
    Proxied(kube::Client),
}

impl Transport {
    /// Straight to the head Services; works inside the Kubernetes cluster.
    pub fn direct() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(DIRECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .build(connector);
        Self(Way::Direct(Box::new(client)))
    }

    /// Through the API server (`--use-kubernetes-proxy`). `client` should not retry by itself: an unreachable dashboard is a
    /// 503 of the API server, and asking again at once would only add to its load.
    pub fn proxied(client: kube::Client) -> Self {
        Self(Way::Proxied(client))
    }

    /// Whether the API server stands between.
    pub fn is_proxied(&self) -> bool {
        matches!(self.0, Way::Proxied(_))
    }

    /// Sends one request and reads the whole reply.
    ///
    /// # Errors
    /// [`DashboardError::Unreachable`] without a reply in time, [`DashboardError::TooLong`] when the body exceeds the limit.
    pub async fn call(&self, endpoint: &Endpoint, call: Call<'_>) -> Result<RawReply, DashboardError> {
        let timeout = if call.patient || self.is_proxied() { LONG_TIMEOUT } else { DIRECT_TIMEOUT };
        let question = traces::question(&call.method, endpoint, &call.path);
        let result = match tokio::time::timeout(timeout, self.exchange(endpoint, call)).await {
            Ok(result) => result,
            Err(_) => Err(DashboardError::Unreachable(format!("no reply within {} s", timeout.as_secs()))),
        };
        traces::answered(&question, result.as_ref().map(|reply| reply.status));
        result
    }

    async fn exchange(&self, endpoint: &Endpoint, call: Call<'_>) -> Result<RawReply, DashboardError> {
        let limit = call.limit;
        let uri = match &self.0 {
            Way::Direct(_) => format!("http://{}{}", endpoint.address, call.path),
            Way::Proxied(_) => {
                format!("/api/v1/namespaces/{}/services/{}:{}/proxy{}", endpoint.namespace, endpoint.service, endpoint.port(), call.path)
            }
        };
        let mut request = Request::builder().method(call.method).uri(uri);
        if let Some(token) = call.token {
            request = request.header(TOKEN_HEADER, format!("Bearer {token}"));
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = call.body.unwrap_or_default();
        // Only a host name or token with forbidden characters can fail here.
        let request = request.body(body).map_err(|error| DashboardError::Unreachable(error.to_string()))?;
        match &self.0 {
            Way::Direct(client) => {
                let reply = client.request(request.map(Full::new)).await.map_err(|error| unreachable(&error))?;
                read(reply, limit).await
            }
            Way::Proxied(client) => {
                let reply = client.send(request.map(kube::client::Body::from)).await.map_err(|error| unreachable(&error))?;
                read(reply, limit).await
            }
        }
    }
}

async fn read<B>(reply: http::Response<B>, limit: usize) -> Result<RawReply, DashboardError>
where
    B: hyper::body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let status = reply.status().as_u16();
    match Limited::new(reply.into_body(), limit).collect().await {
        Ok(whole) => Ok(RawReply { status, body: whole.to_bytes() }),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(DashboardError::TooLong(limit)),
        Err(error) => Err(unreachable(&*error)),
    }
}

/// The last of an error's causes says most: `connection refused` rather than `client error`.
fn unreachable(error: &(dyn std::error::Error + 'static)) -> DashboardError {
    let last = std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error);
    DashboardError::Unreachable(last.to_string())
}

/// A text as one segment of a path: everything but letters, digits and `-._~` is escaped.
pub fn segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_segment_of_the_path() {
        assert_eq!(segment("rayjob-x_1.2~"), "rayjob-x_1.2~");
        assert_eq!(segment("a/b c?é"), "a%2Fb%20c%3F%C3%A9");
    }
}
