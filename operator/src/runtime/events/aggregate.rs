//! What becomes of a stream of occurrences: which are joined, which are repeats, which are too many. No I/O; time is an argument.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

/// Longest note that the API server takes, in bytes.
const MAX_NOTE: usize = 1024;
/// A repeat within this time counts up the first event instead of making another.
const SERIES_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// The count of repeats is written at most this often.
const SERIES_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// An object may have this many events at once, and then one more each [`REFILL`].
const BURST: f64 = 25.0;
/// Time after which an object may have one more event.
const REFILL: SignedDuration = SignedDuration::from_secs(30);

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

struct Series {
    namespace: String,
    name: String,
    count: i32,
    last_seen: Timestamp,
    last_written: Timestamp,
}

struct Allowance {
    left: f64,
    at: Timestamp,
}

pub(super) struct Aggregator {
    instance: String,
    /// Makes names unique: random at start, then counting.
    serial: u64,
    pending: Vec<Pending>,
    series: HashMap<(Kin, String), Series>,
    allowances: HashMap<String, Allowance>,
}

impl Aggregator {
    pub(super) fn new(instance: String, serial: u64) -> Self {
        Self { instance, serial, pending: Vec::new(), series: HashMap::new(), allowances: HashMap::new() }
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
        self.expire(now);
        let mut flushed = Flushed::default();
        for pending in std::mem::take(&mut self.pending) {
            flushed.merged += pending.more;
            let note = note(&pending);
            let key = (pending.kin.clone(), note.clone());
            if let Some(series) = self.series.get_mut(&key) {
                series.count = series.count.saturating_add(1);
                series.last_seen = now;
                if now.duration_since(series.last_written) >= SERIES_INTERVAL {
                    series.last_written = now;
                    let (namespace, name) = (series.namespace.clone(), series.name.clone());
                    flushed.writes.push(Write::Series { namespace, name, count: series.count, last: MicroTime(now) });
                } else {
                    flushed.merged += 1;
                }
                continue;
            }
            if !self.allows(&pending.kin.uid, now) {
                flushed.dropped += 1;
                continue;
            }
            let event = self.event(pending.first, note, now);
            let series = Series {
                namespace: event.metadata.namespace.clone().unwrap_or_default(),
                name: event.metadata.name.clone().unwrap_or_default(),
                count: 1,
                last_seen: now,
                last_written: now,
            };
            self.series.insert(key, series);
            flushed.writes.push(Write::Create(Box::new(event)));
        }
        flushed
    }

    fn allows(&mut self, uid: &str, now: Timestamp) -> bool {
        let allowance = self.allowances.entry(uid.to_owned()).or_insert(Allowance { left: BURST, at: now });
        let gained = now.duration_since(allowance.at).as_secs_f64() / REFILL.as_secs_f64();
        allowance.left = (allowance.left + gained.max(0.0)).min(BURST);
        allowance.at = now;
        let allowed = allowance.left >= 1.0;
        if allowed {
            allowance.left -= 1.0;
        }
        allowed
    }

    /// Forgets what can no longer matter.
    fn expire(&mut self, now: Timestamp) {
        self.series.retain(|_, series| now.duration_since(series.last_seen) < SERIES_LIFETIME);
        let full = REFILL * i32::from(BURST as u8);
        self.allowances.retain(|_, allowance| now.duration_since(allowance.at) < full);
    }

    fn event(&mut self, occurrence: Occurrence, note: String, now: Timestamp) -> Event {
        self.serial = self.serial.wrapping_add(1);
        let object = occurrence.regarding.name.as_deref().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{object}.{:016x}", self.serial)),
                namespace: occurrence.regarding.namespace.clone(),
                ..ObjectMeta::default()
            },
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
