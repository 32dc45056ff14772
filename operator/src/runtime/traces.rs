//! Spans for traces: passes, calls of the API server, questions to dashboards. Names, versions and words of ours, never content.
//!
//! Without a collector none of them exists, see [`telemetry`].

use http::{HeaderMap, Method};
use telemetry::TARGET;
use tracing::{
    Span,
    field::{self, Empty},
};

use super::{api::ApiError, controller::Failure as _, key::ObjectKey, metrics::Outcome, queue::Finished};
use crate::dashboard::{DashboardError, Endpoint};

/// One look at an object. Sent if it led to a call, or failed.
pub fn pass(kind: &str, key: &ObjectKey) -> Span {
    tracing::info_span!(
        target: TARGET,
        "reconcile",
        otel.name = %format_args!("reconcile {kind}"),
        otel.status_code = Empty,
        k8s.object.kind = kind,
        k8s.namespace.name = %key.namespace,
        k8s.object.name = %key.name,
        k8s.object.generation = Empty,
        kuberay.outcome = Empty,
        kuberay.requeue_ms = Empty,
        "error.type" = Empty,
    )
}

/// The version of the object that is looked at.
pub fn generation(pass: &Span, generation: Option<i64>) {
    pass.record("k8s.object.generation", generation);
}

/// Why the look failed, in one word.
pub fn failed(pass: &Span, class: &str) {
    pass.record("error.type", class);
}

/// How the look has ended, and when the next is due.
pub fn looked(pass: &Span, outcome: Outcome, finished: Finished) {
    pass.record("kuberay.outcome", outcome.label());
    if let Finished::Again(delay) | Finished::Failed(delay) = finished {
        pass.record("kuberay.requeue_ms", i64::try_from(delay.as_millis()).ok());
    }
    if matches!(outcome, Outcome::Error | Outcome::Panic | Outcome::Undecodable) {
        pass.record("otel.status_code", "ERROR");
    }
}

/// One call of the API server, which is told which trace it belongs to.
pub fn call(verb: &str, kind: &str, namespace: &str, name: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "call",
        otel.name = %format_args!("{verb} {kind}"),
        otel.kind = "client",
        otel.status_code = Empty,
        k8s.object.kind = kind,
        k8s.namespace.name = namespace,
        k8s.object.name = name,
        kuberay.verb = verb,
        kuberay.result = Empty,
        "error.type" = Empty,
    )
}

/// Has the API server go on with the trace.
pub fn hand_on(call: &Span, headers: &mut HeaderMap) {
    telemetry::hand_on(call, headers);
}

/// What became of the call.
pub fn called(call: &Span, error: Option<&ApiError>) {
    match error {
        None => {
            call.record("kuberay.result", "ok");
        }
        Some(error) => {
            // As in the metric of writes.
            match error.code() {
                0 => call.record("kuberay.result", "none"),
                code => call.record("kuberay.result", field::display(code)),
            };
            call.record("error.type", error.kind());
            call.record("otel.status_code", "ERROR");
        }
    }
}

/// One question to a dashboard. Paths hold ids of jobs and nothing that is secret.
pub fn question(method: &Method, endpoint: &Endpoint, path: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "ask dashboard",
        otel.kind = "client",
        otel.status_code = Empty,
        k8s.namespace.name = &*endpoint.namespace,
        server.address = &*endpoint.address,
        http.request.method = method.as_str(),
        url.path = path.split('?').next(),
        http.response.status_code = Empty,
        "error.type" = Empty,
    )
}

/// What the dashboard answered: the HTTP status, or why there is none.
pub fn answered(question: &Span, answer: Result<u16, &DashboardError>) {
    match answer {
        Ok(status) => {
            question.record("http.response.status_code", i64::from(status));
            if status >= 400 {
                question.record("otel.status_code", "ERROR");
            }
        }
        Err(error) => {
            question.record(
                "error.type",
                match error {
                    DashboardError::Unreachable(_) => "unreachable",
                    DashboardError::TooLong(_) => "too-long",
                    _ => "unusable",
                },
            );
            question.record("otel.status_code", "ERROR");
        }
    }
}
