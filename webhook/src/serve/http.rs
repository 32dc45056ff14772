//! The admission paths over HTTP: limits, content types, panics. What is said about an object is decided in `review`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use http_body_util::BodyExt;
use shared::features::FeatureGates;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Span;

use super::envelope::EnvelopeError;
use super::metrics::Metrics;
use super::namespaces::Namespaces;
use super::policy::CurrentPolicy;
use super::review::{Endpoint, Facts, Grounds, Reviewed, review};
use super::traces;

/// Largest review that is read. An API server sends at most twice 3 MiB (the object and its old version) and a little around it.
pub const MAX_BODY: usize = 7 << 20;
/// A body over the limit is read on and thrown away up to here, so that the client gets to see the answer.
const MAX_DISCARDED: usize = 64 << 20;
/// Above this size a review is worked on beside the event loop, and only a few at a time: memory stays bounded and small reviews
/// do not wait.
const LARGE_BODY: usize = 256 << 10;
/// Large reviews worked on at the same time.
const LARGE_AT_ONCE: usize = 4;
/// API servers wait at most 30 s for an answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a large review waits for its turn.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type Reviewer = fn(Endpoint, &Grounds, &[u8]) -> Result<Reviewed, EnvelopeError>;

/// What all requests share.
pub(super) struct App {
    pub(super) features: FeatureGates,
    pub(super) policy: Arc<CurrentPolicy>,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) metrics: Arc<Metrics>,
    /// Set when the process is about to end: clients are then asked to go elsewhere.
    pub(super) draining: AtomicBool,
    large: Arc<Semaphore>,
    reviewer: Reviewer,
}

impl App {
    pub(super) fn new(features: FeatureGates, policy: Arc<CurrentPolicy>, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self::with_reviewer(features, policy, metrics, review))
    }

    fn with_reviewer(features: FeatureGates, policy: Arc<CurrentPolicy>, metrics: Arc<Metrics>, reviewer: Reviewer) -> Self {
        let large = Arc::new(Semaphore::new(LARGE_AT_ONCE));
        Self { features, policy, namespaces: Arc::default(), metrics, draining: AtomicBool::new(false), large, reviewer }
    }
}

/// A request that gets no review, and why.
#[derive(Debug, thiserror::Error)]
enum Rejection {
    #[error("the review is larger than {} MiB", MAX_BODY >> 20)]
    TooLarge,
    #[error("the content type is {0:.100}; send application/json")]
    ContentType(String),
    #[error("the body did not arrive within {} s", BODY_TIMEOUT.as_secs())]
    TooSlow,
    #[error("too many large reviews at once; try again")]
    Busy,
    #[error("the body could not be read: {0}")]
    Broken(String),
    #[error("{0}")]
    Envelope(#[from] EnvelopeError),
    #[error("the review failed because of a bug in this webhook; its log names the place. The object itself may be fine")]
    Panic,
}

impl Rejection {
    fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Broken(_) | Self::Envelope(_) => StatusCode::BAD_REQUEST,
            Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// As in the metric.
    fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge => "too large",
            Self::ContentType(_) => "content type",
            Self::TooSlow => "too slow",
            Self::Busy => "busy",
            Self::Broken(_) => "broken",
            Self::Envelope(_) => "not a review",
            Self::Panic => "panic",
        }
    }
}

/// The eight admission paths.
pub(super) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for endpoint in Endpoint::all() {
        let app = app.clone();
        let route = post(move |request: Request| async move { app.answer(endpoint, request).await });
        router = router.route(&endpoint.path(), route);
    }
    router.method_not_allowed_fallback(only_post).fallback(unknown_path)
}

async fn only_post() -> Response {
    sentence(StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview of admission.k8s.io/v1 here")
}

async fn unknown_path() -> Response {
    let paths: Vec<_> = Endpoint::all().map(Endpoint::path).collect();
    sentence(StatusCode::NOT_FOUND, &format!("nothing is served here; the paths are {}", paths.join(", ")))
}

fn sentence(status: StatusCode, text: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n")).into_response()
}

impl App {
    async fn answer(self: Arc<Self>, endpoint: Endpoint, request: Request) -> Response {
        self.metrics.in_flight.inc();
        let version = request.version();
        let span = traces::review(endpoint, request.headers());
        let mut response = match self.review(endpoint, request, &span).await {
            Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
            Err(rejection) => {
                traces::rejected(&span, rejection.reason());
                self.metrics.rejected(rejection.reason());
                tracing::warn!(path = endpoint.path(), reason = rejection.reason(), "request rejected");
                let mut response = sentence(rejection.status(), &rejection.to_string());
                if matches!(rejection, Rejection::Busy) {
                    // API servers repeat the request then.
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                }
                response
            }
        };
        self.metrics.in_flight.dec();
        // HTTP/2 has its own way to say this.
        if version < Version::HTTP_2 && self.draining.load(Ordering::Relaxed) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn review(&self, endpoint: Endpoint, request: Request, span: &Span) -> Result<Vec<u8>, Rejection> {
        check_content_type(request.headers())?;
        let (body, permit) = tokio::time::timeout(BODY_TIMEOUT, self.receive(request)).await.map_err(|_| Rejection::TooSlow)??;
        let start = Instant::now();
        let grounds = Grounds { features: self.features, policy: self.policy.get(), namespaces: self.namespaces.clone() };
        let reviewer = self.reviewer;
        let work = move || catch_unwind(AssertUnwindSafe(|| reviewer(endpoint, &grounds, &body)));
        let done =
            if permit.is_some() { tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Box::new(error))) } else { work() };
        let Ok(result) = done else {
            self.metrics.panicked();
            return Err(Rejection::Panic);
        };
        let Reviewed { body, facts } = result?;
        self.metrics.reviewed(endpoint, &facts, start.elapsed());
        traces::reviewed(span, &facts);
        if !facts.allowed {
            log_refusal(endpoint, &facts);
        }
        Ok(body)
    }

    /// Reads the body. Large ones come with a permit that has to be kept until the review is done.
    async fn receive(&self, request: Request) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Rejection> {
        let declared = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let mut permit = None;
        if declared.is_some_and(|length| length > LARGE_BODY) {
            permit = Some(self.large_permit().await?);
        }
        let mut body: Body = request.into_body();
        let mut first: Option<Bytes> = None;
        let mut rest = BytesMut::new();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Rejection::Broken(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len();
            if length > MAX_DISCARDED {
                break;
            }
            if length > MAX_BODY {
                (first, rest) = (None, BytesMut::new());
                continue;
            }
            if length > LARGE_BODY && permit.is_none() {
                permit = Some(self.large_permit().await?);
            }
            match first.take() {
                // Nearly every review arrives in one piece and is then not copied at all.
                None if rest.is_empty() => first = Some(data),
                None => rest.extend_from_slice(&data),
                Some(start) => {
                    rest.reserve(declared.unwrap_or_default().min(MAX_BODY).max(start.len() + data.len()));
                    rest.extend_from_slice(&start);
                    rest.extend_from_slice(&data);
                }
            }
        }
        if length > MAX_BODY {
            return Err(Rejection::TooLarge);
        }
        Ok((first.unwrap_or_else(|| rest.freeze()), permit))
    }

    async fn large_permit(&self) -> Result<OwnedSemaphorePermit, Rejection> {
        match tokio::time::timeout(BUSY_TIMEOUT, self.large.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Rejection::Busy),
        }
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Rejection> {
    let found = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("unreadable"));
    let media_type = found.map(|text| text.split(';').next().unwrap_or_default().trim());
    match media_type {
        Some(media_type) if media_type.eq_ignore_ascii_case("application/json") => Ok(()),
        _ => Err(Rejection::ContentType(found.unwrap_or("missing").to_owned())),
    }
}

/// One line for each refused request. Names and rules only: what the object says is the user's.
fn log_refusal(endpoint: Endpoint, facts: &Facts) {
    tracing::info!(
        kind = endpoint.kind.as_str(),
        namespace = facts.namespace,
        name = facts.name,
        operation = facts.operation,
        dry_run = facts.dry_run,
        errors = facts.report.errors.len() + facts.report.omitted,
        rules = facts.rules().join(","),
        problem = facts.problem,
        "refused"
    );
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
