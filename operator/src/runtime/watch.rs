//! Keeps caches current: one watch for each kind and scope.
//!
//! A watch that breaks is taken up again, with growing pauses while the API server does not answer. Nothing that the API server
//! sends ends a watch.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use kube::{
    Api, Client, Resource,
    core::NamespaceResourceScope,
    runtime::watcher::{self, Error, Event, watcher},
};
use tokio::task::JoinSet;

use super::{
    Context, ObjectKey,
    api::Mirrored,
    cache::{Cache, Change, Kept, Scope},
};

/// First and longest pause before a broken watch is taken up again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// After this time the watch must have told of an object that an own write has made.
const DOUBT: Duration = Duration::from_secs(5);
/// Objects in one page of a list. Small pages keep the memory for them small, which the allocator would not give back.
const PAGE: u32 = 50;

/// How lists are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// As a stream of single objects, for API servers that can (on by default since Kubernetes 1.34).
    Streamed,
    /// In pages.
    Paged,
}

/// Kinds whose objects live in namespaces.
pub trait Namespaced: Resource<Scope = NamespaceResourceScope> {}

impl<T: Resource<Scope = NamespaceResourceScope>> Namespaced for T {}

/// Watches that run, and what they fill.
pub struct Watches {
    context: Arc<Context>,
    scopes: Vec<Scope>,
    listing: Listing,
    tasks: JoinSet<()>,
    caches: Vec<Arc<dyn Completes>>,
}

impl Watches {
    /// No watches yet.
    pub fn new(context: Arc<Context>, scopes: Vec<Scope>, listing: Listing) -> Self {
        Self { context, scopes, listing, tasks: JoinSet::new(), caches: Vec::new() }
    }

    /// Watches a kind in every scope.
    pub fn start<K: Mirrored<View: Namespaced> + 'static>(&mut self) {
        for scope in &self.scopes {
            let watch = Watch::<K> {
                context: Arc::clone(&self.context),
                scope: scope.clone(),
                listing: self.listing,
                client: self.context.client.clone(),
                kind: std::marker::PhantomData,
            };
            self.tasks.spawn(watch.run_always());
        }
        self.caches.push(Arc::new(K::cache(&self.context).clone()));
    }

    /// A check of whether every cache that is filled is complete.
    pub fn readiness(&self) -> impl Fn() -> bool + Send + Sync + 'static + use<> {
        let caches = self.caches.clone();
        move || caches.iter().all(|cache| cache.is_complete())
    }

    /// Waits until every cache that is filled is complete.
    pub async fn complete(&self) {
        for cache in &self.caches {
            cache.complete().await;
        }
    }
}

/// A cache of any kind, for those who only ask whether it is complete.
trait Completes: Send + Sync {
    fn is_complete(&self) -> bool;
    fn complete(&self) -> BoxFuture<'_, ()>;
}

impl<T: Kept> Completes for Cache<T> {
    fn is_complete(&self) -> bool {
        self.is_ready()
    }

    fn complete(&self) -> BoxFuture<'_, ()> {
        self.ready().boxed()
    }
}

struct Watch<K> {
    context: Arc<Context>,
    client: Client,
    scope: Scope,
    listing: Listing,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Mirrored<View: Namespaced> + 'static> Watch<K> {
    /// A panic while taking in what the API server sent costs a new list, and nothing else.
    async fn run_always(mut self) {
        while AssertUnwindSafe(self.run()).catch_unwind().await.is_err() {
            tracing::error!(kind = %K::kind(&()), "a watch panicked, which is a bug of the operator; it starts anew");
            tokio::time::sleep(PAUSE.1).await;
        }
    }

    async fn run(&mut self) {
        let mut failures = 0;
        loop {
            let mut events = watcher(self.api(), self.config()).boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        failures = 0;
                        self.take_in(event);
                    }
                    Err(error) if self.listing == Listing::Streamed && is_refused_stream(&error) => {
                        tracing::info!(kind = %K::kind(&()), "the API server does not stream lists: listing in pages");
                        self.listing = Listing::Paged;
                        break;
                    }
                    Err(error) => {
                        log_broken(&K::kind(&()), &self.scope, &error, failures);
                        tokio::time::sleep(pause(failures, rand::random())).await;
                        failures += 1;
                    }
                }
            }
        }
    }

    fn take_in(&self, event: Event<K::View>) {
        let cache = K::cache(&self.context);
        let change = match event {
            Event::Init => {
                cache.list_begins(&self.scope);
                None
            }
            Event::InitApply(object) => cache.listed(&self.scope, object),
            Event::InitDone => {
                let end = cache.list_ends(&self.scope);
                for change in &end.gone {
                    self.wake(change);
                }
                for object in end.doubtful {
                    tokio::spawn(settle_doubt::<K>(Arc::clone(&self.context), object));
                }
                None
            }
            Event::Apply(object) => cache.applied(object),
            Event::Delete(object) => cache.deleted(&object),
        };
        if let Some(change) = change {
            self.wake(&change);
        }
    }

    fn wake(&self, change: &Change<K::View>) {
        K::wake(&self.context.queues, change);
    }

    fn api(&self) -> Api<K::View> {
        match &self.scope {
            Scope::Cluster => Api::all(self.client.clone()),
            Scope::Namespace(namespace) => Api::namespaced(self.client.clone(), namespace),
        }
    }

    fn config(&self) -> watcher::Config {
        let config = watcher::Config { label_selector: K::SELECTOR.map(ToOwned::to_owned), ..watcher::Config::default() };
        match self.listing {
            Listing::Streamed => config.streaming_lists(),
            Listing::Paged => config.page_size(PAGE),
        }
    }
}

/// Finds out about an object that an own write has made and that the watch does not tell of.
async fn settle_doubt<K: Mirrored>(context: Arc<Context>, object: Arc<K::View>) {
    tokio::time::sleep(DOUBT).await;
    let cache = K::cache(&context);
    let key = ObjectKey::of(&*object);
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    if !cache.is_untold(&key, uid) {
        return;
    }
    let change = match context.calls.get::<K, K::View>(&key.namespace, &key.name).await {
        Ok(Some(found)) if found.meta().uid.as_deref() == Some(uid) => cache.applied(found),
        Ok(_) => cache.deleted(&object),
        // The API server does not answer: the watch will break, too, and list anew.
        Err(_) => None,
    };
    if let Some(change) = change {
        K::wake(&context.queues, &change);
    }
}

/// Whether the API server does not know how to stream a list.
fn is_refused_stream(error: &Error) -> bool {
    matches!(error, Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}

/// The pause after a number of failures in a row; `random` in 0..1 keeps watches from returning all at once.
fn pause(failures: u32, random: f64) -> Duration {
    let (first, longest) = PAUSE;
    first.saturating_mul(2_u32.saturating_pow(failures)).min(longest).mul_f64(0.5 + 0.5 * random.clamp(0.0, 1.0))
}

/// Watches break now and then and nobody needs to know; one that stays broken is worth a line, and another now and then.
fn log_broken(kind: &str, scope: &Scope, error: &Error, failures: u32) {
    let error = super::controller::with_causes(error);
    if failures == 2 || (failures > 2 && failures.is_multiple_of(30)) {
        tracing::warn!(kind, ?scope, failures, "the watch is broken: {error}");
    } else {
        tracing::debug!(kind, ?scope, failures, "the watch is broken: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_are_spread() {
        assert_eq!(pause(0, 1.0), Duration::from_millis(200));
        assert_eq!(pause(0, 0.0), Duration::from_millis(100));
        assert_eq!(pause(3, 1.0), Duration::from_millis(1600));
        assert_eq!(pause(200, 1.0), Duration::from_secs(10));
    }

    #[test]
    fn only_a_refused_stream_falls_back_to_pages() {
        let refused =
            |code| Error::WatchStartFailed(kube::Error::Api(kube::core::Status { code, ..kube::core::Status::default() }.boxed()));
        assert!(is_refused_stream(&refused(422)));
        assert!(!is_refused_stream(&refused(403)));
        assert!(!is_refused_stream(&Error::NoResourceVersion));
    }
}
