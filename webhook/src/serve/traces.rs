//! One span for each review, part of the API server's trace if it speaks of one. Names, counts and rules, never content.

use http::HeaderMap;
use telemetry::TARGET;
use tracing::Span;
use tracing::field::Empty;

use super::review::{Endpoint, Facts};

/// Longest name that is told, in characters. API servers let none pass that is longer.
const LONGEST_NAME: usize = 253;

/// A request to one of the paths, as it arrives.
pub(super) fn review(endpoint: Endpoint, headers: &HeaderMap) -> Span {
    let kind = endpoint.kind.as_str();
    let span = tracing::info_span!(
        target: TARGET,
        "review",
        otel.name = %format_args!("{} {kind}", endpoint.mode.as_str()),
        otel.kind = "server",
        otel.status_code = Empty,
        http.route = endpoint.path(),
        k8s.object.kind = kind,
        k8s.namespace.name = Empty,
        k8s.object.name = Empty,
        kuberay.operation = Empty,
        kuberay.allowed = Empty,
        kuberay.rules = Empty,
        kuberay.warnings = Empty,
        kuberay.dry_run = Empty,
        "error.type" = Empty,
    );
    telemetry::continue_trace(&span, headers);
    span
}

/// What was found.
pub(super) fn reviewed(span: &Span, facts: &Facts) {
    if span.is_disabled() {
        return;
    }
    span.record("k8s.namespace.name", shortened(&facts.namespace));
    span.record("k8s.object.name", shortened(&facts.name));
    span.record("kuberay.operation", facts.operation);
    span.record("kuberay.allowed", facts.allowed);
    span.record("kuberay.dry_run", facts.dry_run);
    span.record("kuberay.warnings", i64::try_from(facts.report.warnings.len()).ok());
    if !facts.allowed {
        span.record("kuberay.rules", facts.rules().join(","));
    }
}

/// The request got no review, for a reason as in the metric.
pub(super) fn rejected(span: &Span, reason: &str) {
    span.record("error.type", reason);
    span.record("otel.status_code", "ERROR");
}

/// A name that nobody has checked yet may be anything.
fn shortened(name: &str) -> &str {
    name.char_indices().nth(LONGEST_NAME).and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}
