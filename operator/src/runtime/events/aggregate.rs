//! What becomes of a stream of occurrences: which are joined, which are repeats, which are too many. No I/O; time is an argument.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

/// Longest note that the API server takes, in bytes.
const MAX_NOTE: usize = 1024;
/// Seconds within which a repeat counts up the first event instead of making another.
const SERIES_LIFETIME: i64 = 600;
/// The count of repeats is written at most once in so many seconds.
const SERIES_INTERVAL: i64 = 60;
/// An object may have this many events at once, and then one more each [`REFILL`] seconds.
const BURST: f32 = 25.0;
/// Seconds after which an object may have one more event.
const REFILL: i64 = 30;
/// Seconds after which an object has its full allowance again, whatever it has used.
const ALLOWANCE_LIFETIME: i64 = 750;

/// Whether somebody may have to look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It went as it should.
    Normal,
    /// Somebody may have to look at it.
    Warning,
}

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The object.
    pub regarding: ObjectReference,
    /// The controller that tells it.
    pub reporter: &'static str,
    /// Whether somebody may have to look at it.
    pub severity: Severity,
    /// What happened, in one word.
    pub reason: String,
    /// What was done, in one word.
    pub action: String,
    /// What happened, in a sentence.
    pub note: String,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// A new event.
    Create(Box<Event>),
    /// An event has happened again.
    Series {
        /// Namespace of the event.
        namespace: String,
        /// Name of the event.
        name: String,
        /// How often it has happened by now.
        count: i32,
        /// When it happened last.
        last: MicroTime,
    },
}

/// What a flush gives.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Flushed {
    pub(super) writes: Vec<Write>,
    /// Occurrences that became part of another event.
    pub(super) merged: u64,
    /// Occurrences of objects that had too many.
    pub(super) dropped: u64,
}

/// What occurrences must have in common to be told as one event.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kin {
    uid: String,
    reporter: &'static str,
    severity: Severity,
    reason: String,
    action: String,
}

struct Pending {
    kin: Kin,
    first: Occurrence,
    more: u64,
    /// Whether all notes were the same.
    alike: bool,
}

/// An event that was written. There is one for nearly everything that has happened in the last minutes, so it holds no text.
struct Series {
    serial: u64,
    count: i32,
    /// Seconds since 1970.
    last_seen: i64,
    /// Seconds since 1970.
    last_written: i64,
}

/// How many events an object may still have.
struct Allowance {
    left: f32,
    /// Seconds since 1970.
    at: i64,
}

pub(super) struct Aggregator {
    instance: String,
    /// Makes names unique: random at start, then counting.
    serial: u64,
    pending: Vec<Pending>,
    /// By a fingerprint of everything that makes two events the same, note included.
    series: HashMap<u64, Series>,
    /// By a fingerprint of the object's uid.
    allowances: HashMap<u64, Allowance>,
    fingerprints: RandomState,
}

impl Aggregator {
    pub(super) fn new(instance: String, serial: u64) -> Self {
        let (series, allowances) = (HashMap::new(), HashMap::new());
        Self { instance, serial, pending: Vec::new(), series, allowances, fingerprints: RandomState::new() }
    }

    /// Takes in an occurrence. Nothing is written before the next flush.
    pub(super) fn record(&mut self, occurrence: Occurrence) {
        let kin = Kin {
            uid: occurrence.regarding.uid.clone().unwrap_or_default(),
            reporter: occurrence.reporter,
            severity: occurrence.severity,
            reason: occurrence.reason.clone(),
            action: occurrence.action.clone(),
        };
        match self.pending.iter_mut().find(|pending| pending.kin == kin) {
            Some(pending) => {
                pending.more += 1;
                pending.alike &= pending.first.note == occurrence.note;
            }
            None => self.pending.push(Pending { kin, first: occurrence, more: 0, alike: true }),
        }
    }

    /// Decides what is written of all that was taken in since the last flush.
    pub(super) fn flush(&mut self, now: Timestamp) -> Flushed {
        let second = now.as_second();
        self.expire(second);
        let mut flushed = Flushed::default();
        for pending in std::mem::take(&mut self.pending) {
            flushed.merged += pending.more;
            let note = note(&pending);
            let key = self.fingerprints.hash_one((&pending.kin, &note));
            if let Some(series) = self.series.get_mut(&key) {
                series.count = series.count.saturating_add(1);
                series.last_seen = second;
                if second - series.last_written >= SERIES_INTERVAL {
                    series.last_written = second;
                    let (namespace, name) = address(&pending.first.regarding, series.serial);
                    flushed.writes.push(Write::Series { namespace, name, count: series.count, last: MicroTime(now) });
                } else {
                    flushed.merged += 1;
                }
                continue;
            }
            if !self.allows(&pending.kin.uid, second) {
                flushed.dropped += 1;
                continue;
            }
            self.serial = self.serial.wrapping_add(1);
            self.series.insert(key, Series { serial: self.serial, count: 1, last_seen: second, last_written: second });
            flushed.writes.push(Write::Create(Box::new(self.event(pending.first, note, now))));
        }
        flushed
    }

    fn allows(&mut self, uid: &str, second: i64) -> bool {
        let key = self.fingerprints.hash_one(uid);
        let allowance = self.allowances.entry(key).or_insert(Allowance { left: BURST, at: second });
        #[allow(clippy::cast_precision_loss)] // a few minutes
        let gained = (second - allowance.at).max(0) as f32 / REFILL as f32;
        allowance.left = (allowance.left + gained).min(BURST);
        allowance.at = second;
        let allowed = allowance.left >= 1.0;
        if allowed {
            allowance.left -= 1.0;
        }
        allowed
    }

    /// Forgets what can no longer matter.
    fn expire(&mut self, second: i64) {
        self.series.retain(|_, series| second - series.last_seen < SERIES_LIFETIME);
        self.allowances.retain(|_, allowance| second - allowance.at < ALLOWANCE_LIFETIME);
    }

    fn event(&self, occurrence: Occurrence, note: String, now: Timestamp) -> Event {
        let (namespace, name) = address(&occurrence.regarding, self.serial);
        Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
            event_time: Some(MicroTime(now)),
            type_: Some(if occurrence.severity == Severity::Normal { "Normal" } else { "Warning" }.to_owned()),
            reason: Some(occurrence.reason),
            action: Some(occurrence.action),
            note: Some(note),
            regarding: Some(occurrence.regarding),
            reporting_controller: Some(occurrence.reporter.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

/// Namespace and name of an event about an object.
fn address(regarding: &ObjectReference, serial: u64) -> (String, String) {
    let object = regarding.name.as_deref().unwrap_or_default();
    (regarding.namespace.clone().unwrap_or_default(), format!("{object}.{serial:016x}"))
}

fn note(pending: &Pending) -> String {
    let tail = match pending.more {
        0 => String::new(),
        1 if pending.alike => " (twice)".to_owned(),
        more if pending.alike => format!(" ({} times)", more + 1),
        more => format!(" (and {more} more)"),
    };
    let room = MAX_NOTE.saturating_sub(tail.len());
    let note = &pending.first.note;
    let end = (0..=note.len().min(room)).rev().find(|end| note.is_char_boundary(*end)).unwrap_or_default();
    format!("{}{tail}", note.get(..end).unwrap_or_default())
}
