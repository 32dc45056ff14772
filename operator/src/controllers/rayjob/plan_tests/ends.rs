//! What is deleted after the end, and when (RJ-100..RJ-106); how often a job is tried (RJ-60, T-3, T-4).

use serde_json::json;

use super::*;
use crate::build::submitter::DEFAULT_BACKOFF_LIMIT;

/// A RayJob that ended now.
fn ended(said: &str, spec: Value) -> World {
    let mut world = World::in_ray("HTTPMode", spec);
    world.set_cluster(|cluster| {
        cluster.spec.worker_group_specs = Some(vec![shared::api::raycluster::WorkerGroupSpec::default()]);
    });
    world.says(said);
    world.look();
    assert!(world.state().is_terminal());
    world
}

#[test]
fn rj_105_shutdown_after_the_ttl() {
    let mut world = ended("SUCCEEDED", json!({"shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 8}));
    let plan = world.look();
    assert_eq!((actions(&plan), plan.wake.unwrap()), (vec![], later(world.now, SignedDuration::from_secs(8))));
    assert_eq!(actions(&world.after(7).look()), Vec::<&str>::new());
    assert_eq!(actions(&world.after(1).look()), ["DeleteCluster"]);
    let plan = world.look();
    assert_eq!((actions(&plan), plan.wake), (vec![], None), "the submitter Job and the RayJob stay");

    let mut world = ended("FAILED", json!({"shutdownAfterJobFinishes": true}));
    world.settings.switches.delete_ray_job_after_finish = true;
    assert_eq!(actions(&world.look()), ["DeleteSelf"]);
    let mut world = ended("SUCCEEDED", json!({}));
    assert_eq!(actions(&world.after(1_000_000).look()), Vec::<&str>::new());
}

fn rule(policy: &str, on: Value, ttl: i32) -> Value {
    let mut condition = on;
    condition["ttlSeconds"] = json!(ttl);
    json!({"policy": policy, "condition": condition})
}

#[test]
fn rj_103_rules_run_in_order_of_their_times_t_9() {
    let on = || json!({"jobStatus": "SUCCEEDED"});
    let rules = json!([
        rule("DeleteSelf", on(), 30),
        rule("DeleteWorkers", on(), 10),
        rule("DeleteCluster", on(), 20),
        rule("DeleteNone", on(), 0)
    ]);
    let spec = json!({"deletionStrategy": {"deletionRules": rules}});
    let mut world = ended("SUCCEEDED", spec.clone());
    let plan = world.look();
    assert_eq!((actions(&plan), plan.wake.unwrap()), (vec![], later(world.now, SignedDuration::from_secs(10))));
    assert_eq!(actions(&world.after(10).look()), ["SuspendWorkers"]);
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
    assert_eq!(actions(&world.after(10).look()), ["DeleteCluster"]);
    assert_eq!(actions(&world.after(10).look()), ["DeleteSelf"]);
    let mut world = ended("SUCCEEDED", spec.clone());
    assert_eq!(actions(&world.after(1000).look()), ["DeleteSelf"], "all are due: only the one that deletes most");
    let mut world = ended("FAILED", spec);
    assert_eq!(actions(&world.after(1000).look()), Vec::<&str>::new());
}

#[test]
fn rj_103_rules_on_the_deployment_status_t_9() {
    let rules = json!([rule("DeleteCluster", json!({"jobDeploymentStatus": "Failed"}), 0)]);
    let mut world = World::in_ray("HTTPMode", json!({"activeDeadlineSeconds": 5, "deletionStrategy": {"deletionRules": rules}}));
    world.after(5).look();
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/RUNNING");
    assert!(actions(&world.look()).contains(&"DeleteCluster"));
}

#[test]
fn rj_104_weak_9_legacy_strategies_know_every_outcome() {
    let strategy = json!({"onSuccess": {"policy": "DeleteWorkers"}, "onFailure": {"policy": "DeleteCluster"}});
    for (said, wanted) in [("SUCCEEDED", "SuspendWorkers"), ("STOPPED", "SuspendWorkers"), ("FAILED", "DeleteCluster")] {
        let spec = json!({"deletionStrategy": strategy.clone(), "shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 3});
        let mut world = ended(said, spec);
        assert_eq!(actions(&world.look()), Vec::<&str>::new(), "{said}");
        assert_eq!(actions(&world.after(3).look()), [wanted], "{said}");
    }
    // A job that never reached Ray failed, too.
    let mut world = World::running("HTTPMode", json!({"deletionStrategy": strategy}));
    world.look();
    world.replies(Reply::Refused("no".to_owned()));
    world.look();
    assert!(actions(&world.look()).contains(&"DeleteCluster"));
}

#[test]
fn rj_101_a_strategy_needs_its_gate() {
    let strategy = json!({"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {"policy": "DeleteSelf"}});
    let mut world = ended("SUCCEEDED", json!({"deletionStrategy": strategy, "shutdownAfterJobFinishes": true}));
    world.settings.features = world.settings.features.with(shared::features::Feature::RayJobDeletionPolicy, false);
    assert_eq!(actions(&world.look()), ["DeleteCluster"]);
}

#[test]
fn rj_106_nothing_is_deleted_twice_or_of_somebody_else() {
    let mut world = ended("SUCCEEDED", json!({"shutdownAfterJobFinishes": true}));
    world.set_cluster(|cluster| cluster.metadata.deletion_timestamp = Some(Time(START.parse().unwrap())));
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
    let mut world = ended("SUCCEEDED", json!({"shutdownAfterJobFinishes": true}));
    world.set_cluster(|cluster| cluster.metadata.owner_references = None);
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
}

/// Plays tries that end like this until there is no other one.
fn play(spec: Value, mut outcome: impl FnMut(&mut World, i32)) -> World {
    let mut world = World::new("HTTPMode", spec);
    for attempt in 1..10 {
        world.until(State::Initializing);
        world.look();
        world.cluster_ready();
        world.until(State::Running);
        world.look();
        outcome(&mut world, attempt);
        world.look();
        if world.state() == State::Retrying {
            for _ in 0..4 {
                if world.state() != State::Retrying {
                    break;
                }
                if world.look().inquiry.is_some() {
                    world.replies(Reply::StopSent);
                }
            }
        }
        if world.state().is_terminal() {
            return world;
        }
    }
    panic!("no end: {}", world.summary());
}

#[test]
fn rj_60_tries_are_counted_t_3_t_4() {
    let world = play(json!({"backoffLimit": 2}), |world, _| world.says("FAILED"));
    assert_eq!((world.summary().as_str(), world.status().failed, world.status().succeeded), ("Failed/AppFailed/FAILED", Some(3), Some(0)));
    let world = play(json!({"backoffLimit": 1}), |world, attempt| world.says(if attempt == 1 { "FAILED" } else { "SUCCEEDED" }));
    assert_eq!((world.summary().as_str(), world.status().failed, world.status().succeeded), ("Complete//SUCCEEDED", Some(1), Some(1)));
    let world = play(json!({"backoffLimit": 2}), |world, _| world.replies(Reply::Refused("no".to_owned())));
    assert_eq!((world.summary().as_str(), world.status().failed), ("Failed/SubmissionFailed/", Some(3)));
    let world = play(json!({"backoffLimit": -5}), |world, _| world.says("FAILED"));
    assert_eq!(world.status().failed, Some(1));
    let world = play(json!({"backoffLimit": 2}), |world, _| world.says("STOPPED"));
    assert_eq!((world.summary().as_str(), world.status().failed), ("Complete//STOPPED", Some(0)));
}

#[test]
fn c_47_the_deadline_belongs_to_the_try_and_is_not_tried_again() {
    // Three tries of 50 s each, each within its 60 s.
    let world = play(json!({"backoffLimit": 2, "activeDeadlineSeconds": 60}), |world, _| {
        world.after(50);
        world.says("FAILED");
    });
    assert_eq!((world.summary().as_str(), world.status().failed), ("Failed/AppFailed/FAILED", Some(3)));
    let world = play(json!({"backoffLimit": 2, "activeDeadlineSeconds": 60}), |world, _| {
        world.says("RUNNING");
        world.look();
        world.after(60).look();
        world.says("RUNNING");
    });
    assert_eq!((world.summary().as_str(), world.status().failed), ("Failed/DeadlineExceeded/RUNNING", Some(1)));
}

#[test]
fn rj_60_tries_need_a_cluster_of_their_own() {
    let terms = |spec: Value| {
        let world = World::new("HTTPMode", spec);
        Terms::of(&world.job, false, None, &world.settings).backoff_limit
    };
    assert_eq!(terms(json!({"backoffLimit": 2})), 2);
    assert_eq!(terms(json!({"backoffLimit": 2, "clusterSelector": {"ray.io/cluster": "c"}})), 0);
    assert_eq!(terms(json!({"backoffLimit": 2, "submissionMode": "InteractiveMode"})), 0);
}

#[test]
fn rj_61_the_submitter_has_a_limit_of_its_own() {
    let limit = |spec: Value| {
        let world = World::new("K8sJobMode", spec);
        Terms::of(&world.job, true, None, &world.settings).submitter_limit
    };
    assert_eq!(limit(json!({"backoffLimit": 7})), DEFAULT_BACKOFF_LIMIT);
    assert_eq!(limit(json!({"submitterConfig": {"backoffLimit": 0}})), 0);
    assert_eq!(limit(json!({"submitterConfig": {"backoffLimit": -1}})), DEFAULT_BACKOFF_LIMIT);
}

#[test]
fn a_retry_that_is_held_meanwhile_goes_to_suspended() {
    let mut world = World::in_ray("HTTPMode", json!({"backoffLimit": 1, "shutdownAfterJobFinishes": true}));
    world.says("FAILED");
    world.look();
    assert_eq!(world.state(), State::Retrying);
    world.edit(json!({"suspend": true}));
    world.until(State::Suspended);
    assert_eq!(world.status().failed, Some(1));
}

#[test]
fn suspend_comes_too_late_for_a_job_that_has_ended() {
    let mut world = World::in_ray("K8sJobMode", json!({"shutdownAfterJobFinishes": true}));
    world.edit(json!({"suspend": true}));
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
}
