//! Names of new Pods, chosen so that nobody can make the same Pod twice.
//!
//! KubeRay lets the API server draw a random suffix. A second operator, or the same one after a crash, that does not yet see a Pod
//! then makes another one. Here the suffix looks as random, but follows from the cluster's uid, the group, a number, and the time in
//! steps of [`EPOCH_SECONDS`]: two operators that miss the same Pod choose the same name for it, and the slower one is told that it
//! already exists. A name that was used is not used again, because autoscalers remember names of Pods that are gone (RC-76).

use std::collections::HashSet;

use jiff::Timestamp;
use sha1::{Digest as _, Sha1};
use shared::names;

/// How long the same numbers give the same names. Longer than any delay between the creation of a Pod and the moment when another
/// operator sees it, and short enough that a restarted operator, which has forgotten which names were used, does not use them again.
pub const EPOCH_SECONDS: i64 = 20;

/// Number of the step in which `now` lies.
pub fn epoch(now: Timestamp) -> i64 {
    now.as_second().div_euclid(EPOCH_SECONDS)
}

/// Names drawn in the present step of time that turned out to be used, by a Pod that is gone again or by one of somebody else.
#[derive(Clone, Debug, Default)]
pub struct UsedNames {
    epoch: i64,
    names: HashSet<String>,
}

impl UsedNames {
    /// Forgets names of earlier steps: they are not drawn again.
    pub fn turn_to(&mut self, now: Timestamp) {
        if self.epoch != epoch(now) {
            *self = Self { epoch: epoch(now), names: HashSet::new() };
        }
    }

    /// Takes note of a name.
    pub fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    /// Whether a name was used.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// What suffixes are drawn from.
#[derive(Clone, Copy, Debug)]
pub struct Lottery<'a> {
    /// Uid of the cluster.
    pub cluster_uid: &'a str,
    /// Group: the worker group's name, or empty for the head.
    pub group: &'a str,
    /// See [`epoch`].
    pub epoch: i64,
}

impl Lottery<'_> {
    /// The five characters of a number.
    pub fn suffix(&self, number: u32) -> String {
        suffix(&[self.cluster_uid, self.group, &self.epoch.to_string(), &number.to_string()])
    }

    /// The first `count` names with this prefix that are not taken.
    pub fn free_names(&self, prefix: &str, count: usize, taken: impl Fn(&str) -> bool) -> Vec<String> {
        let mut drawn = HashSet::new();
        // Two numbers may give the same suffix, so more numbers than names are needed; an end is needed in any case.
        (0..u32::MAX)
            .map(|number| format!("{prefix}{}", self.suffix(number)))
            .filter(|name| !taken(name) && drawn.insert(name.clone()))
            .take(count)
            .collect()
    }
}

/// Name of the Pod of one host of a multi-host replica, whose own name was drawn.
pub fn host_name(prefix: &str, cluster_uid: &str, replica: &str, host: i32) -> String {
    format!("{prefix}{}", suffix(&[cluster_uid, replica, &host.to_string()]))
}

fn suffix(parts: &[&str]) -> String {
    let mut hash = Sha1::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    names::suffix(hash.finalize().get(..5).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> i64 {
        epoch(Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn two_operators_with_partial_views_choose_the_same_names() {
        let lottery = Lottery { cluster_uid: "u", group: "a", epoch: at(1_000) };
        let all = lottery.free_names("c-a-worker-", 3, |_| false);
        assert_eq!(all, lottery.free_names("c-a-worker-", 3, |_| false));
        // The other operator already sees any one of the three: for the two others it chooses the same names.
        for seen in &all {
            let rest = lottery.free_names("c-a-worker-", 2, |name| name == seen);
            assert!(rest.iter().all(|name| all.contains(name)), "{rest:?} of {all:?}");
        }
        // Number 1 was used and is gone: the next one is new.
        let next = lottery.free_names("c-a-worker-", 1, |name| all.iter().any(|used| used == name));
        assert!(!all.contains(&next[0]));
    }

    #[test]
    fn names_differ_between_clusters_groups_and_epochs_and_are_valid() {
        let draw = |cluster_uid, group, epoch| Lottery { cluster_uid, group, epoch }.suffix(0);
        let names = [draw("u", "a", 1), draw("v", "a", 1), draw("u", "b", 1), draw("u", "a", 2), draw("ua", "", 1)];
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| name.len() == 5 && name.bytes().all(|byte| names::SUFFIX_ALPHABET.contains(&byte))));
        assert_eq!((at(19), at(20), at(-1)), (0, 1, -1));
    }

    #[test]
    fn used_names_are_kept_for_one_step() {
        let second = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut used = UsedNames::default();
        used.turn_to(second(41));
        used.add("w");
        used.turn_to(second(59));
        assert!(used.contains("w") && !used.contains("v"));
        used.turn_to(second(60));
        assert!(!used.contains("w"));
    }

    #[test]
    fn no_name_is_drawn_twice() {
        let lottery = Lottery { cluster_uid: "u", group: "a", epoch: 7 };
        let names = lottery.free_names("p-", 5_000, |_| false);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 5_000);
    }

    #[test]
    fn hosts_of_a_replica_have_fixed_names() {
        assert_eq!(host_name("p-", "u", "a-xyzzy", 1), host_name("p-", "u", "a-xyzzy", 1));
        assert_ne!(host_name("p-", "u", "a-xyzzy", 1), host_name("p-", "u", "a-xyzzy", 0));
    }
}
