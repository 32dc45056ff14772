//! Rules that are not about a single state.

use serde_json::json;

use super::*;

#[test]
fn rj_67_a_status_without_a_start_has_no_deadline() {
    let mut world = World::in_ray("HTTPMode", json!({"activeDeadlineSeconds": 1, "preRunningDeadlineSeconds": 1}));
    world.patch_status(json!({"startTime": null}));
    world.after(1000).look();
    assert_eq!(world.state(), State::Running);
}

#[test]
fn rj_70_nothing_new_means_nothing_to_write() {
    for mode in ["K8sJobMode", "HTTPMode", "SidecarMode"] {
        let mut world = World::in_ray(mode, json!({}));
        world.says("RUNNING");
        world.look();
        let before = serde_json::to_value(world.status()).unwrap();
        world.set_cluster(|cluster| {
            cluster.status.as_mut().unwrap().last_update_time = Some(Time("2026-01-01T01:00:00Z".parse().unwrap()));
        });
        world.after(7).look();
        assert_eq!(serde_json::to_value(world.status()).unwrap(), before, "{mode}");
    }
}

#[test]
fn rj_70_failing_answers_are_written_once() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.silence();
    world.look();
    let before = serde_json::to_value(world.status()).unwrap();
    world.replies(Reply::NoAnswer("something else".to_owned()));
    world.after(30).look();
    assert_eq!(serde_json::to_value(world.status()).unwrap(), before);
}

#[test]
fn the_status_speaks_of_the_generation_that_was_seen_weak_19() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.edit(json!({"ttlSecondsAfterFinished": 0}));
    world.look();
    assert_eq!(world.status().observed_generation, 2);
}

#[test]
fn rj_170_a_try_is_measured_once() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.after(42).says("SUCCEEDED");
    let plan = world.look();
    assert_eq!(plan.ended.unwrap(), Ended { status: State::Complete, retry: 0, took: SignedDuration::from_secs(42) });
    assert_eq!(world.look().ended, None);
}

#[test]
fn a_look_is_never_far_away_while_something_may_change() {
    for state in [State::Initializing, State::Running] {
        let mut world = World::new("K8sJobMode", json!({}));
        world.until(State::Initializing);
        world.look();
        if state == State::Running {
            world.cluster_ready();
            world.until(state);
        }
        assert!(world.look().wake.unwrap() <= later(world.now, HEARTBEAT));
    }
}

#[test]
fn what_holds_a_rayjob_up_is_shown_and_changes_nothing_else() {
    let mut world = World::new("K8sJobMode", json!({}));
    world.until(State::Initializing);
    let suffixes = [String::new(), String::new()];
    let blocked = Blocked { reason: "FailedToCreateRayCluster".to_owned(), message: "exceeded quota".to_owned() };
    let status = held_up(&world.view(&suffixes), blocked);
    assert_eq!((status.job_deployment_status, status.message.as_str()), (State::Initializing, "exceeded quota"));
    assert_eq!(conditions::find(&status, "ReadyToSubmit").unwrap().reason, "FailedToCreateRayCluster");
    assert_eq!(status.job_id, world.status().job_id);
}

#[test]
fn conditions_keep_the_time_of_their_last_change() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    let time = |world: &World, name: &str| conditions::find(&world.status(), name).unwrap().last_transition_time.0;
    let began = time(&world, "Running");
    world.after(50).says("RUNNING");
    world.look();
    assert_eq!(time(&world, "Running"), began);
    world.after(50).says("SUCCEEDED");
    world.look();
    assert_eq!((time(&world, "Running"), time(&world, "Succeeded")), (world.now, world.now));
    assert_eq!(world.condition("ReadyToSubmit"), Some(("True".into(), "ClusterReady".into())), "a wait that begins late still ends");
}

#[test]
fn healthy_conditions_use_no_words_of_alarm() {
    let mut world = World::in_ray("K8sJobMode", json!({}));
    world.says("SUCCEEDED");
    world.submitter_ends(true);
    world.look();
    for condition in world.status().conditions {
        let alarming = ["Fail", "Invalid", "Error", "Refus", "Reject"].iter().any(|word| condition.reason.contains(word));
        assert!(!alarming, "{condition:?}");
    }
}
