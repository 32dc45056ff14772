//! Which spans are worth sending: not those of work that found nothing to do.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use opentelemetry::{
    Context,
    trace::{SpanId, SpanKind, Status},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};

/// Parents that are remembered. Each is forgotten when it ends; this many at once means that something never ends.
const MOST: usize = 10_000;

/// Leaves out spans that nobody asked for, that led to nothing and that did not fail: an operator looks at thousands of objects where
/// there is nothing to do. Metrics count them.
#[derive(Debug)]
pub(crate) struct WorthSending<P> {
    pub(crate) next: P,
    /// Spans under way that have had children.
    pub(crate) fruitful: Mutex<HashSet<SpanId>>,
}

impl<P> WorthSending<P> {
    fn is_worth(&self, span: &SpanData) -> bool {
        let mut fruitful = self.fruitful.lock().unwrap_or_else(PoisonError::into_inner);
        let has_parent = span.parent_span_id != SpanId::INVALID;
        if has_parent && !span.parent_span_is_remote {
            if fruitful.len() >= MOST {
                fruitful.clear();
            }
            fruitful.insert(span.parent_span_id);
        }
        let has_children = fruitful.remove(&span.span_context.span_id());
        has_parent || has_children || span.span_kind != SpanKind::Internal || matches!(span.status, Status::Error { .. })
    }
}

impl<P: SpanProcessor> SpanProcessor for WorthSending<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.next.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.is_worth(&span) {
            self.next.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}
