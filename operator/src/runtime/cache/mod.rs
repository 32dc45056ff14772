//! What the operator knows of the cluster, kept current by watches.
//!
//! A [`Cache`] holds one slim version of each object. Reads never leave the process. Unlike a bare reflector it
//! - answers "which objects belong to X" from an index that changes in the same step as the objects,
//! - takes in what the operator itself has just written ([`Cache::observe`]), so that the next look at an object never rests on a
//!   state before the own write,
//! - notices objects that went away while a watch was broken, and tells so like any deletion,
//! - lets any number of tasks wait until it is complete ([`Cache::ready`]).

mod lazy;
mod state;
#[cfg(test)]
mod tests;

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use lazy::{Lazy, Root, Roots, Undecodable};
pub use state::{Change, Scope};
use state::{ListEnd, State};

use super::key::ObjectKey;

/// A kind as it is kept in a [`Cache`].
pub trait Kept: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// Drops what nobody reads. Called once for each version of an object, before it is stored.
    fn trim(&mut self) {}

    /// Whether this version says something that `older` did not. If not, nobody is woken.
    fn differs(&self, older: &Self) -> bool;
}

/// Objects of one kind. Clones share their content.
pub struct Cache<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    ready: watch::Sender<bool>,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Kept> Cache<T> {
    /// An empty cache. `index` says to which group an object belongs, see [`Cache::in_group`]; `scopes` are the parts that must
    /// have been listed before the cache is complete.
    pub fn new(index: fn(&T) -> Option<&str>, scopes: &[Scope]) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::new(State::new(index, scopes)), ready: watch::Sender::new(false) }) }
    }

    /// The object of this name, if it exists.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.state().get(&ObjectKey::new(namespace, name))
    }

    /// The objects of a namespace that the index assigns to `group`, ordered by name. What a group is depends on the cache: see the
    /// fields of [`Context`](super::Context).
    pub fn in_group(&self, namespace: &str, group: &str) -> Vec<Arc<T>> {
        self.state().in_group(&ObjectKey::new(namespace, group))
    }

    /// All objects, in no order.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.state().all()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.state().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in the answer to an own create or update, unless the watch has overtaken it. Returns the object as it is known now, and
    /// what changed by it.
    pub fn observe(&self, mut object: T) -> (Arc<T>, Option<Change<T>>) {
        object.trim();
        self.state().observe(object)
    }

    /// Whether an object of this name was known and is gone since a moment ago: whoever wants a fresh name takes another.
    pub fn is_gone_lately(&self, namespace: &str, name: &str) -> bool {
        self.state().is_gone_lately(&ObjectKey::new(namespace, name))
    }

    /// Takes in that an object is gone, as an own delete found out.
    pub fn forget(&self, namespace: &str, name: &str, uid: &str) {
        self.state().forget(&ObjectKey::new(namespace, name), uid);
    }

    /// Notes that this version of an object is as a wanted one with this fingerprint.
    pub fn set_verified(&self, object: &T, fingerprint: u64) {
        self.state().set_verified(object, fingerprint);
    }

    /// The fingerprint noted for exactly this version of an object.
    pub fn verified(&self, object: &T) -> Option<u64> {
        self.state().verified(object)
    }

    /// Whether every scope has been listed once.
    pub fn is_ready(&self) -> bool {
        *self.shared.ready.borrow()
    }

    /// Waits until every scope has been listed once. Any number of tasks may wait.
    pub async fn ready(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.shared.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// The watch over `scope` begins to list.
    pub(super) fn list_begins(&self, scope: &Scope) {
        self.state().list_begins(scope);
    }

    /// The list of the watch over `scope` names an object.
    pub(super) fn listed(&self, scope: &Scope, mut object: T) -> Option<Change<T>> {
        object.trim();
        self.state().listed(scope, object)
    }

    /// The list of the watch over `scope` is complete.
    pub(super) fn list_ends(&self, scope: &Scope) -> ListEnd<T> {
        let (end, complete) = {
            let mut state = self.state();
            (state.list_ends(scope), state.is_complete())
        };
        if complete {
            self.shared.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        }
        end
    }

    /// A watch tells that an object is new or changed.
    pub(super) fn applied(&self, mut object: T) -> Option<Change<T>> {
        object.trim();
        self.state().applied(object)
    }

    /// A watch tells that an object is gone.
    pub(super) fn deleted(&self, object: &T) -> Option<Change<T>> {
        self.state().deleted(object)
    }

    /// Whether an object of this uid is known only from an own write.
    pub(super) fn is_untold(&self, key: &ObjectKey, uid: &str) -> bool {
        self.state().is_untold(key, uid)
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No code that holds the lock can panic half way through a change, so a poisoned state is still whole.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
