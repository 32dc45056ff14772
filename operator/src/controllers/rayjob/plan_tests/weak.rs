//! The better rules of section 9, one test each. Rules that live elsewhere: WEAK-3, 11, 12, 20, 22, 24, 25 in the validation of
//! `shared`; WEAK-7, 9..12, 33 in `build`; WEAK-13, 29 in `dashboard`; WEAK-23 in `raycronjob`.

use serde_json::json;

use super::*;
use crate::controllers::rayjob::conditions::{DASHBOARD_REACHABLE, LOGS_FOLLOWED};

fn deleted(world: &mut World) {
    world.job.metadata.deletion_timestamp = Some(Time(world.now));
}

#[test]
fn weak_1_nothing_the_user_can_break_holds_a_deletion() {
    // A dashboard that cannot be asked, for whatever reason.
    let mut world = World::in_ray("HTTPMode", json!({}));
    deleted(&mut world);
    let plan = world.look();
    assert_eq!((actions(&plan), &plan.inquiry.unwrap().purpose), (vec![], &Purpose::Stop));
    world.replies(Reply::NoAnswer("the token for the dashboard cannot be read".to_owned()));
    assert_eq!(actions(&world.look()), ["RemoveFinalizer"]);

    // No answer at all within the bound.
    let mut world = World::in_ray("HTTPMode", json!({}));
    deleted(&mut world);
    world.look();
    assert_eq!(actions(&world.after(9).think()), Vec::<&str>::new());
    assert_eq!(actions(&world.after(1).think()), ["RemoveFinalizer"]);

    // Nothing to stop.
    let mut world = World::new("HTTPMode", json!({}));
    world.look();
    deleted(&mut world);
    assert_eq!(actions(&world.look()), ["RemoveFinalizer"]);

    // Invalid by now (pain 10).
    let mut world = World::running("HTTPMode", json!({}));
    world.spec_breaks();
    deleted(&mut world);
    world.look();
    world.silence();
    assert_eq!(actions(&world.look()), ["RemoveFinalizer"]);
}

#[test]
fn rj_22_deletion_stops_the_job_once() {
    for (reply, shared) in [(Reply::StopSent, true), (Reply::NotFound, false), (Reply::StopSent, false)] {
        let spec = if shared { json!({"clusterSelector": {"ray.io/cluster": "c"}}) } else { json!({}) };
        let mut world = if shared { shared_cluster(spec) } else { World::in_ray("HTTPMode", spec) };
        deleted(&mut world);
        world.look();
        world.replies(reply);
        assert_eq!(actions(&world.look()), ["RemoveFinalizer"]);
    }
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.says("SUCCEEDED");
    world.look();
    deleted(&mut world);
    let plan = world.look();
    assert_eq!((actions(&plan), plan.inquiry), (vec!["RemoveFinalizer"], None), "nothing to stop");
}

#[test]
fn rj_22_on_a_shared_cluster_the_stop_is_tried_longer() {
    let mut world = shared_cluster(json!({"clusterSelector": {"ray.io/cluster": "c"}}));
    deleted(&mut world);
    world.look();
    world.silence();
    assert_eq!(actions(&world.after(20).look()), Vec::<&str>::new());
    assert_eq!(actions(&world.after(10).look()), ["RemoveFinalizer"]);
}

#[test]
fn deletion_before_submission_takes_the_submitter_along() {
    let mut world = World::running("K8sJobMode", json!({}));
    deleted(&mut world);
    world.look();
    assert!(world.seen.submitter.is_none());
}

/// A job that Ray runs on a cluster of somebody else.
fn shared_cluster(spec: Value) -> World {
    let mut world = World::new("HTTPMode", spec);
    world.until(State::Initializing);
    world.seen.cluster = Some(Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "n", "uid": "other"},
            "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head", "image": "ray:1"}]}}}}
        }))
        .unwrap(),
    ));
    world.cluster_ready();
    world.until(State::Running);
    world.look();
    world.says("RUNNING");
    world.look();
    world
}

#[test]
fn weak_2_c_20_validation_failed_heals() {
    let mut world = World::new("HTTPMode", json!({}));
    world.spec_breaks();
    world.look();
    let text = |world: &World| world.status().message;
    assert_eq!(text(&world), "spec.backoffLimit: -1");
    world.problem.as_mut().unwrap().message = "another".to_owned();
    world.look();
    assert_eq!((text(&world).as_str(), world.told("InvalidRayJobSpec")), ("another", 2));
    world.problem = None;
    world.look();
    assert_eq!(world.summary(), "Initializing//");
    assert_eq!(text(&world), "");
    assert_eq!(world.condition("SpecValid"), Some(("True".into(), "Accepted".into())));
}

#[test]
fn weak_2_a_rayjob_that_kuberay_gave_up_is_taken_up_where_it_was() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.patch_status(json!({"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed", "message": "m"}));
    let id = world.status().job_id;
    world.look();
    assert_eq!((world.summary(), world.status().job_id), ("Running//RUNNING".to_owned(), id));
}

#[test]
fn weak_2_c_21_a_running_job_made_invalid_is_followed_to_its_end() {
    // What a queue controller may do.
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.edit(json!({"suspend": true}));
    world.spec_breaks();
    world.look();
    assert_eq!(world.state(), State::Running);
    assert_eq!(world.condition("SpecValid"), Some(("False".into(), "InvalidSpec".into())));
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");

    let mut world = World::in_ray("HTTPMode", json!({"activeDeadlineSeconds": 25}));
    world.edit(json!({"backoffLimit": -1, "submissionMode": "nonsense"}));
    world.spec_breaks();
    world.after(25).look();
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/RUNNING");
}

#[test]
fn weak_2_initializing_made_invalid_creates_nothing_and_goes_on_when_corrected() {
    let mut world = World::new("K8sJobMode", json!({}));
    world.look();
    world.spec_breaks();
    world.look();
    assert_eq!(world.state(), State::ValidationFailed, "nothing was made yet");

    let mut world = World::new("K8sJobMode", json!({"activeDeadlineSeconds": 60}));
    world.look();
    world.look();
    world.cluster_ready();
    world.spec_breaks();
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
    assert_eq!(world.state(), State::Initializing);
    world.problem = None;
    assert_eq!(actions(&world.look()), ["CreateSubmitter"]);
}

#[test]
fn weak_4_c_43_waiting_honours_suspend_and_deadline() {
    let waiting = |spec| {
        let mut world = World::new("InteractiveMode", spec);
        world.until(State::Initializing);
        world.look();
        world.cluster_ready();
        world.until(State::Waiting);
        world
    };
    let mut world = waiting(json!({"activeDeadlineSeconds": 20}));
    world.after(20).look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/");
    let mut world = waiting(json!({"shutdownAfterJobFinishes": true}));
    world.edit(json!({"suspend": true}));
    world.until(State::Suspended);
    assert!(world.seen.cluster.is_none());
}

#[test]
fn weak_5_x_25_a_deleted_submitter_is_made_again_only_before_ray_got_the_job() {
    let mut world = World::running("K8sJobMode", json!({}));
    world.seen.submitter = None;
    assert!(actions(&world.look()).contains(&"CreateSubmitter"));

    let mut world = World::in_ray("K8sJobMode", json!({}));
    world.seen.submitter = None;
    assert_eq!(actions(&world.look()), ["EnsureHeadService"]);
    assert_eq!(world.condition(LOGS_FOLLOWED), Some(("False".into(), "SubmitterEnded".into())));
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
}

#[test]
fn weak_6_x_32_ray_decides_however_long_ago_the_submitter_ended() {
    for well in [true, false] {
        let mut world = World::in_ray("K8sJobMode", json!({"backoffLimit": 2}));
        world.submitter_ends(well);
        // The operator was away for an hour.
        world.seen.answer = None;
        world.after(3600).look();
        assert_eq!(world.state(), State::Running);
        world.says("SUCCEEDED");
        world.look();
        assert_eq!((world.summary().as_str(), world.status().failed), ("Complete//SUCCEEDED", Some(0)));
    }
}

#[test]
fn weak_6_a_job_that_ended_before_its_deadline_has_ended_in_time() {
    let mut world = World::in_ray("HTTPMode", json!({"activeDeadlineSeconds": 60}));
    world.seen.answer = None;
    world.after(3600).look();
    assert_eq!(world.state(), State::Running);
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
    // But nobody waits for ever for the last word.
    let mut world = World::in_ray("HTTPMode", json!({"activeDeadlineSeconds": 60}));
    world.after(60).look();
    world.after(30).look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/RUNNING");
}

#[test]
fn weak_6_the_thirty_seconds_count_only_when_there_is_nobody_to_ask_rj_66() {
    // The head is there: an outage, however long ago the submitter ended.
    let mut world = World::running("K8sJobMode", json!({}));
    world.submitter_ends(true);
    world.look();
    world.silence();
    world.after(40).look();
    assert_eq!(world.state(), State::Running);
    // The head does not run.
    world.set_head_phase("Pending");
    world.look();
    assert_eq!(world.summary(), "Failed/JobDeploymentStatusTransitionGracePeriodExceeded/FAILED");
}

#[test]
fn c_44_submitter_failed_while_ray_runs_the_job() {
    let mut world = World::in_ray("K8sJobMode", json!({}));
    world.submitter_ends(false);
    world.look();
    world.says("RUNNING");
    world.after(20).look();
    assert_eq!(world.summary(), "Running//RUNNING");
    assert_eq!(world.condition(LOGS_FOLLOWED), Some(("False".into(), "SubmitterEnded".into())));
    assert_eq!(world.told("SubmitterEnded"), 1);
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
}

#[test]
fn a_submitter_that_ends_with_its_job_is_no_cause_for_alarm() {
    for mode in ["K8sJobMode", "SidecarMode"] {
        let mut world = World::in_ray(mode, json!({}));
        assert_eq!(world.condition(LOGS_FOLLOWED), Some(("True".into(), "SubmitterActive".into())));
        // The job has ended, and the operator has not asked since.
        world.submitter_ends(true);
        let plan = world.look();
        assert_eq!((world.state(), plan.inquiry.unwrap().occasion), (State::Running, Occasion::SubmitterEnded));
        assert_eq!(world.condition(LOGS_FOLLOWED), Some(("True".into(), "SubmitterActive".into())), "{mode}");
        world.says("SUCCEEDED");
        world.look();
        assert_eq!((world.summary().as_str(), world.told("SubmitterEnded")), ("Complete//SUCCEEDED", 0), "{mode}");
    }
}

#[test]
fn c_44_submitter_failed_while_nothing_answers() {
    let mut world = World::in_ray("K8sJobMode", json!({}));
    world.silence();
    world.look();
    world.submitter_ends(false);
    world.after(200).look();
    world.silence();
    world.after(99).look();
    assert_eq!(world.state(), State::Running);
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
    assert!(world.status().job_status_check_failure_start_time.is_none());
    assert_eq!(world.told("DashboardReachable"), 1);
}

#[test]
fn weak_8_a_shared_cluster_is_never_deleted_but_the_rayjob_may_be() {
    let rules = json!([{"policy": "DeleteSelf", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 5}}]);
    let mut world = shared_cluster(json!({"clusterSelector": {"ray.io/cluster": "c"}, "deletionStrategy": {"deletionRules": rules}}));
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
    assert_eq!(actions(&world.after(5).look()), ["DeleteSelf"]);
    let mut world = shared_cluster(json!({"clusterSelector": {"ray.io/cluster": "c"}, "shutdownAfterJobFinishes": true}));
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(actions(&world.after(1).look()), Vec::<&str>::new());
    world.settings.switches.delete_ray_job_after_finish = true;
    assert_eq!(actions(&world.look()), ["DeleteSelf"]);
}

#[test]
fn weak_10_a_job_of_somebody_else_is_waited_for_and_never_adopted() {
    for (metadata, reason) in [
        (json!({"name": "j", "namespace": "n", "uid": "x"}), "belongs to somebody else"),
        (json!({"name": "j", "namespace": "n", "uid": "x", "deletionTimestamp": START}), "is being deleted"),
    ] {
        let mut world = World::new("K8sJobMode", json!({}));
        world.until(State::Initializing);
        world.look();
        world.cluster_ready();
        world.seen.submitter = Some(Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap()));
        let plan = world.look();
        assert_eq!((world.state(), actions(&plan)), (State::Initializing, vec![]));
        assert_eq!(world.condition("ReadyToSubmit"), Some(("False".into(), "SubmitterNameTaken".into())));
        assert!(world.status().message.contains(reason), "{}", world.status().message);
        assert!(plan.wake.unwrap() <= later(world.now, SignedDuration::from_secs(5)));
        world.look();
        assert_eq!(world.told("SubmitterNameTaken"), 1);
        world.seen.submitter = None;
        assert_eq!(actions(&world.look()), ["CreateSubmitter"]);
    }
}

#[test]
fn weak_10_a_job_of_somebody_else_is_never_deleted() {
    let mut world = World::in_ray("K8sJobMode", json!({"shutdownAfterJobFinishes": true}));
    world.seen.submitter =
        Some(Arc::new(serde_json::from_value(json!({"metadata": {"name": "j", "namespace": "n", "uid": "x"}})).unwrap()));
    world.edit(json!({"suspend": true}));
    world.look();
    world.look();
    world.replies(Reply::StopSent);
    assert_eq!(actions(&world.look()), ["DeleteCluster"]);
    world.look();
    assert_eq!(world.state(), State::Suspended);
    assert!(world.seen.submitter.is_some());
}

/// SidecarMode, cluster not ready, head running.
fn early(submitter: Value) -> World {
    let mut world = World::new("SidecarMode", json!({}));
    world.until(State::Initializing);
    world.look();
    world.head("head-1", submitter);
    world.look();
    world
}

fn crashed(count: i32, code: i32) -> Value {
    let end = json!({"exitCode": code, "finishedAt": START});
    let before = json!({"exitCode": 1, "finishedAt": START});
    let mut status = json!({"restartCount": count, "state": {"running": null, "terminated": end}});
    if count > 0 {
        status["lastState"] = json!({"terminated": before});
    }
    status
}

#[test]
fn weak_15_rj_145_restart_cap() {
    // (restarts, exit code, whether that is the end of the submitter, whether it failed)
    for (count, code, ended, failed) in
        [(0, 1, false, false), (1, 1, false, false), (2, 1, true, true), (3, 0, true, false), (0, 0, true, false)]
    {
        let world = early(crashed(count, code));
        let terms = Terms::of(&world.job, true, None, &world.settings);
        let submitter = Submitter::of(&world.job, &world.seen, &terms);
        match submitter {
            Submitter::Ended { failed: found, .. } => assert_eq!((true, found), (ended, failed), "{count} {code}"),
            other => assert_eq!((other, ended), (Submitter::Active, false), "{count} {code}"),
        }
    }
    // The third run is alive, which KubeRay does not wait for; what Ray says still decides.
    let mut world = World::in_ray("SidecarMode", json!({}));
    world.head("head-1", json!({"restartCount": 2, "lastState": {"terminated": {"exitCode": 1}}}));
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Running//RUNNING");
}

#[test]
fn weak_16_a_crash_gap_is_no_end() {
    let mut world = World::running("SidecarMode", json!({}));
    world.head("head-1", crashed(1, 1));
    world.look();
    assert_eq!(world.is_asked().unwrap().occasion, Occasion::Routine);
    world.replies(Reply::NotFound);
    world.after(120).look();
    assert_eq!(world.state(), State::Running);
    assert_eq!(world.condition(LOGS_FOLLOWED), Some(("True".into(), "SubmitterActive".into())));
}

#[test]
fn weak_16_an_old_kubelet_is_named() {
    let mut world = World::in_ray("SidecarMode", json!({}));
    world.head("head-1", crashed(0, 1));
    world.seen.old_kubelet = Some("v1.34.2".to_owned());
    world.look();
    world.says("RUNNING");
    world.after(100).look();
    assert_eq!(world.summary(), "Running//RUNNING");
    assert_eq!(world.condition(LOGS_FOLLOWED), Some(("False".into(), "KubeletTooOld".into())));
    assert_eq!(world.told("KubeletTooOld"), 1);
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
}

#[test]
fn weak_17_a_submitter_that_ends_before_the_cluster_is_ready() {
    for (status, wanted) in [(crashed(2, 1), "Failed/SubmissionFailed/"), (crashed(0, 0), "Failed/AppFailed/")] {
        let mut world = early(status);
        assert_eq!((world.state(), world.is_asked().unwrap().occasion), (State::Initializing, Occasion::SubmitterEnded));
        world.replies(Reply::NotFound);
        world.look();
        assert_eq!(world.summary(), wanted);
    }
    let mut world = early(crashed(0, 0));
    world.says("SUCCEEDED");
    world.until(State::Complete);
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
    // One that will be started again has not ended.
    let mut world = early(crashed(1, 1));
    world.replies(Reply::NotFound);
    world.after(60).look();
    assert_eq!(world.state(), State::Initializing);
    // A dashboard that does not answer yet is no outage, and once the submitter has ended it is one with an end.
    let mut world = early(json!({}));
    world.silence();
    world.look();
    assert!(world.status().job_status_check_failure_start_time.is_none());
    world.head("head-1", crashed(2, 1));
    world.look();
    world.silence();
    world.look();
    world.after(300).look();
    assert_eq!(world.summary(), "Failed/JobStatusCheckTimeoutExceeded/");
}

#[test]
fn weak_17_without_restarts_a_failed_submitter_is_an_end() {
    let mut world = World::new("SidecarMode", json!({}));
    world.settings.features = world.settings.features.with(shared::features::Feature::SidecarSubmitterRestart, false);
    world.until(State::Initializing);
    world.look();
    world.head("head-1", crashed(0, 1));
    world.look();
    world.replies(Reply::NotFound);
    world.look();
    assert_eq!(world.summary(), "Failed/SubmissionFailed/");
}

#[test]
fn weak_18_rj_151_a_failed_submitter_is_not_the_verdict() {
    let mut world = World::in_ray("SidecarMode", json!({}));
    world.settings.features = world.settings.features.with(shared::features::Feature::SidecarSubmitterRestart, false);
    world.submitter_ends(false);
    world.set_cluster(|cluster| {
        for container in &mut cluster.spec.head_group_spec.template.spec.as_mut().unwrap().containers {
            container.restart_policy = None;
        }
    });
    world.look();
    assert_eq!(world.summary(), "Running//RUNNING", "the answer is from before");
    world.says("FAILED");
    world.look();
    assert_eq!(world.summary(), "Failed/AppFailed/FAILED");
}

#[test]
fn weak_19_changes_are_told_once() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    for _ in 0..3 {
        world.look();
    }
    world.says("SUCCEEDED");
    world.look();
    world.look();
    let reasons: Vec<&str> = world.events.iter().map(|note| note.reason.as_str()).collect();
    assert_eq!(reasons, ["Started", "Running", "JobStatusChanged", "Completed"]);
}

#[test]
fn weak_26_not_knowing_a_job_is_an_answer() {
    let mut world = World::running("K8sJobMode", json!({}));
    world.look();
    world.silence();
    world.look();
    assert!(world.status().job_status_check_failure_start_time.is_some());
    assert_eq!(world.condition(DASHBOARD_REACHABLE).unwrap().0, "False");
    world.replies(Reply::NotFound);
    world.look();
    assert!(world.status().job_status_check_failure_start_time.is_none());
    world.after(3600).look();
    assert_eq!(world.state(), State::Running, "a slow image pull");
}

#[test]
fn weak_26_a_wrong_id_is_not_asked_for_for_ever_and_can_be_corrected() {
    let interactive = || {
        let mut world = World::new("InteractiveMode", json!({"jobId": "wrong"}));
        world.until(State::Initializing);
        world.look();
        world.cluster_ready();
        world.until(State::Running);
        world.look();
        world.replies(Reply::NotFound);
        world
    };
    let mut world = interactive();
    world.after(299).look();
    assert_eq!(world.state(), State::Running);
    world.after(1).look();
    assert_eq!(world.summary(), "Failed/SubmissionFailed/");
    let mut world = interactive();
    world.edit(json!({"jobId": "right"}));
    world.look();
    assert_eq!(world.is_asked().unwrap().job_id, "right");
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Running//RUNNING");
}

#[test]
fn weak_27_c_60_a_failed_rayjob_does_not_leave_its_job_running() {
    let mut world = shared_cluster(json!({"clusterSelector": {"ray.io/cluster": "c"}, "activeDeadlineSeconds": 30}));
    world.after(30).look();
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/RUNNING");
    world.look();
    assert_eq!(world.is_asked().unwrap().purpose, Purpose::Stop);
    world.replies(Reply::StopSent);
    world.look();
    assert_eq!(world.is_asked().unwrap().purpose, Purpose::Stop);
    let message = world.status().message;
    world.says("STOPPED");
    let plan = world.look();
    assert_eq!((world.summary().as_str(), plan.inquiry), ("Failed/DeadlineExceeded/STOPPED", None));
    assert_eq!((world.status().message, world.status().failed), (message, Some(1)));
}

#[test]
fn weak_27_stopping_ends_after_a_time_and_a_late_submitter_is_removed() {
    let mut world = World::running("K8sJobMode", json!({"activeDeadlineSeconds": 30}));
    world.look();
    world.replies(Reply::NotFound);
    world.after(30).look();
    world.replies(Reply::NotFound);
    world.look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/");
    let plan = world.look();
    assert_eq!((actions(&plan), plan.inquiry.unwrap().purpose), (vec!["DeleteSubmitter"], Purpose::Stop));
    assert_eq!(world.after(301).look().inquiry, None);
}

#[test]
fn weak_28_a_vanished_cluster_is_a_failure() {
    let mut world = World::in_ray("HTTPMode", json!({"backoffLimit": 1}));
    world.seen.cluster = None;
    let plan = world.look();
    assert_eq!((world.summary().as_str(), actions(&plan)), ("Retrying/AppFailed/FAILED", vec![]));
    // Unless Ray has said before how the job ended.
    let mut world = World::in_ray("HTTPMode", json!({"backoffLimit": 1}));
    world.says("SUCCEEDED");
    world.seen.cluster = None;
    world.look();
    assert_eq!(world.summary(), "Complete//SUCCEEDED");
}

#[test]
fn weak_29_http_mode_does_not_run_a_lost_job_again() {
    let mut world = World::running("HTTPMode", json!({}));
    world.look();
    assert!(matches!(world.is_asked().unwrap().purpose, Purpose::Submit(_)));
    world.replies(Reply::Submitted);
    world.look();
    assert_eq!(world.state(), State::Running);
    world.says("RUNNING");
    world.look();
    assert_eq!(world.is_asked().unwrap().purpose, Purpose::Follow);
    world.replies(Reply::NotFound);
    world.look();
    assert_eq!(world.state(), State::Running, "one answer may be a mistake");
    world.after(5).look();
    assert_eq!(world.summary(), "Failed/AppFailed/FAILED");
}

#[test]
fn weak_30_workers_are_suspended_once() {
    let policy = json!({"onSuccess": {"policy": "DeleteWorkers"}, "onFailure": {"policy": "DeleteNone"}});
    let mut world = World::in_ray("HTTPMode", json!({"deletionStrategy": policy}));
    world.set_cluster(|cluster| {
        cluster.spec.worker_group_specs = Some(vec![shared::api::raycluster::WorkerGroupSpec::default()]);
    });
    world.says("SUCCEEDED");
    world.look();
    assert_eq!(actions(&world.look()), ["SuspendWorkers"]);
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
}
