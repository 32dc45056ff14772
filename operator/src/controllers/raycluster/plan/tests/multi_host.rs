//! Replicas of several Pods.

use std::collections::BTreeMap;

use serde_json::json;

use crate::controllers::raycluster::plan::Why;
use crate::controllers::raycluster::testing::*;

fn hosts(replicas: i32, hosts: i32) -> serde_json::Value {
    with(group("a", replicas), json!({ "numOfHosts": hosts }))
}

fn replicas(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut replicas: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in world.pods.values().map(P::pod).filter(|pod| pod.is_worker_of("a")) {
        replicas.entry(pod.replica_name().to_owned()).or_default().push(pod.name().to_owned());
    }
    replicas
}

#[test]
fn rc_189_whole_replicas_are_made() {
    let mut world = World::new(cluster(&[hosts(2, 4)], json!({})));
    world.settle();
    let all = replicas(&world);
    assert_eq!(all.values().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
    assert!(all.keys().all(|name| name.starts_with("a-") && name.len() == 7));
    let mut places: Vec<(i32, i32)> =
        world.pods.values().map(P::pod).filter_map(|pod| Some((pod.replica_index()?, pod.host_index()?))).collect();
    places.sort_unstable();
    assert_eq!(places, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]);
}

#[test]
fn c_41a_a_replica_that_lost_a_pod_goes_and_comes_as_a_whole() {
    for grace in [false, true] {
        let mut world = World::new(cluster(&[hosts(2, 4)], json!({})));
        world.settle();
        world.now = at(100);
        world.settle();
        let before = replicas(&world);
        let (mine, other) = (before.keys().next().unwrap().clone(), before.keys().last().unwrap().clone());
        let victim = before[&mine][1].clone();
        let pod = world.pods.remove(&victim).unwrap();
        if grace {
            world.pods.insert(victim.clone(), pod.terminating(at(130)));
        }
        world.step();
        assert_eq!(world.deleted.len(), 3, "its three siblings go");
        assert!(world.deleted.iter().all(|name| before[&mine].contains(name)));
        world.pods.remove(&victim);
        world.settle();
        let after = replicas(&world);
        assert_eq!(after.values().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(after[&other], before[&other]);
        assert!(!after.contains_key(&mine));
    }
}

#[test]
fn c_41b_a_listed_pod_takes_its_replica_along() {
    let mut world = World::new(cluster(&[hosts(2, 4)], json!({ "enableInTreeAutoscaling": true })));
    world.settle();
    let before = replicas(&world);
    let (mine, other) = (before.keys().next().unwrap().clone(), before.keys().last().unwrap().clone());
    world.set_group(0, json!({ "replicas": 1, "scaleStrategy": { "workersToDelete": [before[&mine][2]] } }));
    world.settle();
    assert_eq!(replicas(&world).keys().collect::<Vec<_>>(), [&other]);
    // Names of a dead replica never come back, listed as they still are.
    world.memory = Default::default();
    world.set_group(0, json!({ "replicas": 2 }));
    world.settle();
    assert_eq!(world.deleted.len(), 4);
    assert_eq!(replicas(&world).len(), 2);
}

#[test]
fn c_41c_a_quota_that_allows_half_a_replica_makes_no_endless_make_and_break() {
    let mut world = World::new(cluster(&[hosts(2, 4)], json!({})));
    world.quota = 7;
    world.run(120);
    assert_eq!(world.made.len(), 6, "what was made stays");
    assert!(world.deleted.is_empty());
    world.quota = 20;
    world.run(120);
    assert_eq!(replicas(&world).values().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
    assert_eq!(world.made.len(), 8);
}

#[test]
fn rc_187_an_ended_pod_takes_its_replica_along() {
    let mut world = World::new(cluster(&[hosts(2, 2)], json!({})));
    world.settle();
    let before = replicas(&world);
    let mine = before.keys().next().unwrap().clone();
    let ended = before[&mine][0].clone();
    let pod = world.pods[&ended].clone().failed();
    world.pods.insert(ended, pod);
    world.run(2);
    assert_eq!(world.deleted.len(), 2);
    assert!(world.deleted.iter().all(|name| before[&mine].contains(name)));
    assert_eq!(replicas(&world).len(), 2);
}

#[test]
fn a_replica_in_the_making_is_completed_and_an_old_one_with_a_gap_goes() {
    let member = |host: i32, age: i64| P::worker(&format!("w{host}"), "a").replica("a-xyzzy", 0, host).created(at(-age));
    let head = P::head("h");
    // The operator stopped in the middle, a moment ago, or the Pods have not started: the missing host is made.
    for pods in [[head.clone(), member(0, 5)], [head.clone(), member(0, 500).pending()]] {
        let plan = plan_once(cluster(&[hosts(1, 2)], json!({})), &pods);
        assert_eq!(going(&plan), []);
        let missing: Vec<(String, i32)> =
            coming(&plan).iter().map(|worker| worker.replica.as_ref().unwrap()).map(|at| (at.name.clone(), at.host_index)).collect();
        assert_eq!(missing, [("a-xyzzy".to_owned(), 1)]);
    }
    let plan = plan_once(cluster(&[hosts(1, 2)], json!({})), &[head, member(0, 500)]);
    assert_eq!(going(&plan), [("w0".to_owned(), Why::ReplicaBroken)]);
    assert!(plan.pods.needs_live_view());
}

#[test]
fn rc_182_of_several_replicas_the_least_useful_goes() {
    let member = |replica: &str, index: i32, host: i32, age: i64| {
        P::worker(&format!("{replica}-{host}"), "a").replica(replica, index, host).created(at(-age))
    };
    let pods = [
        P::head("h"),
        member("a-old", 0, 0, 900),
        member("a-old", 0, 1, 900),
        member("a-bad", 1, 0, 950).unready(),
        member("a-bad", 1, 1, 950),
        member("a-new", 2, 0, 400),
        member("a-new", 2, 1, 400),
    ];
    for (replicas, gone) in [(2, vec!["a-bad"]), (1, vec!["a-bad", "a-new"]), (0, vec!["a-bad", "a-new", "a-old"])] {
        let plan = plan_once(cluster(&[hosts(replicas, 2)], json!({})), &pods);
        let mut names: Vec<String> = plan.pods.delete.iter().map(|deletion| deletion.pod.replica_name().to_owned()).collect();
        assert_eq!(names.len(), gone.len() * 2);
        names.sort();
        names.dedup();
        assert_eq!(names, gone);
    }
}

#[test]
fn doubled_replicas_are_removed_and_suspended_groups_emptied() {
    let member =
        |replica: &str, host: i32, age: i64| P::worker(&format!("{replica}-{host}"), "a").replica(replica, 0, host).created(at(-age));
    let pods = [P::head("h"), member("a-one", 0, 20), member("a-one", 1, 20), member("a-two", 0, 10), member("a-two", 1, 10)];
    let plan = plan_once(cluster(&[hosts(1, 2)], json!({ "enableInTreeAutoscaling": true })), &pods);
    assert_eq!(going(&plan), [("a-two-0".to_owned(), Why::Double), ("a-two-1".to_owned(), Why::Double)]);
    let suspended = with(hosts(1, 2), json!({ "suspend": true }));
    let plan = plan_once(cluster(&[suspended], json!({})), &pods);
    assert_eq!(plan.pods.delete.iter().filter(|deletion| deletion.why == Why::GroupSuspended).count(), 4);
}

#[test]
fn pods_from_before_the_group_had_replicas_go_once_their_successors_work() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({})));
    world.settle();
    let old = world.workers("a");
    world.set_group(0, json!({ "numOfHosts": 2 }));
    world.kubelet = Kubelet::Pending;
    world.settle();
    assert!(world.deleted.is_empty(), "not before the new ones work");
    for pod in world.pods.values_mut() {
        *pod = pod.clone().status(json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] }));
    }
    world.settle();
    let mut deleted = world.deleted.clone();
    deleted.sort();
    assert_eq!(deleted, old);
    assert_eq!(replicas(&world).len(), 2);
}
