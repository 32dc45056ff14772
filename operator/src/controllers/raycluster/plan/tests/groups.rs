//! Worker groups of single Pods.

use serde_json::json;

use crate::controllers::raycluster::plan::{Why, plan};
use crate::controllers::raycluster::testing::*;
use crate::settings::Settings;

const AUTOSCALED: &str = "enableInTreeAutoscaling";

#[test]
fn rc_176_the_number_of_workers_is_what_the_bounds_leave() {
    let table = [
        (json!({ "replicas": 3 }), 3),
        (json!({ "replicas": null, "minReplicas": 2 }), 2),
        (json!({ "replicas": null, "minReplicas": null }), 0),
        (json!({ "replicas": 1, "minReplicas": 2, "maxReplicas": 5 }), 2),
        (json!({ "replicas": 9, "maxReplicas": 5 }), 5),
        (json!({ "replicas": 9, "maxReplicas": null }), 9),
        (json!({ "replicas": -4 }), 0),
        (json!({ "replicas": 3, "suspend": true }), 0),
        // C-03: nothing, and less than nothing, means one.
        (json!({ "replicas": 2, "numOfHosts": 0 }), 2),
        (json!({ "replicas": 2, "numOfHosts": -1 }), 2),
        (json!({ "replicas": 2, "numOfHosts": null }), 2),
        (json!({ "replicas": 2, "numOfHosts": 4 }), 8),
    ];
    for (fields, wanted) in table {
        let mut world = World::new(cluster(&[with(group("a", 0), fields.clone())], json!({})));
        world.settle();
        assert_eq!((world.heads(), world.workers("a").len()), (1, wanted), "{fields}");
    }
}

#[test]
fn c_03b_hosts_set_to_zero_delete_nothing() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({})));
    world.settle();
    for hosts in [json!(0), json!(-1), json!(null)] {
        world.set_group(0, json!({ "numOfHosts": hosts }));
        world.settle();
    }
    assert_eq!(world.deleted, Vec::<String>::new());
}

#[test]
fn c_02_the_head_is_no_worker_of_a_group_with_the_name_of_its_own() {
    let plan = plan_once(cluster(&[group("headgroup", 0)], json!({})), &[P::head("h")]);
    assert_eq!(going(&plan), []);
}

#[test]
fn rc_181_workers_get_the_lowest_free_index() {
    let pods = [P::head("h"), P::worker("w0", "a").index(0), P::worker("w2", "a").index(2)];
    let plan = plan_once(cluster(&[group("a", 4)], json!({})), &pods);
    let indices: Vec<i32> = coming(&plan).iter().map(|worker| worker.replica.as_ref().unwrap().index).collect();
    assert_eq!(indices, [1, 3]);
}

#[test]
fn rc_18_without_the_gate_workers_have_no_place() {
    let mut settings = Settings::default();
    settings.features = settings.features.with(shared::features::Feature::RayMultiHostIndexing, false);
    let seen = observed(cluster(&[with(group("a", 1), json!({ "numOfHosts": 3 }))], json!({})), &[P::head("h")]);
    let plan = plan(&seen, &mut Default::default(), &settings, at(0));
    assert_eq!(coming(&plan).len(), 3);
    assert!(coming(&plan).iter().all(|worker| worker.replica.is_none()));
}

#[test]
fn rc_182_the_least_useful_worker_goes_first() {
    let worker = |name: &str, age: i64| P::worker(name, "a").created(at(-age));
    let pods = [
        P::head("h"),
        worker("old-ready", 900),
        worker("young-ready", 10),
        worker("old-unready", 800).unready(),
        worker("young-pending", 20).pending(),
        worker("old-pending", 700).pending(),
        worker("failed", 9_000).failed(),
    ];
    let table: [(i32, &[&str]); 6] = [
        (5, &["failed"]),
        (4, &["failed", "young-pending"]),
        (3, &["failed", "old-pending", "young-pending"]),
        (2, &["failed", "old-pending", "old-unready", "young-pending"]),
        (1, &["failed", "old-pending", "old-unready", "young-pending", "young-ready"]),
        (0, &["failed", "old-pending", "old-ready", "old-unready", "young-pending", "young-ready"]),
    ];
    for (replicas, wanted) in table {
        let plan = plan_once(cluster(&[group("a", replicas)], json!({})), &pods);
        let names: Vec<String> = going(&plan).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, wanted, "{replicas}");
        assert!(plan.pods.needs_live_view(), "a surplus is only removed on fresh knowledge");
    }
}

#[test]
fn rc_311_with_an_autoscaler_only_listed_workers_go() {
    let workers = || (1..=5).map(|n| P::worker(&format!("pod{n}"), "a")).chain([P::head("h")]).collect::<Vec<_>>();
    let listed = with(group("a", 3), json!({ "scaleStrategy": { "workersToDelete": ["pod2"] } }));
    let table = [
        // autoscaling, ENABLE_RANDOM_POD_DELETE, left
        (false, false, 3),
        (true, true, 3),
        (true, false, 4),
    ];
    for (autoscaling, random, left) in table {
        let mut settings = Settings::default();
        settings.switches.random_pod_delete = random;
        let seen = observed(cluster(std::slice::from_ref(&listed), json!({ AUTOSCALED: autoscaling })), &workers());
        let plan = plan(&seen, &mut Default::default(), &settings, at(0));
        assert_eq!(going(&plan).len(), 5 - left);
        assert!(going(&plan).contains(&("pod2".to_owned(), Why::Listed)));
    }
}

#[test]
fn c_28_only_workers_of_the_group_are_deleted_for_being_listed() {
    let listed = json!({ "scaleStrategy": { "workersToDelete": ["payroll-db", "h", "b1", "gone", "a1"] } });
    let groups = [with(group("a", 1), listed), group("b", 1)];
    let pods = [P::head("h"), P::worker("a1", "a"), P::worker("a2", "a"), P::worker("b1", "b")];
    let plan = plan_once(cluster(&groups, json!({ AUTOSCALED: true })), &pods);
    assert_eq!(going(&plan), [("a1".to_owned(), Why::Listed)]);
    let warnings: Vec<&str> = plan.notes.iter().filter(|note| note.warning).map(|note| note.text.as_str()).collect();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("b1") && warnings[0].contains("h") && !warnings[0].contains("payroll-db") && !warnings[0].contains("gone")
    );
}

#[test]
fn rc_76_the_name_of_a_listed_worker_is_not_given_again() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({ AUTOSCALED: true })));
    world.settle();
    let victim = world.workers("a")[0].clone();
    world.set_group(0, json!({ "replicas": 1, "scaleStrategy": { "workersToDelete": [victim] } }));
    world.settle();
    // The operator restarts and forgets everything; the autoscaler asks for more and leaves the list as it is.
    world.memory = Default::default();
    world.set_group(0, json!({ "replicas": 3 }));
    world.settle();
    assert_eq!(world.workers("a").len(), 3);
    assert_eq!(world.deleted, [victim]);
}

#[test]
fn rc_180_a_worker_that_goes_keeps_its_place_until_it_is_gone_or_stuck() {
    let going = P::worker("w1", "a").terminating(at(10));
    let table = [(0, 0), (39, 0), (40, 1)];
    for (now, created) in table {
        let seen = observed(cluster(&[group("a", 2)], json!({})), &[P::head("h"), P::worker("w2", "a"), going.clone()]);
        let plan = plan(&seen, &mut Default::default(), &Settings::default(), at(now));
        assert_eq!(coming(&plan).len(), created, "at {now}");
        assert_eq!(plan.wake, (created == 0).then(|| at(40)));
    }
}

#[test]
fn c_27_pods_of_a_removed_group_go() {
    let pods = [P::head("h"), P::worker("a1", "a"), P::worker("b1", "b"), P::worker("b2", "b").terminating(at(5))];
    let plan = plan_once(cluster(&[group("a", 1)], json!({})), &pods);
    assert_eq!(going(&plan), [("b1".to_owned(), Why::GroupRemoved)]);
    assert!(plan.pods.needs_live_view());
}

#[test]
fn rc_177_a_suspended_group_has_no_pods_and_the_others_stay() {
    let groups = [with(group("a", 2), json!({ "suspend": true })), group("b", 1)];
    let pods = [P::head("h"), P::worker("a1", "a"), P::worker("a2", "a"), P::worker("b1", "b")];
    let plan = plan_once(cluster(&groups, json!({})), &pods);
    assert_eq!(going(&plan), [("a1".to_owned(), Why::GroupSuspended), ("a2".to_owned(), Why::GroupSuspended)]);
    assert!(coming(&plan).is_empty());
}

#[test]
fn c_29_workers_that_fail_at_once_are_replaced_ever_more_slowly() {
    let mut world = World::new(cluster(&[group("a", 1)], json!({})));
    world.kubelet = Kubelet::WorkersFail;
    world.run(40);
    assert!((5..=10).contains(&world.made.len()), "{} in 40 s", world.made.len());
    let before = world.made.len();
    world.run(600);
    assert!(world.made.len() - before <= 11, "at most one a minute in the end: {}", world.made.len() - before);
    assert_eq!(world.heads(), 1);
    // It is repaired: the next one stays, and a single failure long after that is mended at once.
    world.kubelet = Kubelet::Ready;
    world.run(120);
    let healthy = world.workers("a");
    world.run(600);
    assert_eq!(world.workers("a"), healthy);
    let name = healthy[0].clone();
    let failed = world.pods[&name].clone().failed();
    world.pods.insert(name, failed);
    let made = world.made.len();
    world.run(1);
    assert_eq!(world.made.len(), made + 1);
}

#[test]
fn c_29_one_bad_worker_does_not_slow_down_scaling() {
    let mut world = World::new(cluster(&[group("a", 1)], json!({})));
    world.kubelet = Kubelet::WorkersFail;
    world.run(30);
    world.kubelet = Kubelet::Ready;
    world.set_group(0, json!({ "replicas": 5 }));
    let made = world.made.len();
    world.settle();
    assert!(world.made.len() >= made + 4, "the four new ones come at once");
}

#[test]
fn c_24_refused_workers_are_tried_again_with_back_off_and_come_once_there_is_room() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({})));
    world.quota = 1;
    world.run(30);
    let refusal = world.memory.refusal().unwrap();
    assert!((4..=8).contains(&refusal.count), "{} tries in 30 s", refusal.count);
    world.quota = 10;
    world.run(60);
    assert_eq!(world.workers("a").len(), 2);
    assert_eq!(world.memory.refusal(), None);
}

#[test]
fn a_refusal_is_over_when_nothing_more_is_wanted() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({})));
    world.quota = 2;
    world.run(5);
    assert!(world.memory.refusal().is_some());
    world.set_group(0, json!({ "replicas": 1 }));
    world.settle();
    assert_eq!(world.memory.refusal(), None);
}

#[test]
fn x_07_quick_edits_end_at_the_last_number() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({})));
    for replicas in [2, 6, 1, 7, 0, 4] {
        world.set_group(0, json!({ "replicas": replicas }));
        world.step();
        world.now = after(world.now, 250);
    }
    world.settle();
    assert_eq!((world.heads(), world.workers("a").len()), (1, 4));
    let mut names = world.made.clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), world.made.len(), "no name was used twice");
}

#[test]
fn doubles_of_two_operators_are_removed_even_under_an_autoscaler() {
    let pods = [
        P::head("h"),
        P::worker("first", "a").index(0).created(at(-20)),
        P::worker("second", "a").index(0).created(at(-10)),
        // Not made by accident: nobody touches what has been there for long.
        P::worker("third", "a").index(1).created(at(-900)),
        P::worker("fourth", "a").index(1).created(at(-800)),
    ];
    let plan = plan_once(cluster(&[group("a", 2)], json!({ AUTOSCALED: true })), &pods);
    assert_eq!(going(&plan), [("second".to_owned(), Why::Double)]);
    assert!(plan.pods.needs_live_view());
}

#[test]
fn two_operators_with_different_views_make_no_worker_twice() {
    let cluster = cluster(&[group("a", 3)], json!({}));
    let all: Vec<String> = coming(&plan_once(cluster.clone(), &[P::head("h")])).iter().map(|worker| worker.name.clone()).collect();
    for seen in &all {
        let plan = plan_once(cluster.clone(), &[P::head("h"), P::worker(seen, "a").index(0)]);
        let rest: Vec<&str> = coming(&plan).iter().map(|worker| worker.name.as_str()).collect();
        assert_eq!(rest.len(), 2);
        assert!(rest.iter().all(|name| all.iter().any(|known| known == name)));
    }
}

#[test]
fn a_worker_of_which_nobody_knows_is_tried_again_under_its_name() {
    let cluster = cluster(&[group("a", 2)], json!({}));
    let mut world = World::new(cluster);
    world.quota = 1;
    world.step();
    world.memory.group("a").uncertain = vec!["c-a-worker-lost9".to_owned()];
    // Long after, when other names would be drawn.
    world.now = at(500);
    world.quota = 10;
    world.settle();
    assert!(world.workers("a").contains(&"c-a-worker-lost9".to_owned()));
    world.settle();
    assert!(world.memory.group("a").uncertain.is_empty());
}
