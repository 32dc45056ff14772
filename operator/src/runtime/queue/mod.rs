//! Which objects are to be looked at, and when.
//!
//! One queue a controller. An object is in it at most once and is never worked on twice at the same time; whatever happens to it
//! meanwhile leads to one more look afterwards. Events about things an object owns come in bursts, so an object that was just
//! looked at rests for a moment ([`SETTLE`]) and takes the whole burst in one look; the first event after a quiet time is never
//! delayed, and neither are edits of the object itself.

mod state;
#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use state::State;
pub use state::{Finished, SETTLE, backoff};

use super::key::ObjectKey;

/// Handle to a queue. Clones share it.
#[derive(Clone, Default)]
pub struct Queue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Queue {
    /// Something about the object changed: look at it, though not within [`SETTLE`] of the last look.
    pub fn wake(&self, key: ObjectKey) {
        self.change(|state, now| state.wake(key, now));
    }

    /// The object itself was edited: look at it at once.
    pub fn wake_now(&self, key: ObjectKey) {
        self.change(|state, now| state.wake_at(key, now));
    }

    /// Look at the object after `delay` at the latest.
    pub fn wake_after(&self, key: ObjectKey, delay: Duration) {
        self.change(|state, now| state.wake_at(key, now + delay));
    }

    /// The next object to look at, and how long it has been waiting beyond its time. For one consumer only. The object counts as
    /// being worked on until [`Queue::finish`].
    pub async fn next(&self) -> (ObjectKey, Duration) {
        loop {
            let changed = self.shared.changed.notified();
            let due = {
                let mut state = self.state();
                if let Some(next) = state.pop(Instant::now()) {
                    return next;
                }
                state.next_due()
            };
            match due {
                Some(due) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// The look at an object has ended.
    pub fn finish(&self, key: &ObjectKey, finished: Finished) {
        self.change(|state, now| state.finish(key, finished, now));
    }

    /// How often in a row the object has failed.
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.state().failures(key)
    }

    /// Number of objects whose time has come and that nobody works on yet.
    pub fn depth(&self) -> usize {
        self.state().depth(Instant::now())
    }

    fn change(&self, change: impl FnOnce(&mut State, Instant)) {
        change(&mut self.state(), Instant::now());
        self.shared.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
