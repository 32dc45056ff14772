//! What is remembered of a cluster from one look to the next. Nothing of it is stored: after a restart it is empty, which costs at
//! most an early retry or a repeated event, never a wrong decision.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::notes::Note;
use super::plan::Verdict;
use super::plan::names::UsedNames;
use super::pods::{ClusterPod, Trouble};

/// First and longest delay of a retry. Doubles each time.
const DELAYS: (SignedDuration, SignedDuration) = (SignedDuration::from_millis(500), SignedDuration::from_secs(60));
/// A Pod that lived for this long was healthy: the next failure counts as the first.
const HEALTHY: SignedDuration = SignedDuration::from_secs(60);
/// After this long without a failure the next one counts as the first.
const FORGET: SignedDuration = SignedDuration::from_secs(120);

/// Delay after the `count`th failure in a row (1 = the first).
fn delay(count: u32) -> SignedDuration {
    let (first, longest) = DELAYS;
    first.saturating_mul(1 << count.saturating_sub(1).min(16)).min(longest)
}

fn later(now: Timestamp, delay: SignedDuration) -> Timestamp {
    now.saturating_add(delay).unwrap_or(now)
}

/// What is remembered of one cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterMemory {
    /// The head.
    pub head: GroupMemory,
    /// The worker groups by name.
    pub groups: BTreeMap<String, Box<GroupMemory>>,
    /// Names that new Pods cannot have.
    pub names: UsedNames,
    /// What was said in events.
    pub told: Told,
    /// What the rules said, with the version of the object that they were asked about.
    pub verdict: Option<((i64, u64), Verdict)>,
    /// Objects without a cache that were looked at, with a mark of what they were compared with, and when.
    pub checked: BTreeMap<&'static str, (u64, Timestamp)>,
    /// Since when something new in the status waits to be written.
    pub unwritten_since: Option<Timestamp>,
}

impl ClusterMemory {
    /// Memory of a worker group.
    pub fn group(&mut self, name: &str) -> &mut GroupMemory {
        self.groups.entry(name.to_owned()).or_default()
    }

    /// Drops what is known of groups and Pods that no longer exist.
    pub fn forget_gone(&mut self, groups: &[&str], pods: &[ClusterPod]) {
        self.groups.retain(|name, _| groups.contains(&name.as_str()));
        let uids: BTreeSet<&str> = pods.iter().map(ClusterPod::uid).collect();
        let replicas: BTreeSet<&str> = pods.iter().map(ClusterPod::replica_name).collect();
        for group in self.groups.values_mut().map(|group| &mut **group).chain([&mut self.head]) {
            group.crashes.release.retain(|uid, _| uids.contains(uid.as_str()));
            group.hosts.retain(|replica, _| replicas.contains(replica.as_str()));
            group.uncertain.retain(|name| !pods.iter().any(|pod| pod.name() == name));
        }
    }

    /// The first refusal that has not been overcome, the head's before those of workers.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.all().find_map(|group| group.refusal.as_ref())
    }

    /// When the first refused Pod is to be tried again. A time that has passed says nothing: the Pod was not tried because something
    /// else has to happen first, and that wakes the cluster.
    pub fn retry_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.all().filter_map(|group| group.refused_until(now)).min()
    }

    /// Drops what says nothing, so that a cluster at rest costs next to no memory.
    pub fn compact(&mut self) {
        self.groups.retain(|_, group| !group.is_blank());
    }

    /// Pods are no longer wanted, so it does not matter that they were refused.
    pub fn drop_refusals(&mut self) {
        self.groups.values_mut().map(|group| &mut **group).chain([&mut self.head]).for_each(|group| group.refusal = None);
    }

    /// What there is to say about refused Pods, as long as they are.
    pub fn refusal_notes(&self) -> Vec<Note> {
        let head = self.head.refusal.as_ref().map(|refusal| ("FailedToCreateHeadPod", "refused head".to_owned(), refusal));
        let workers = self
            .groups
            .iter()
            .filter_map(|(name, group)| Some(("FailedToCreateWorkerPod", format!("refused worker {name}"), group.refusal.as_ref()?)));
        head.into_iter()
            .chain(workers)
            .map(|(reason, topic, refusal)| Note::warning(reason, "Create", refusal.message.clone()).about(&topic))
            .collect()
    }

    /// The last cause of a crash in a group that has not recovered, the head's before those of workers.
    pub fn last_crash(&self) -> Option<&Trouble> {
        self.all().find_map(|group| group.crashes.cause.as_ref())
    }

    fn all(&self) -> impl Iterator<Item = &GroupMemory> {
        std::iter::once(&self.head).chain(self.groups.values().map(|group| &**group))
    }
}

/// What is remembered of the head or of one worker group.
#[derive(Clone, Debug, Default)]
pub struct GroupMemory {
    /// Pods that ended and wait for their replacement.
    pub crashes: CrashLoop,
    /// The API server's last refusal of a new Pod, until one is admitted.
    pub refusal: Option<Refusal>,
    /// Names of Pods that were to be made and of which nobody knows whether they were: they are tried first.
    pub uncertain: Vec<String>,
    /// Hosts that each multi-host replica has had, so that one that died is told from one that was never made.
    pub hosts: HashMap<String, BTreeSet<i32>>,
}

impl GroupMemory {
    /// Until when no Pod is to be created, because the last one was refused.
    pub fn refused_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.refusal.as_ref().map(|refusal| refusal.retry_at).filter(|until| now < *until)
    }

    /// Whether there is nothing that matters later.
    fn is_blank(&self) -> bool {
        let Self { crashes, refusal, uncertain, hosts } = self;
        crashes.wave_release.is_none() && refusal.is_none() && uncertain.is_empty() && hosts.is_empty()
    }
}

/// Slows down the replacement of Pods that end soon after they were made (C-29).
///
/// Pods that end at about the same time form a wave and are replaced at the same time; each wave that follows soon after the last
/// one waits twice as long. Until then the ended Pod stays, so that its logs can be read.
#[derive(Clone, Debug, Default)]
pub struct CrashLoop {
    wave: u32,
    wave_release: Option<Timestamp>,
    release: HashMap<String, Timestamp>,
    /// Why the last Pod ended.
    cause: Option<Trouble>,
}

impl CrashLoop {
    /// When an ended Pod is to be replaced; the same answer for a Pod each time.
    pub fn release(&mut self, pod: &ClusterPod, now: Timestamp) -> Timestamp {
        if let Some(known) = self.release.get(pod.uid()) {
            return *known;
        }
        let release = match self.wave_release {
            Some(release) if now < release => release,
            last => {
                let calm = last.is_none_or(|last| now.duration_since(last) >= FORGET) || now.duration_since(pod.created()) >= HEALTHY;
                self.wave = if calm { 1 } else { self.wave.saturating_add(1) };
                later(now, delay(self.wave))
            }
        };
        self.wave_release = Some(release);
        self.release.insert(pod.uid().to_owned(), release);
        self.cause = super::pods::trouble(pod.view());
        release
    }

    /// Every Pod of the group is there and works.
    pub fn recovered(&mut self) {
        self.cause = None;
    }
}

/// The API server's refusal of a Pod: quota, admission, or an error of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Refusals in a row.
    pub count: u32,
    /// When to try again.
    pub retry_at: Timestamp,
    /// Reason of condition `ReplicaFailure` (RC-155).
    pub reason: &'static str,
    /// What the API server said.
    pub message: String,
}

impl Refusal {
    /// The refusal that follows on `last`.
    pub fn after(last: Option<&Self>, reason: &'static str, message: String, now: Timestamp) -> Self {
        let count = last.map_or(0, |last| last.count).saturating_add(1);
        Self { count, retry_at: later(now, delay(count)), reason, message }
    }
}

/// What was said in events, so that the same thing is said again only after it changed.
#[derive(Clone, Debug, Default)]
pub struct Told(BTreeMap<String, String>);

impl Told {
    /// Whether `text` is news on this topic. It counts as told afterwards.
    pub fn is_news(&mut self, topic: &str, text: &str) -> bool {
        if self.0.get(topic).is_some_and(|told| told == text) {
            return false;
        }
        self.0.insert(topic.to_owned(), text.to_owned());
        true
    }

    /// The topic is over: the same text would be news again.
    pub fn over(&mut self, topic: &str) {
        self.0.remove(topic);
    }

    /// Keeps the topics that pass.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|topic, _| keep(topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::raycluster::testing::{P, after, at};

    #[test]
    fn delays_double_up_to_a_minute() {
        let millis: Vec<i128> = (1..=9).map(|count| delay(count).as_millis()).collect();
        assert_eq!(millis, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(delay(u32::MAX), DELAYS.1);
    }

    #[test]
    fn pods_that_end_together_are_one_wave() {
        let mut loop_ = CrashLoop::default();
        let pod = |name: &str, created| P::worker(name, "a").failed().created(created).pod();
        let first = loop_.release(&pod("w1", at(-3)), at(0));
        assert_eq!(first, after(at(0), 500));
        assert_eq!(loop_.release(&pod("w2", at(-3)), after(at(0), 400)), first);
        assert_eq!(loop_.release(&pod("w1", at(-3)), at(9)), first, "the answer for a Pod stays");
        // Their successors end, too.
        assert_eq!(loop_.release(&pod("w3", at(1)), at(2)), at(3));
        assert_eq!(loop_.release(&pod("w4", at(3)), at(4)), at(6));
        // One that was healthy for long, and the first failure after a quiet time.
        assert_eq!(loop_.release(&pod("w5", at(6)), at(70)), after(at(70), 500));
        assert_eq!(loop_.release(&pod("w6", at(71)), at(72)), at(73));
        assert_eq!(loop_.release(&pod("w7", at(190)), at(200)), after(at(200), 500));
    }

    #[test]
    fn the_same_thing_is_told_once() {
        let mut told = Told::default();
        assert!(told.is_news("quota", "1 of 1"));
        assert!(!told.is_news("quota", "1 of 1"));
        assert!(told.is_news("quota", "2 of 2"));
        let note = Note::warning("Failed", "Create", "2 of 2").about("quota");
        assert_eq!(crate::controllers::raycluster::notes::news(vec![note.clone()], &mut told), []);
        assert_eq!(crate::controllers::raycluster::notes::news(vec![Note::normal("Made", "Create", "x")], &mut told).len(), 1);
        assert_eq!(crate::controllers::raycluster::notes::news(vec![note], &mut told).len(), 1, "it was over in between");
    }
}
