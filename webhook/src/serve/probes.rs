//! Health, readiness and metrics on plain HTTP, on ports of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use certs::{Clock, Status};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::sync::watch;

use super::http::App;
use super::metrics::Metrics;

/// Whether requests should be sent here.
#[derive(Clone)]
pub(super) struct Readiness {
    pub(super) app: Arc<App>,
    pub(super) certificate: watch::Receiver<Status>,
    pub(super) clock: Clock,
}

impl Readiness {
    /// Why not, one sentence each; empty if they should.
    pub(super) fn problems(&self) -> Vec<String> {
        if self.app.draining.load(Ordering::Relaxed) {
            return vec!["shutting down".to_owned()];
        }
        self.certificate.borrow().problems(self.clock.now())
    }

    /// What is wrong although nobody else would do better.
    pub(super) fn troubles(&self) -> Vec<String> {
        self.certificate.borrow().troubles.clone()
    }
}

/// `/healthz` and `/readyz`.
pub(super) fn health(readiness: Readiness) -> Router {
    Router::new().route("/healthz", get(async || "ok\n")).route(
        "/readyz",
        get(move || {
            let (problems, troubles) = (readiness.problems(), readiness.troubles());
            async move { ready(&problems, &troubles) }
        }),
    )
}

fn ready(problems: &[String], troubles: &[String]) -> Response {
    if problems.is_empty() {
        return ["ok"]
            .into_iter()
            .chain(troubles.iter().map(String::as_str))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready:\n{}\n", problems.join("\n"))).into_response()
}

/// `/metrics`.
pub(super) fn metrics(metrics: Arc<Metrics>) -> Router {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Router::new().route("/metrics", get(move || async move { ([(CONTENT_TYPE, OPEN_METRICS)], metrics.text()) }))
}
