//! The queue's content. No I/O, no waiting; time is an argument.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use crate::runtime::key::ObjectKey;

/// How long an object rests after a look before events about what it owns lead to the next one.
pub const SETTLE: Duration = Duration::from_millis(150);
/// First and longest delay after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(60));

/// How a look at an object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Nothing to do until something changes.
    Idle,
    /// Look again after this time.
    Again(Duration),
    /// It failed; look again after this time, which the caller took from [`backoff`].
    Failed(Duration),
    /// The object no longer exists.
    Gone,
}

/// Delay before the next look at an object that failed `failures` times in a row (1 = for the first time): from 5 ms, doubling, up
/// to a minute. `random` in 0..1 spreads it by a fifth to either side, so that objects that failed together do not return together.
pub fn backoff(failures: u32, random: f64) -> Duration {
    let (first, longest) = BACKOFF;
    let delay = first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(longest);
    delay.mul_f64(0.8 + 0.4 * random.clamp(0.0, 1.0))
}

#[derive(Default)]
struct Item {
    /// When the object is to be looked at, and its ticket in the schedule.
    due: Option<(Instant, u64)>,
    running: bool,
    /// End of the last look.
    rested_from: Option<Instant>,
    failures: u32,
}

#[derive(Default)]
pub(super) struct State {
    items: HashMap<ObjectKey, Item>,
    /// Objects that nobody works on, by the time they are due; the ticket keeps equal times in order of arrival.
    schedule: BTreeMap<(Instant, u64), ObjectKey>,
    tickets: u64,
}

impl State {
    pub(super) fn wake(&mut self, key: ObjectKey, now: Instant) {
        let rested = self.items.get(&key).and_then(|item| item.rested_from).map(|end| end + SETTLE);
        let running = self.items.get(&key).is_some_and(|item| item.running);
        // The end of a look that still goes on is not known: `finish` adds the rest.
        let due = if running { now } else { rested.map_or(now, |rested| rested.max(now)) };
        self.wake_at(key, due);
    }

    pub(super) fn wake_at(&mut self, key: ObjectKey, due: Instant) {
        let item = self.items.entry(key.clone()).or_default();
        if item.due.is_some_and(|(known, _)| known <= due) {
            return;
        }
        self.tickets += 1;
        let ticket = (due, self.tickets);
        let old = item.due.replace(ticket);
        if !item.running {
            if let Some(old) = old {
                self.schedule.remove(&old);
            }
            self.schedule.insert(ticket, key);
        }
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<(ObjectKey, Duration)> {
        let entry = self.schedule.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((due, _), key) = entry.remove_entry();
        if let Some(item) = self.items.get_mut(&key) {
            item.due = None;
            item.running = true;
        }
        Some((key, now - due))
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.schedule.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn finish(&mut self, key: &ObjectKey, finished: Finished, now: Instant) {
        let Some(item) = self.items.get_mut(key) else { return };
        item.running = false;
        item.rested_from = Some(now);
        let woken = item.due.take();
        let next = match finished {
            Finished::Idle | Finished::Gone => {
                item.failures = 0;
                None
            }
            Finished::Again(delay) => {
                item.failures = 0;
                Some(now + delay)
            }
            Finished::Failed(delay) => {
                item.failures = item.failures.saturating_add(1);
                Some(now + delay)
            }
        };
        // What happened during the look leads to another one, after the rest that any burst gets.
        let woken = woken.map(|(due, _)| due.max(now + SETTLE));
        match (next, woken) {
            (Some(next), Some(woken)) => self.wake_at(key.clone(), next.min(woken)),
            (Some(due), None) | (None, Some(due)) => self.wake_at(key.clone(), due),
            (None, None) if finished == Finished::Gone => {
                self.items.remove(key);
            }
            (None, None) => {}
        }
    }

    pub(super) fn failures(&self, key: &ObjectKey) -> u32 {
        self.items.get(key).map_or(0, |item| item.failures)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.schedule.is_empty()
    }

    pub(super) fn depth(&self, now: Instant) -> usize {
        self.schedule.range(..=(now, u64::MAX)).count()
    }
}
