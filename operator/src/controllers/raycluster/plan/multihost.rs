//! Worker groups whose replicas consist of several Pods that live and die together (RC-185..RC-190, C-41).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use shared::names;

use super::group::{DOUBLE_WITHIN, GroupPlan, GroupView, free_indices, is_due};
use super::names::host_name;
use super::{NewWorker, Why};
use crate::build::pod::Replica;
use crate::build::resources::{desired_replicas, hosts_per_replica};
use crate::controllers::raycluster::memory::GroupMemory;
use crate::controllers::raycluster::pods::{ClusterPod, Fare};

/// A replica that is younger than this may still be in the making by another operator.
const IN_THE_MAKING: SignedDuration = SignedDuration::from_secs(30);

/// A replica that exists at least in part.
struct Unit<'a> {
    name: &'a str,
    members: Vec<&'a ClusterPod>,
}

/// What is to be done with a replica.
enum Verdict {
    /// All hosts are there.
    Whole,
    /// These hosts were never made.
    Complete(Vec<i32>),
    /// All of it goes, for this reason.
    Goes(Why),
    /// Nothing but Pods that are being deleted.
    Leaving,
}

impl Unit<'_> {
    fn index(&self) -> Option<i32> {
        self.members.iter().find_map(|pod| pod.replica_index())
    }

    fn youngest(&self) -> Timestamp {
        self.members.iter().map(|pod| pod.created()).max().unwrap_or(Timestamp::MIN)
    }

    fn worst(&self) -> Fare {
        self.members.iter().map(|pod| pod.fare()).min().unwrap_or(Fare::Ended)
    }

    fn missing_hosts(&self, hosts: i32) -> Vec<i32> {
        let present: BTreeSet<i32> = self.members.iter().filter_map(|pod| pod.host_index()).collect();
        (0..hosts).filter(|host| !present.contains(host)).collect()
    }

    /// Hosts that were never made are made; but a replica that lost one goes as a whole, because its work is lost (RC-186).
    fn judge(&self, view: &GroupView<'_>, memory: &mut GroupMemory, plan: &mut GroupPlan, listed: &BTreeSet<&str>) -> Verdict {
        let live = || self.members.iter().filter(|pod| pod.is_live());
        if live().next().is_none() {
            return Verdict::Leaving;
        }
        if view.group.suspend == Some(true) {
            return Verdict::Goes(Why::GroupSuspended);
        }
        if live().any(|pod| listed.contains(pod.name())) {
            return Verdict::Goes(Why::Listed);
        }
        if self.members.iter().any(|pod| pod.is_terminating()) {
            return Verdict::Goes(Why::ReplicaBroken);
        }
        let ended: Vec<_> = live().filter(|pod| pod.fare() == Fare::Ended).collect();
        if !ended.is_empty() {
            // Every ended member takes part in the wave; the replica goes with the first that is due.
            let due = ended.iter().filter(|pod| is_due(pod, memory, plan, view.now)).count() > 0;
            return if due { Verdict::Goes(Why::Ended) } else { Verdict::Whole };
        }
        let missing = self.missing_hosts(hosts_per_replica(view.group));
        if missing.is_empty() {
            return Verdict::Whole;
        }
        let had = memory.hosts.get(self.name);
        let lost_one = missing.iter().any(|host| had.is_some_and(|had| had.contains(host)));
        let unfinished = memory.refusal.is_some()
            || view.now.duration_since(self.youngest()) < IN_THE_MAKING
            || self.members.iter().all(|pod| pod.fare() == Fare::Pending);
        if unfinished && !lost_one { Verdict::Complete(missing) } else { Verdict::Goes(Why::ReplicaBroken) }
    }
}

/// Plans a group.
pub(super) fn plan(view: &GroupView<'_>, memory: &mut GroupMemory) -> GroupPlan {
    let mut plan = GroupPlan::default();
    let wanted = usize::try_from(desired_replicas(view.group)).unwrap_or_default();
    let listed = view.listed();
    let mut units: BTreeMap<&str, Unit<'_>> = BTreeMap::new();
    let mut loose: Vec<&ClusterPod> = Vec::new();
    for pod in view.members() {
        match pod.replica_name() {
            "" => loose.push(pod),
            name => units.entry(name).or_insert_with(|| Unit { name, members: Vec::new() }).members.push(pod),
        }
    }

    let mut kept: Vec<(&Unit<'_>, Vec<i32>)> = Vec::new();
    // Replicas that keep their place until they are gone.
    let mut leaving = 0;
    for unit in units.values() {
        let verdict = unit.judge(view, memory, &mut plan, &listed);
        memory.hosts.entry(unit.name.to_owned()).or_default().extend(unit.members.iter().filter_map(|pod| pod.host_index()));
        match verdict {
            Verdict::Whole => kept.push((unit, Vec::new())),
            Verdict::Complete(missing) => kept.push((unit, missing)),
            Verdict::Goes(why) => {
                leaving += 1;
                remove(unit, why, &mut plan);
            }
            Verdict::Leaving => leaving += usize::from(unit.members.iter().any(|pod| pod.is_vacating(view.now))),
        }
    }
    leaving += remove_doubles(&mut kept, &mut plan, view);
    if view.chooses_victims && kept.len() > wanted {
        kept.sort_by_key(|(unit, missing)| (missing.is_empty(), unit.worst(), Reverse((unit.youngest(), unit.name))));
        for (victim, _) in kept.drain(..kept.len() - wanted) {
            leaving += 1;
            remove(victim, Why::Surplus, &mut plan);
        }
    }
    if wanted > kept.len() {
        view.members().filter_map(ClusterPod::vacates_by).filter(|time| *time > view.now).for_each(|time| plan.wake_at(time));
    }

    let missing = wanted.saturating_sub(kept.len() + leaving);
    let incomplete = kept.iter().any(|(_, missing)| !missing.is_empty());
    if missing > 0 || incomplete {
        match memory.refused_until(view.now) {
            Some(until) => plan.wake_at(until),
            None => plan.create = new_workers(view, &kept, &units, missing),
        }
    } else {
        memory.refusal = None;
    }
    plan.healthy = kept.len() >= wanted && !incomplete && kept.iter().all(|(unit, _)| unit.worst() == Fare::Ready);
    // Pods of the time before the group had multi-host replicas go once their successors work.
    if plan.healthy && view.chooses_victims || view.group.suspend == Some(true) {
        loose.iter().filter(|pod| pod.is_live()).for_each(|pod| plan.delete(pod, Why::Surplus));
    }
    plan
}

fn remove(unit: &Unit<'_>, why: Why, plan: &mut GroupPlan) {
    unit.members.iter().filter(|pod| pod.is_live()).for_each(|pod| plan.delete(pod, why));
}

/// Of two replicas with one index, which two operators made at the same time, the younger one goes. Answers how many go.
fn remove_doubles<'a>(kept: &mut Vec<(&Unit<'a>, Vec<i32>)>, plan: &mut GroupPlan, view: &GroupView<'_>) -> usize {
    let before = kept.len();
    let mut taken = BTreeSet::new();
    kept.sort_by_key(|(unit, _)| (unit.youngest(), unit.name));
    kept.retain(|(unit, _)| {
        let Some(index) = unit.index() else { return true };
        let stays = taken.insert(index) || view.now.duration_since(unit.youngest()) >= DOUBLE_WITHIN;
        if !stays {
            remove(unit, Why::Double, plan);
        }
        stays
    });
    before - kept.len()
}

/// Hosts that incomplete replicas lack, then whole new replicas.
fn new_workers(view: &GroupView<'_>, kept: &[(&Unit<'_>, Vec<i32>)], units: &BTreeMap<&str, Unit<'_>>, count: usize) -> Vec<NewWorker> {
    let (prefix, hosts) = (view.prefix(), hosts_per_replica(view.group));
    let pod = |name: &str, index: i32, host: i32| NewWorker {
        name: host_name(&prefix, view.cluster_uid, name, host),
        replica: Some(Replica { index, name: name.to_owned(), host_index: host }),
    };
    let mut all: Vec<NewWorker> =
        kept.iter().flat_map(|(unit, missing)| missing.iter().map(|host| pod(unit.name, unit.index().unwrap_or(0), *host))).collect();
    let present: BTreeSet<&str> = view.pods.iter().map(ClusterPod::name).collect();
    let listed = view.listed();
    let is_taken = |name: &str| {
        let host_taken = |host| {
            let host = host_name(&prefix, view.cluster_uid, name, host);
            present.contains(host.as_str()) || listed.contains(host.as_str()) || view.used.contains(&host)
        };
        units.contains_key(name) || (0..hosts).any(host_taken)
    };
    let names = view.lottery().free_names(&replica_prefix(&view.group.group_name), count, is_taken);
    let used: BTreeSet<i32> = units.values().filter_map(Unit::index).collect();
    for (name, index) in names.iter().zip(free_indices(&used)) {
        all.extend((0..hosts).map(|host| pod(name, index, host)));
    }
    all
}

/// What names of the group's replicas begin with: the group's name, cut so that the whole is a label value (RC-15).
fn replica_prefix(group: &str) -> String {
    let whole = names::check_label(&format!("{group}-xxxxx"));
    whole.strip_suffix("xxxxx").unwrap_or_default().to_owned()
}
