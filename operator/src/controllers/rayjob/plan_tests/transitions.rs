//! Each row of the transition table (spec section 2.12).

use serde_json::json;

use super::*;

#[test]
fn row_new_to_initializing_rj_30_rj_31() {
    let mut world = World::new("K8sJobMode", json!({}));
    let plan = world.look();
    assert_eq!(actions(&plan), ["AddFinalizer"]);
    let status = world.status();
    assert_eq!(status.job_deployment_status, State::Initializing);
    assert_eq!((status.job_id.as_str(), status.ray_cluster_name.as_str()), ("j-id1", "j-cl1"));
    assert_eq!(status.start_time.unwrap().0.to_string(), START);
    assert_eq!((status.succeeded, status.failed), (Some(0), Some(0)));
    assert_eq!(status.observed_generation, 1);
    assert_eq!(world.told("Started"), 1);
}

#[test]
fn row_new_names_chosen_by_the_user_rj_31() {
    let mut world = World::new("HTTPMode", json!({"jobId": "mine", "clusterSelector": {"ray.io/cluster": "shared"}}));
    world.look();
    assert_eq!((world.status().job_id.as_str(), world.status().ray_cluster_name.as_str()), ("mine", "shared"));
    let mut world = World::new("InteractiveMode", json!({"jobId": "later"}));
    world.look();
    assert_eq!(world.status().job_id, "");
}

#[test]
fn row_new_held_from_the_start_goes_to_suspended_rj_32() {
    let mut world = World::new("HTTPMode", json!({"suspend": true, "shutdownAfterJobFinishes": true}));
    world.look();
    assert_eq!(world.state(), State::Suspended);
    assert!(world.seen.cluster.is_none() && world.status().start_time.is_none());
    assert_eq!(world.condition("Suspended"), Some(("True".into(), "Suspended".into())));
}

#[test]
fn row_initializing_suspend() {
    let mut world = World::new("HTTPMode", json!({"shutdownAfterJobFinishes": true}));
    world.look();
    world.look();
    world.edit(json!({"suspend": true}));
    world.look();
    assert_eq!(world.state(), State::Suspending);
    world.until(State::Suspended);
    assert!(world.seen.cluster.is_none());
}

#[test]
fn row_initializing_deadlines_rj_62_rj_63() {
    let table = [
        (json!({"activeDeadlineSeconds": 10}), "Failed/DeadlineExceeded/"),
        (json!({"activeDeadlineSeconds": 10, "backoffLimit": 3}), "Failed/DeadlineExceeded/"),
        (json!({"preRunningDeadlineSeconds": 10}), "Failed/PreRunningDeadlineExceeded/"),
        (json!({"preRunningDeadlineSeconds": 10, "backoffLimit": 3}), "Retrying/PreRunningDeadlineExceeded/"),
    ];
    for (spec, wanted) in table {
        let mut world = World::new("HTTPMode", spec.clone());
        world.look();
        let plan = world.look();
        assert_eq!(plan.wake.unwrap(), later(world.now, SignedDuration::from_secs(10)), "{spec}");
        world.after(9).look();
        assert_eq!(world.state(), State::Initializing, "{spec}");
        world.after(1).look();
        assert_eq!(world.summary(), wanted, "{spec}");
        assert_eq!(world.status().end_time.is_some(), world.state() == State::Failed, "{spec}");
    }
}

#[test]
fn row_initializing_mirrors_a_cluster_that_is_not_ready_rj_37_c_50() {
    let mut world = World::new("HTTPMode", json!({}));
    world.look();
    assert_eq!(actions(&world.look()), ["CreateCluster"]);
    world.set_cluster(|cluster| {
        let status = json!({"reason": "ErrImagePull: container w of Pod p: no such image", "desiredWorkerReplicas": 1});
        cluster.status = Some(serde_json::from_value(status).unwrap());
    });
    world.look();
    let status = world.status();
    assert_eq!((status.job_deployment_status, status.ray_cluster_status.desired_worker_replicas), (State::Initializing, 1));
    assert!(status.message.contains("no such image"));
    assert_eq!(world.condition("ReadyToSubmit"), Some(("False".into(), "ErrImagePull".into())));
    assert!(status.dashboard_url.is_empty());
}

#[test]
fn row_initializing_ready_by_mode_rj_38() {
    let table = [
        ("K8sJobMode", State::Running, vec!["CreateSubmitter"]),
        ("HTTPMode", State::Running, vec![]),
        ("SidecarMode", State::Running, vec![]),
        ("InteractiveMode", State::Waiting, vec![]),
    ];
    for (mode, wanted, acts) in table {
        let mut world = World::new(mode, json!({}));
        world.until(State::Initializing);
        world.look();
        world.cluster_ready();
        let plan = world.look();
        assert_eq!((world.state(), actions(&plan)), (wanted, acts), "{mode}");
        assert_eq!(
            world.status().dashboard_url,
            format!("{}-head-svc.n.svc.cluster.local:8265", world.status().ray_cluster_name),
            "{mode}"
        );
        assert_eq!(world.condition("ReadyToSubmit"), Some(("True".into(), "ClusterReady".into())), "{mode}");
        assert_eq!(world.status().message.is_empty(), mode != "InteractiveMode", "{mode}");
    }
}

#[test]
fn row_waiting_rj_39() {
    let mut world = World::new("InteractiveMode", json!({}));
    world.until(State::Initializing);
    world.look();
    world.cluster_ready();
    world.until(State::Waiting);
    world.after(100).look();
    assert_eq!(world.state(), State::Waiting);
    world.edit(json!({"jobId": "by-hand"}));
    world.look();
    assert_eq!((world.state(), world.status().job_id.as_str()), (State::Running, "by-hand"));
    world.look();
    assert_eq!(world.is_asked().unwrap().job_id, "by-hand");
}

#[test]
fn row_waiting_pre_running_deadline() {
    let mut world = World::new("InteractiveMode", json!({"preRunningDeadlineSeconds": 20}));
    world.until(State::Initializing);
    world.look();
    world.cluster_ready();
    world.until(State::Waiting);
    world.after(20).look();
    assert_eq!(world.summary(), "Failed/PreRunningDeadlineExceeded/");
}

#[test]
fn row_running_suspend_rj_50_rj_53_rj_54() {
    let mut world = World::in_ray("K8sJobMode", json!({"shutdownAfterJobFinishes": true}));
    let (id, cluster) = (world.status().job_id, world.status().ray_cluster_name);
    world.edit(json!({"suspend": true}));
    world.look();
    assert_eq!(world.state(), State::Suspending);
    // Ray is told to stop the job first; the submitter goes at once.
    let plan = world.look();
    assert_eq!((actions(&plan), plan.inquiry.unwrap().purpose), (vec!["DeleteSubmitter"], Purpose::Stop));
    // Suspension, once begun, is completed.
    world.edit(json!({"suspend": false}));
    world.replies(Reply::StopSent);
    assert_eq!(actions(&world.look()), ["DeleteCluster"]);
    world.look();
    let status = world.status();
    assert_eq!(status.job_deployment_status, State::Suspended);
    assert_eq!(
        (status.job_id.as_str(), status.ray_cluster_name.as_str(), status.dashboard_url.as_str(), status.job_status.as_str()),
        ("", "", "", "")
    );
    world.after(60).look();
    let status = world.status();
    assert_eq!(status.job_deployment_status, State::Initializing);
    assert!(status.job_id != id && status.ray_cluster_name != cluster);
    assert_eq!(status.start_time.unwrap().0, world.now);
    assert_eq!(world.told("Resumed"), 1);
}

#[test]
fn row_suspended_stays_without_a_timer_c_43() {
    let mut world = World::new("HTTPMode", json!({"suspend": true, "shutdownAfterJobFinishes": true}));
    world.look();
    let before = world.status();
    let plan = world.after(1000).look();
    assert_eq!((plan.wake, plan.inquiry, plan.status), (None, None, before));
}

#[test]
fn row_running_active_deadline_asks_ray_first() {
    let mut world = World::in_ray("HTTPMode", json!({"activeDeadlineSeconds": 60, "backoffLimit": 5}));
    world.after(60).look();
    assert_eq!((world.state(), world.is_asked().unwrap().occasion), (State::Running, Occasion::DeadlinePassed));
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Failed/DeadlineExceeded/RUNNING");
    assert_eq!(world.status().failed, Some(1));
}

#[test]
fn row_running_status_check_timeout_rj_47_rj_65() {
    let mut world = World::in_ray("HTTPMode", json!({"backoffLimit": 5}));
    world.silence();
    world.look();
    let since = world.status().job_status_check_failure_start_time.unwrap().0;
    assert_eq!(since, world.now);
    assert_eq!(world.told("DashboardUnreachable"), 1);
    world.after(299).look();
    assert_eq!(world.state(), State::Running);
    world.after(1).look();
    assert_eq!(world.summary(), "Failed/JobStatusCheckTimeoutExceeded/RUNNING");
    assert_eq!(world.status().job_status_check_failure_start_time.unwrap().0, since);
}

#[test]
fn row_running_grace_rj_64() {
    for (said, wanted) in [
        ("SUCCEEDED", "Complete/JobDeploymentStatusTransitionGracePeriodExceeded/SUCCEEDED"),
        ("FAILED", "Failed/JobDeploymentStatusTransitionGracePeriodExceeded/FAILED"),
    ] {
        let mut world = World::in_ray("K8sJobMode", json!({}));
        world.says(said);
        let plan = world.look();
        assert_eq!((world.state(), plan.inquiry), (State::Running, None), "the submitter still shows logs");
        world.after(299).look();
        assert_eq!(world.state(), State::Running);
        world.after(1).look();
        assert_eq!(world.summary(), wanted);
    }
}

#[test]
fn row_running_submitter_failed_before_ray_got_the_job() {
    let mut world = World::running("K8sJobMode", json!({}));
    world.look();
    world.submitter_ends(false);
    world.look();
    assert_eq!((world.state(), world.is_asked().unwrap().occasion), (State::Running, Occasion::SubmitterEnded));
    world.replies(Reply::NotFound);
    world.look();
    assert_eq!(world.summary(), "Failed/SubmissionFailed/");
    assert!(world.status().message.contains("its Job failed: R"));
}

#[test]
fn row_running_submitter_finished_and_ray_knows_nothing_rj_46() {
    let mut world = World::running("K8sJobMode", json!({}));
    world.submitter_ends(true);
    world.look();
    world.replies(Reply::NotFound);
    world.look();
    assert_eq!(world.summary(), "Failed/AppFailed/");
}

#[test]
fn row_running_job_ends_with_its_submitter_rj_48_rj_49() {
    let table =
        [("SUCCEEDED", "Complete//SUCCEEDED", 1, 0), ("FAILED", "Failed/AppFailed/FAILED", 0, 1), ("STOPPED", "Complete//STOPPED", 0, 0)];
    for mode in ["K8sJobMode", "SidecarMode", "HTTPMode"] {
        for (said, wanted, succeeded, failed) in table {
            let mut world = World::in_ray(mode, json!({}));
            world.after(30).says(said);
            world.look();
            if mode != "HTTPMode" {
                assert_eq!(world.state(), State::Running, "{mode} {said}");
                world.submitter_ends(true);
                world.look();
            }
            let status = world.status();
            assert_eq!(world.summary(), wanted, "{mode} {said}");
            assert_eq!((status.succeeded, status.failed), (Some(succeeded), Some(failed)), "{mode} {said}");
            assert_eq!(status.message, format!("said {said}"), "{mode}");
            assert_eq!(status.end_time.unwrap().0, world.now);
            assert_eq!(status.ray_job_info.start_time.unwrap().0.to_string(), START);
            assert_eq!(status.ray_job_info.end_time.unwrap().0, world.now);
        }
    }
}

#[test]
fn row_retrying_to_a_new_try_rj_53_rj_60() {
    let mut world = World::in_ray("K8sJobMode", json!({"backoffLimit": 1}));
    let first = world.status();
    world.says("FAILED");
    world.submitter_ends(true);
    let plan = world.look();
    assert_eq!((world.state(), world.status().failed, world.status().end_time), (State::Retrying, Some(1), None));
    assert_eq!(plan.ended.unwrap(), Ended { status: State::Retrying, retry: 0, took: SignedDuration::ZERO });
    let plan = world.look();
    assert_eq!(actions(&plan), ["DeleteCluster", "DeleteSubmitter"]);
    world.after(5).look();
    let second = world.status();
    assert_eq!(second.job_deployment_status, State::Initializing);
    assert!(second.job_id != first.job_id && second.ray_cluster_name != first.ray_cluster_name);
    assert_eq!((second.reason.as_str(), second.job_status.as_str(), second.failed), ("", "", Some(1)));
    assert_eq!(second.start_time.unwrap().0, world.now);
}

#[test]
fn row_any_validation_error_rj_23() {
    let mut world = World::new("HTTPMode", json!({}));
    world.spec_breaks();
    let plan = world.look();
    assert_eq!(world.summary(), "ValidationFailed/ValidationFailed/");
    assert_eq!((plan.wake, actions(&plan)), (None, vec![]));
    assert_eq!(world.told("InvalidRayJobSpec"), 1);
    assert_eq!(world.condition("SpecValid"), Some(("False".into(), "InvalidSpec".into())));
    world.look();
    assert_eq!(world.told("InvalidRayJobSpec"), 1, "told once");
}

#[test]
fn row_finished_states_stay() {
    let mut world = World::in_ray("HTTPMode", json!({}));
    world.says("SUCCEEDED");
    world.look();
    let done = world.status();
    world.edit(json!({"suspend": true, "shutdownAfterJobFinishes": true}));
    world.after(1).look();
    assert_eq!(State::Complete, world.state(), "T-6");
    assert_eq!((world.status().end_time, world.status().succeeded), (done.end_time, done.succeeded));
}

#[test]
fn unknown_states_are_left_alone_rj_25() {
    let mut world = World::new("HTTPMode", json!({}));
    world.patch_status(json!({"jobDeploymentStatus": "Dreaming"}));
    let plan = world.think();
    assert_eq!((plan.actions.len(), plan.wake, plan.inquiry), (0, None, None));
    assert_eq!(plan.status.job_deployment_status, State::Unknown);
}
