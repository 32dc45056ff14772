//! Which job is to be asked for, and when. No I/O, no waiting; time is an argument.
//!
//! A question that is new is due at once. After that a job is asked for every three seconds, and less and less often the longer it
//! has not changed: a job that has run for an hour may be found ended half a minute late, one that has run for a minute may not.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    inquiry::{Answer, Inquiry, Purpose, Reply},
    job::Endpoint,
};
use crate::runtime::key::ObjectKey;

/// Time between two questions at first, and the least there is.
const QUICK: Duration = Duration::from_secs(3);
/// The same while Ray is about to take or stop a job.
const IMMINENT: Duration = Duration::from_secs(1);
/// The most there is.
const SLOW: Duration = Duration::from_secs(15);
/// The most there is for a job whose end is announced by something else.
const SLOWEST: Duration = Duration::from_secs(30);
/// The most there is while nothing answers or Ray does not know the job.
const SLOW_FAULT: Duration = Duration::from_secs(10);
/// A job that has not changed for a time is asked for again after this part of it.
const PART: u32 = 20;
/// From how many jobs of one cluster on they are asked for together.
const TOGETHER: usize = 3;
/// Jobs of one cluster that are due within this time are asked for together.
const AHEAD: Duration = Duration::from_secs(2);
/// How long a cluster whose list of jobs cannot be had is asked for single jobs.
const UNLISTED: Duration = Duration::from_secs(300);

/// Jobs to be asked for now, all at one dashboard.
#[derive(Debug)]
pub(super) struct Batch {
    /// Whether one call for the list of all jobs is to answer them all.
    pub(super) together: bool,
    /// Who asks what.
    pub(super) questions: Vec<(ObjectKey, Arc<Inquiry>)>,
}

struct Entry {
    inquiry: Arc<Inquiry>,
    /// When it is due, `None` while nobody needs to ask.
    due: Option<Instant>,
    asking: bool,
    /// When the last reply came that differed from the one before.
    changed: Instant,
    answer: Option<Answer>,
}

/// All inquiries.
#[derive(Default)]
pub(super) struct Agenda {
    entries: HashMap<ObjectKey, Entry>,
    by_time: BTreeSet<(Instant, ObjectKey)>,
    by_endpoint: HashMap<Endpoint, HashSet<ObjectKey>>,
    unlisted: HashMap<Endpoint, Instant>,
}

impl Agenda {
    /// Replaces what is asked for `key`; `None` ends it. Returns whether something is now due earlier than it was.
    pub(super) fn set(&mut self, key: &ObjectKey, inquiry: Option<Inquiry>, now: Instant) -> bool {
        let Some(inquiry) = inquiry else {
            self.remove(key);
            return false;
        };
        if let Some(entry) = self.entries.get_mut(key) {
            if *entry.inquiry == inquiry {
                return false;
            }
            if entry.inquiry.endpoint == inquiry.endpoint && entry.inquiry.job_id == inquiry.job_id {
                // The same job: what is known of it stays known, under the question it answered.
                entry.inquiry = Arc::new(inquiry);
                let asking = entry.asking;
                if !asking {
                    self.plan(key, Some(now));
                }
                return !asking;
            }
            self.remove(key);
        }
        self.by_endpoint.entry(inquiry.endpoint.clone()).or_default().insert(key.clone());
        self.entries.insert(key.clone(), Entry { inquiry: Arc::new(inquiry), due: None, asking: false, changed: now, answer: None });
        self.plan(key, Some(now));
        true
    }

    /// The last answer for `key`.
    pub(super) fn answer(&self, key: &ObjectKey) -> Option<Answer> {
        self.entries.get(key)?.answer.clone()
    }

    /// Number of inquiries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When the next question is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Takes up to `places` batches that are due. They count as being asked until [`Agenda::record`].
    pub(super) fn take(&mut self, places: usize, now: Instant) -> Vec<Batch> {
        self.unlisted.retain(|_, until| *until > now);
        let mut batches = Vec::new();
        while batches.len() < places
            && let Some((due, key)) = self.by_time.first().cloned()
            && due <= now
        {
            let Some(inquiry) = self.entries.get(&key).map(|entry| Arc::clone(&entry.inquiry)) else {
                self.by_time.remove(&(due, key));
                continue;
            };
            let companions = self.companions(&key, &inquiry, now);
            let together = companions.len() + 1 >= TOGETHER;
            let keys = if together { companions } else { Vec::new() };
            let questions: Vec<_> =
                std::iter::once(key).chain(keys).filter_map(|key| self.begin(&key).map(|inquiry| (key, inquiry))).collect();
            batches.push(Batch { together, questions });
        }
        batches
    }

    /// Takes in the reply to `inquiry`, asked at `asked`. Returns whether it says something that the reconciler does not know yet.
    pub(super) fn record(&mut self, key: &ObjectKey, inquiry: &Arc<Inquiry>, reply: Reply, asked: Timestamp, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        if entry.inquiry.endpoint != inquiry.endpoint || entry.inquiry.job_id != inquiry.job_id {
            return false; // about a job that is no longer asked for; the new question has its own turn
        }
        entry.asking = false;
        let before = entry.answer.take();
        let since = before.as_ref().filter(|old| old.reply.same_kind(&reply)).map_or(asked, |old| old.since);
        let changed = match before.as_ref().map(|old| &old.reply) {
            // The words of a failure change all the time; that it lasts is known.
            Some(Reply::NoAnswer(_)) => !matches!(reply, Reply::NoAnswer(_)),
            Some(old) => *old != reply,
            None => true,
        };
        if changed {
            entry.changed = now;
        }
        let news = changed || before.is_some_and(|old| old.inquiry != *inquiry);
        let quiet = now.saturating_duration_since(entry.changed);
        let delay = if entry.inquiry == *inquiry { pace(inquiry, &reply, quiet) } else { Some(Duration::ZERO) };
        entry.answer = Some(Answer { inquiry: Arc::clone(inquiry), reply, asked, since });
        self.plan(key, delay.map(|delay| now + spread(key, delay)));
        news
    }

    /// The list of jobs of a cluster cannot be had: ask for single jobs for a while.
    pub(super) fn unlistable(&mut self, endpoint: &Endpoint, now: Instant) {
        self.unlisted.insert(endpoint.clone(), now + UNLISTED);
    }

    /// Jobs of the same cluster that may be asked for along with `key`: those that are only followed and are due soon.
    fn companions(&self, key: &ObjectKey, inquiry: &Inquiry, now: Instant) -> Vec<ObjectKey> {
        if inquiry.purpose != Purpose::Follow || self.unlisted.contains_key(&inquiry.endpoint) {
            return Vec::new();
        }
        let horizon = now + AHEAD;
        let suits =
            |other: &Entry| other.inquiry.purpose == Purpose::Follow && !other.asking && other.due.is_some_and(|due| due <= horizon);
        let others = self.by_endpoint.get(&inquiry.endpoint).into_iter().flatten().filter(|other| *other != key);
        others.filter(|other| self.entries.get(*other).is_some_and(suits)).cloned().collect()
    }

    fn begin(&mut self, key: &ObjectKey) -> Option<Arc<Inquiry>> {
        self.plan(key, None);
        let entry = self.entries.get_mut(key)?;
        entry.asking = true;
        Some(Arc::clone(&entry.inquiry))
    }

    fn plan(&mut self, key: &ObjectKey, due: Option<Instant>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(old) = std::mem::replace(&mut entry.due, due) {
            self.by_time.remove(&(old, key.clone()));
        }
        if let Some(due) = due {
            self.by_time.insert((due, key.clone()));
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.plan(key, None);
        let Some(entry) = self.entries.remove(key) else { return };
        if let Some(members) = self.by_endpoint.get_mut(&entry.inquiry.endpoint) {
            members.remove(key);
            if members.is_empty() {
                self.by_endpoint.remove(&entry.inquiry.endpoint);
            }
        }
    }
}

/// Time until the next question after a reply that has been the same for `quiet`; `None` if there is nothing left to ask.
fn pace(inquiry: &Inquiry, reply: &Reply, quiet: Duration) -> Option<Duration> {
    let part = quiet / PART;
    Some(match reply {
        Reply::Job(info) if info.is_terminal() => return None,
        Reply::Refused(_) => return None,
        Reply::Submitted | Reply::StopSent => IMMINENT,
        Reply::Job(_) => part.clamp(QUICK, if inquiry.announced { SLOWEST } else { SLOW }),
        Reply::NotFound | Reply::NoAnswer(_) => part.clamp(QUICK, SLOW_FAULT),
    })
}

/// Spreads jobs that began together over a tenth of the time.
fn spread(key: &ObjectKey, delay: Duration) -> Duration {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let tenth = u32::try_from(hasher.finish() % 100).unwrap_or_default();
    delay.saturating_sub(delay * tenth / 1000)
}
