#![allow(clippy::needless_pass_by_value)] // `json!` in the place of an argument reads better

use serde_json::json;
use shared::api::rayjob::SubmissionMode::{Http, K8sJob, Sidecar};

use super::*;

fn ray_job() -> RayJob {
    serde_json::from_value(json!({
        "metadata": {
            "name": "j", "namespace": "n", "uid": "u", "labels": {"team": "a"},
            "annotations": {"ray.io/ft-enabled": "true", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"entrypoint": "e", "rayClusterSpec": {"rayVersion": "2.54.0", "headGroupSpec": {"template": {"spec": {
            "restartPolicy": "Always", "containers": [{"name": "ray-head", "image": "ray:1"}, {"name": "side", "image": "s"}],
        }}}}},
    }))
    .unwrap()
}

fn made(mode: SubmissionMode, restarts: bool) -> RayCluster {
    let mut settings = Settings::default();
    settings.features = settings.features.with(Feature::SidecarSubmitterRestart, restarts);
    cluster(&ray_job(), mode, "j-abcde", "j-id", &settings).unwrap()
}

#[test]
fn rj_82_metadata() {
    let cluster = made(K8sJob, false);
    let metadata = cluster.metadata;
    assert_eq!((metadata.name.as_deref(), metadata.namespace.as_deref()), (Some("j-abcde"), Some("n")));
    let labels = metadata.labels.unwrap();
    let wanted = [
        ("team", "a"),
        ("ray.io/originated-from-cr-name", "j"),
        ("ray.io/originated-from-crd", "RayJob"),
        ("ray.io/job-submission-mode", "K8sJobMode"),
    ];
    assert!(wanted.iter().all(|(key, value)| labels[*key] == *value) && labels.len() == wanted.len());
    let owner = &metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("RayJob", "u", Some(true)));
}

#[test]
fn weak_33_what_kubectl_applied_is_not_copied() {
    let annotations = made(K8sJob, false).metadata.annotations.unwrap();
    assert_eq!(annotations.into_iter().collect::<Vec<_>>(), [("ray.io/ft-enabled".to_owned(), "true".to_owned())]);
}

#[test]
fn rj_82_the_spec_is_the_users() {
    for mode in [K8sJob, Http] {
        assert_eq!(Some(made(mode, true).spec), ray_job().spec.ray_cluster_spec);
    }
}

#[test]
fn rj_140_the_head_carries_the_submitter() {
    for (restarts, policy) in [(true, Some("OnFailure")), (false, None)] {
        let cluster = made(Sidecar, restarts);
        assert_eq!(cluster.metadata.annotations.unwrap()["ray.io/disable-provisioned-head-restart"], "true");
        let head = cluster.spec.head_group_spec.template.spec.unwrap();
        assert_eq!(head.restart_policy.as_deref(), Some("Never"));
        let names: Vec<&str> = head.containers.iter().map(|container| container.name.as_str()).collect();
        assert_eq!(names, ["ray-head", "side", "ray-job-submitter"], "Ray stays first (RJ-141)");
        assert_eq!(head.containers[2].restart_policy.as_deref(), policy);
    }
}

#[test]
fn a_cluster_needs_a_spec() {
    let mut job = ray_job();
    job.spec.ray_cluster_spec = None;
    assert_eq!(cluster(&job, Http, "c", "i", &Settings::default()), Err(SubmitError::NoClusterSpec));
}

#[test]
fn rj_84_weak_7_the_address_of_the_dashboard() {
    let address = |head: serde_json::Value| {
        let cluster: RayCluster =
            serde_json::from_value(json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {"headGroupSpec": head}})).unwrap();
        dashboard_address(&cluster, &Settings::default())
    };
    let template = |ports: serde_json::Value| json!({"spec": {"containers": [{"name": "h", "ports": ports}]}});
    assert_eq!(address(json!({"template": template(json!([]))})), "c-head-svc.n.svc.cluster.local:8265");
    assert_eq!(
        address(json!({"template": template(json!([{"name": "dashboard", "containerPort": 9}]))})),
        "c-head-svc.n.svc.cluster.local:9"
    );
    assert_eq!(
        address(json!({"template": template(json!([{"name": "gcs-server", "containerPort": 9}]))})),
        "c-head-svc.n.svc.cluster.local:8265"
    );
    let own = json!({"template": template(json!([])), "headService": {"metadata": {"name": "mine"}}});
    assert_eq!(address(own), "mine.n.svc.cluster.local:8265");
}
