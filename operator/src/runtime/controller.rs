//! Runs a controller: takes objects from its queue, has them reconciled, and decides when to look at them again.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use kube::Resource as _;
use tokio::{sync::Semaphore, time::Instant};
use tracing::{Instrument as _, Span};

use super::{
    cache::{Lazy, Root, Roots, Undecodable},
    key::ObjectKey,
    metrics::{Metrics, Outcome},
    queue::{Finished, Queue, backoff},
    traces,
};

/// The longest time a single look at an object may take. Every call has a deadline of its own, so this is a last resort that keeps a
/// forgotten one from holding a place for ever.
const RECONCILE_DEADLINE: Duration = Duration::from_secs(300);

/// What a controller does with one object.
pub trait Reconciler: Send + Sync + 'static {
    /// The kind that it reconciles.
    type Object: Root;
    /// How it fails.
    type Error: Failure;
    /// Name in metrics and logs, such as `raycluster` (RC-263).
    const NAME: &'static str;

    /// Brings the world closer to what the object says. Called for one object never twice at the same time.
    fn reconcile(&self, object: Arc<Self::Object>) -> impl Future<Output = Result<Next, Self::Error>> + Send;

    /// The object exists and cannot be read. Its author is to be told, and its deletion must not wait for it to heal.
    fn unreadable(&self, object: &Lazy<Self::Object>, fault: &Undecodable) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// The object no longer exists: forget what was kept for it (RC-100).
    fn gone(&self, key: &ObjectKey);
}

/// When a reconciled object is to be looked at again, unless something changes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Only when something changes.
    OnChange,
    /// After this time at the latest.
    After(Duration),
}

/// An error of a reconciler.
pub trait Failure: std::error::Error + Send {
    /// One word for metrics and logs.
    fn kind(&self) -> &'static str;

    /// Whether and when another try makes sense.
    fn retry(&self) -> Retry;
}

/// Whether and when another try makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Soon, then less and less often: from 5 ms up to a minute.
    BackOff,
    /// After this time.
    After(Duration),
    /// Not before the object changes.
    OnChange,
}

/// Reconciles objects of `roots` as `queue` names them, at most `concurrency` at a time, until `stop` is done; then waits for what is
/// in progress, at most for `grace`.
pub async fn run_controller<R: Reconciler>(
    reconciler: Arc<R>,
    roots: Roots<R::Object>,
    queue: Queue,
    metrics: Metrics,
    concurrency: u32,
    (stop, grace): (impl Future<Output = ()>, Duration),
) {
    let places = Arc::new(Semaphore::new(usize::try_from(concurrency).unwrap_or(1)));
    metrics.concurrency(R::NAME, concurrency);
    tokio::pin!(stop);
    loop {
        let next = async { (Arc::clone(&places).acquire_owned().await, queue.next().await) };
        let (place, (key, waited)) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        metrics.queue_wait(R::NAME, waited);
        let (reconciler, roots, queue, metrics) = (Arc::clone(&reconciler), roots.clone(), queue.clone(), metrics.clone());
        let span = tracing::info_span!("reconcile", controller = R::NAME, namespace = %key.namespace, name = %key.name);
        tokio::spawn(
            async move {
                let began = Instant::now();
                let pass = traces::pass(&R::Object::kind(&()), &key);
                let (outcome, finished) = look(&*reconciler, &roots, &queue, &key, &pass).instrument(pass.clone()).await;
                traces::looked(&pass, outcome, finished);
                metrics.reconciled(R::NAME, outcome, began.elapsed());
                queue.finish(&key, finished);
                drop(place);
            }
            .instrument(span),
        );
    }
    let _ = tokio::time::timeout(grace, places.acquire_many(concurrency)).await;
}

/// One look at one object. Never panics: a panic in the reconciler is an outcome like others.
async fn look<R: Reconciler>(reconciler: &R, roots: &Roots<R::Object>, queue: &Queue, key: &ObjectKey, pass: &Span) -> (Outcome, Finished) {
    let Some(kept) = roots.cache().get(&key.namespace, &key.name) else {
        reconciler.gone(key);
        return (Outcome::Gone, Finished::Gone);
    };
    traces::generation(pass, kept.meta().generation);
    let work = async {
        match roots.decode(&kept) {
            Ok(object) => reconciler.reconcile(object).await.map(|next| match next {
                Next::OnChange => (Outcome::Success, Finished::Idle),
                Next::After(delay) => (Outcome::RequeueAfter, Finished::Again(delay)),
            }),
            // A new version of the object wakes it.
            Err(fault) => reconciler.unreadable(&kept, &fault).await.map(|()| (Outcome::Undecodable, Finished::Idle)),
        }
    };
    match AssertUnwindSafe(tokio::time::timeout(RECONCILE_DEADLINE, work)).catch_unwind().await {
        Ok(Ok(Ok(looked))) => looked,
        Ok(Ok(Err(failure))) => (Outcome::Error, after_failure::<R>(&failure, queue, key, pass)),
        Ok(Err(_)) => {
            tracing::error!(controller = R::NAME, %key, "reconciling took longer than {} s and was given up", RECONCILE_DEADLINE.as_secs());
            (Outcome::Error, soon(queue, key))
        }
        Err(panic) => {
            let what = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            tracing::error!(controller = R::NAME, %key, "reconciling panicked, which is a bug of the operator: {}", what.unwrap_or("?"));
            (Outcome::Panic, soon(queue, key))
        }
    }
}

fn after_failure<R: Reconciler>(failure: &R::Error, queue: &Queue, key: &ObjectKey, pass: &Span) -> Finished {
    traces::failed(pass, failure.kind());
    let finished = match failure.retry() {
        Retry::BackOff => soon(queue, key),
        Retry::After(delay) => Finished::Failed(delay),
        Retry::OnChange => Finished::Idle,
    };
    log_failure(R::NAME, key, failure, queue.failures(key), finished);
    finished
}

fn soon(queue: &Queue, key: &ObjectKey) -> Finished {
    Finished::Failed(backoff(queue.failures(key) + 1, rand::random()))
}

/// Conflicts and other short disturbances are gone at the next try; only what lasts deserves a line that people see.
fn log_failure(controller: &str, key: &ObjectKey, failure: &impl Failure, earlier: u32, next: Finished) {
    let (kind, error) = (failure.kind(), with_causes(failure));
    let next = match next {
        Finished::Failed(delay) => format!("next try in {delay:.1?}"),
        _ => "next try when the object changes".to_owned(),
    };
    if earlier < 3 {
        tracing::info!(controller, %key, kind, "{error}; {next}");
    } else {
        tracing::warn!(controller, %key, kind, failures = earlier + 1, "{error}; {next}");
    }
}

/// An error's text followed by those of its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut text = error.to_string();
    for cause in causes.map(ToString::to_string) {
        // Many errors repeat their cause in their own text.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
