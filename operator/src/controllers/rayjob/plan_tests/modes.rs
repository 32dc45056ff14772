//! The four ways to submit, end to end (RJ-108, RJ-109, RJ-140..RJ-149), and clusters of others.

use serde_json::json;

use super::*;

#[test]
fn rj_108_k8s_job_mode() {
    let mut world = World::running("K8sJobMode", json!({}));
    let plan = world.look();
    assert_eq!(actions(&plan), ["EnsureHeadService"]);
    let asked = plan.inquiry.unwrap();
    assert_eq!((asked.purpose, asked.occasion, asked.announced), (Purpose::Follow, Occasion::Routine, true));
    assert_eq!(asked.endpoint.address, world.status().dashboard_url.into());
    world.replies(Reply::NotFound);
    world.look();
    assert_eq!(world.summary(), "Running//");
    world.says("PENDING");
    world.look();
    assert_eq!(world.summary(), "Running//PENDING");
    assert_eq!(world.condition("Running"), Some(("False".into(), "PENDING".into())));
    world.says("RUNNING");
    world.look();
    assert_eq!(world.condition("Running"), Some(("True".into(), "RUNNING".into())));
    world.says("FAILED");
    world.look();
    world.submitter_ends(true); // an application failure is none of the submitter
    let plan = world.look();
    assert_eq!(world.summary(), "Failed/AppFailed/FAILED");
    assert_eq!(plan.ended.unwrap().status, State::Failed);
    assert_eq!(world.condition("Failed"), Some(("True".into(), "AppFailed".into())));
    assert_eq!(world.condition("Succeeded"), Some(("False".into(), "AppFailed".into())));
}

#[test]
fn rj_109_http_mode_submits_what_the_user_wrote() {
    let entrypoint = "python a.py && echo \"$X\" | tee `id`";
    let mut world = World::running("HTTPMode", json!({"entrypoint": entrypoint, "runtimeEnvYAML": "env_vars: {A: \"b$c\"}"}));
    let plan = world.look();
    let Purpose::Submit(request) = plan.inquiry.unwrap().purpose else { panic!("nothing is submitted") };
    assert_eq!((request.entrypoint.as_str(), request.submission_id.as_str()), (entrypoint, world.status().job_id.as_str()));
    assert_eq!(request.runtime_env.as_ref().unwrap()["env_vars"]["A"], "b$c");
}

#[test]
fn rj_109_a_job_that_ray_refuses_fails_at_once() {
    let mut world = World::running("HTTPMode", json!({}));
    world.look();
    world.replies(Reply::Refused("HTTP 400: bad runtime env".to_owned()));
    world.look();
    assert_eq!(world.summary(), "Failed/SubmissionFailed/");
    let mut world = World::running("HTTPMode", json!({}));
    world.edit(json!({"entrypointResources": "[]"}));
    world.look();
    assert_eq!(world.summary(), "Failed/SubmissionFailed/");
}

#[test]
fn c_21_http_mode_with_an_invalid_spec_submits_nothing() {
    let mut world = World::running("HTTPMode", json!({}));
    world.spec_breaks();
    world.look();
    assert_eq!(world.is_asked().unwrap().purpose, Purpose::Follow);
}

#[test]
fn rj_143_rj_149_sidecar_mode_ends_with_its_head() {
    let mut world = World::in_ray("SidecarMode", json!({}));
    world.seen.head = None;
    world.look();
    assert_eq!(world.summary(), "Failed/AppFailed/FAILED");
    for phase in ["Failed", "Succeeded"] {
        let mut world = World::in_ray("SidecarMode", json!({"backoffLimit": 1}));
        world.set_head_phase(phase);
        world.look();
        assert_eq!(world.summary(), "Retrying/AppFailed/FAILED");
    }
}

#[test]
fn sidecar_mode_shows_the_job_while_workers_start() {
    let mut world = World::new("SidecarMode", json!({"preRunningDeadlineSeconds": 60}));
    world.until(State::Initializing);
    world.look();
    world.head("head-1", json!({}));
    world.look();
    world.says("RUNNING");
    world.look();
    assert_eq!(world.summary(), "Initializing//RUNNING");
    world.after(60).look();
    assert_eq!(world.summary(), "Failed/PreRunningDeadlineExceeded/RUNNING");
}

#[test]
fn rj_148_a_restarted_sidecar_changes_nothing() {
    let mut world = World::in_ray("SidecarMode", json!({}));
    let before = world.status();
    for state in [
        json!({"state": {"running": null, "terminated": {"exitCode": 137}}}),
        json!({"restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137}}}),
    ] {
        world.head("head-1", state);
        world.says("RUNNING");
        world.look();
    }
    assert_eq!((world.status().job_id, world.summary().as_str()), (before.job_id, "Running//RUNNING"));
    assert_eq!(world.told("SubmitterEnded"), 0);
}

#[test]
fn rj_81_a_shared_cluster_that_does_not_exist_is_waited_for() {
    let mut world = World::new("HTTPMode", json!({"clusterSelector": {"ray.io/cluster": "c"}, "rayClusterSpec": null}));
    world.look();
    let plan = world.look();
    assert_eq!((world.state(), actions(&plan)), (State::Initializing, vec![]));
    assert_eq!((world.told("RayClusterNotFound"), world.condition("ReadyToSubmit").unwrap().1.as_str()), (1, "ClusterNotFound"));
    assert!(world.status().message.contains('c'));
    assert!(plan.wake.unwrap() <= later(world.now, SignedDuration::from_secs(5)));
    world.look();
    assert_eq!(world.told("RayClusterNotFound"), 1);
    // Somebody else's cluster that is there wakes nobody when it becomes ready.
    world.seen.cluster = World::running("HTTPMode", json!({})).seen.cluster;
    world.set_cluster(|cluster| (cluster.metadata.owner_references, cluster.status) = (None, None));
    let plan = world.look();
    assert_eq!((world.state(), world.condition("ReadyToSubmit").unwrap().1.as_str()), (State::Initializing, "ClusterNotReady"));
    assert!(plan.wake.unwrap() <= later(world.now, SignedDuration::from_secs(5)));
}

#[test]
fn a_cluster_of_somebody_else_is_neither_used_nor_deleted() {
    let mut world = World::new("HTTPMode", json!({"shutdownAfterJobFinishes": true}));
    world.look();
    world.look();
    world.set_cluster(|cluster| cluster.metadata.owner_references = None);
    world.cluster_ready();
    world.look();
    assert_eq!((world.state(), world.condition("ReadyToSubmit").unwrap().1.as_str()), (State::Initializing, "NameConflict"));
    world.edit(json!({"suspend": true}));
    world.until(State::Suspended);
    assert!(world.seen.cluster.is_some());
}

#[test]
fn a_cluster_on_its_way_out_is_waited_for() {
    let mut world = World::new("HTTPMode", json!({}));
    world.look();
    world.look();
    world.set_cluster(|cluster| cluster.metadata.deletion_timestamp = Some(Time(START.parse().unwrap())));
    assert_eq!(actions(&world.look()), Vec::<&str>::new());
    world.seen.cluster = None;
    assert_eq!(actions(&world.look()), ["CreateCluster"]);
}

#[test]
fn rj_91_no_head_service_on_a_shared_cluster() {
    let mut world = World::new("HTTPMode", json!({"clusterSelector": {"ray.io/cluster": "c"}}));
    world.until(State::Initializing);
    world.seen.cluster = Some(Arc::new(serde_json::from_value(json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "other"},
        "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "image": "ray:1"}]}}}, "authOptions": {"mode": "token"}},
    })).unwrap()));
    world.cluster_ready();
    world.until(State::Running);
    let plan = world.look();
    assert_eq!(actions(&plan), Vec::<&str>::new());
    let endpoint = plan.inquiry.unwrap().endpoint;
    assert_eq!((&*endpoint.service, endpoint.token_secret.as_deref(), endpoint.port()), ("c-head-svc", Some("c"), "8265"));
}
