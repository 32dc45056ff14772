//! The PodGroup of a RayJob, state by state (RJ-35, RJ-52, RJ-100, RJ-180).

use super::*;
use crate::build::scheduling::Scheduler;

const RULES: &str = "deletionStrategy";

fn world(mode: &str, spec: Value) -> World {
    let mut world = World::new(mode, spec);
    world.settings.scheduler = Some(Scheduler::Volcano);
    world
}

/// One worker that asks for a CPU.
fn workers() -> Value {
    let container = json!({ "name": "w", "image": "i", "resources": { "requests": { "cpu": "1" } } });
    json!({ "rayClusterSpec": { "workerGroupSpecs": [
        { "groupName": "a", "replicas": 1, "minReplicas": 0, "maxReplicas": 9, "template": { "spec": { "containers": [container] } } },
    ] } })
}

/// What a plan does about the group: `hold!` if the cluster waits for it, `hold`, `settle`, or nothing, with its size.
fn group(plan: &Plan) -> String {
    let text = |what: &str, group: &Group| match group {
        Group::Volcano(group) => format!("{what} {}", group.spec.min_member),
        Group::Plugins(_) => panic!("not Volcano's"),
    };
    let all: Vec<String> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::HoldGroup { group, needed } => Some(text(if *needed { "hold!" } else { "hold" }, group)),
            Action::SettleGroup(group) => Some(text("settle", group)),
            _ => None,
        })
        .collect();
    all.join(", ")
}

#[test]
fn rj_35_the_group_comes_before_the_cluster_and_follows_it() {
    let mut world = world("K8sJobMode", workers());
    assert_eq!(group(&world.look()), "", "New");
    let plan = world.look();
    assert_eq!((group(&plan).as_str(), actions(&plan).first()), ("hold! 2", Some(&"HoldGroup")));
    assert_eq!(group(&world.look()), "hold 2", "Initializing, until the cluster is ready");
    world.cluster_ready();
    let plan = world.look();
    assert_eq!((world.state(), group(&plan).as_str()), (State::Running, "hold 2"));
    world.set_cluster(|cluster| cluster.spec.worker_group_specs.as_mut().unwrap()[0].replicas = Some(3));
    assert_eq!(group(&world.look()), "hold 4");
}

#[test]
fn rj_100_c_51_after_the_end_the_group_asks_for_what_is_left() {
    let rule = |policy: &str, seconds: i32| json!({ "policy": policy, "condition": { "jobStatus": "SUCCEEDED", "ttlSeconds": seconds } });
    let mut spec = workers();
    spec[RULES] = json!({ "deletionRules": [rule("DeleteWorkers", 10), rule("DeleteCluster", 20), rule("DeleteSelf", 30)] });
    let mut world = world("HTTPMode", spec);
    world.settings.features = world.settings.features.with(shared::features::Feature::RayJobDeletionPolicy, true);
    world.until(State::Initializing);
    world.look();
    world.cluster_ready();
    world.until(State::Running);
    world.look();
    world.says("SUCCEEDED");
    let plan = world.look();
    assert_eq!((world.state(), group(&plan).as_str()), (State::Complete, "settle 2"));
    // RJ-180: behind the deletion of the same look.
    let plan = world.after(11).look();
    assert_eq!((actions(&plan), group(&plan).as_str()), (vec!["SuspendWorkers", "SettleGroup"], "settle 2"));
    assert_eq!(group(&world.look()), "settle 1");
    let plan = world.after(10).look();
    assert_eq!((actions(&plan), group(&plan).as_str()), (vec!["DeleteCluster", "SettleGroup"], "settle 0"));
    assert_eq!(group(&world.look()), "settle 0");
    // It goes with the RayJob.
    assert_eq!(actions(&world.after(10).look()), ["DeleteSelf"]);
}

#[test]
fn rj_52_suspended_and_retried_jobs_keep_nothing_free_between_tries() {
    let mut world = world("HTTPMode", workers());
    world.until(State::Initializing);
    world.look();
    world.edit(json!({ "suspend": true }));
    assert_eq!(group(&world.look()), "", "the Pods are there");
    assert_eq!(actions(&world.look()), ["DeleteCluster"]);
    let plan = world.look();
    assert_eq!((world.state(), group(&plan).as_str()), (State::Suspended, "settle 0"));
    assert_eq!(group(&world.look()), "settle 0", "until it is done");
    world.edit(json!({ "suspend": false }));
    assert_eq!(group(&world.look()), "");
    assert_eq!(group(&world.look()), "hold! 2");

    // Another try has another cluster and the same group.
    let mut spec = workers();
    spec["backoffLimit"] = json!(1);
    let mut world = self::world("HTTPMode", spec);
    world.until(State::Initializing);
    world.look();
    world.cluster_ready();
    world.until(State::Running);
    world.look();
    world.says("FAILED");
    assert_eq!((group(&world.look()), world.state()), (String::new(), State::Retrying));
    assert_eq!(group(&world.look()), "");
    let plan = world.look();
    assert_eq!((world.state(), group(&plan).as_str()), (State::Initializing, "settle 0"));
    let plan = world.look();
    assert_eq!((actions(&plan), group(&plan).as_str()), (vec!["HoldGroup", "CreateCluster"], "hold! 2"));
}

/// BS-15, BS-53, and what is lost.
#[test]
fn bs_15_when_there_is_no_group() {
    let selector = json!({ "rayClusterSpec": null, "clusterSelector": { "ray.io/cluster": "c" } });
    let mut world = world("HTTPMode", selector);
    for _ in 0..3 {
        assert_eq!(group(&world.look()), "");
    }
    for scheduler in [None, Some(Scheduler::YuniKorn), Some(Scheduler::Kai), Some(Scheduler::SchedulerPlugins)] {
        let mut world = World::new("K8sJobMode", workers());
        world.settings.scheduler = scheduler;
        world.until(State::Initializing);
        assert_eq!(actions(&world.look()), ["CreateCluster"], "{scheduler:?}");
        world.cluster_ready();
        world.until(State::Running);
        assert_eq!(group(&world.look()), "");
    }
    // A cluster that somebody else has deleted ends the job, and the job the group.
    let mut world = self::world("HTTPMode", workers());
    world.until(State::Initializing);
    world.look();
    world.cluster_ready();
    world.until(State::Running);
    world.seen.cluster = None;
    let plan = world.look();
    assert_eq!((world.state(), group(&plan).as_str()), (State::Failed, "settle 0"));
}

/// BS-16: it is told, and neither deadlines nor the deletion wait for it.
#[test]
fn bs_16_a_label_that_cannot_be_read_holds_only_what_it_must() {
    let labels = [("volcano.sh/network-topology-mode", "hard"), ("volcano.sh/network-topology-highest-tier-allowed", "x")];
    let labels: std::collections::BTreeMap<_, _> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let mut world = world("HTTPMode", json!({ "activeDeadlineSeconds": 60 }));
    world.job.metadata.labels = Some(labels.clone());
    world.until(State::Initializing);
    assert_eq!(actions(&world.look()), [""; 0]);
    assert_eq!(world.condition("ReadyToSubmit"), Some(("False".to_owned(), "InvalidPodGroup".to_owned())));
    assert!(world.status().message.contains("highest-tier-allowed"));
    world.job.metadata.labels = None;
    assert_eq!(actions(&world.look()), ["HoldGroup", "CreateCluster"]);
    // Broken later, it is no hindrance.
    world.job.metadata.labels = Some(labels.clone());
    world.cluster_ready();
    world.until(State::Running);

    let mut world = self::world("HTTPMode", json!({ "activeDeadlineSeconds": 60 }));
    world.job.metadata.labels = Some(labels);
    world.until(State::Initializing);
    let plan = world.after(61).look();
    assert_eq!((world.state(), group(&plan).as_str()), (State::Failed, "settle 0"));
    world.job.metadata.deletion_timestamp = Some(Time(world.now));
    assert_eq!(actions(&world.look()), ["RemoveFinalizer"]);
}
