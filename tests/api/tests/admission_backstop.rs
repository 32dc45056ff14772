//! The operator goes by the file of rules that only warn: what the webhook lets in with a warning is worked on, and nothing else is.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use api_tests::scene::{group, spec};
use api_tests::{Scene, server};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use shared::api::{RayCluster, RayClusterStatus, RayJob};

/// A cluster that breaks N-C-7, a rule that KubeRay does not have.
fn cluster() -> Value {
    let mut spec = spec(&[group("a", 1)], json!({}));
    spec["headGroupSpec"]["rayStartParams"] = json!({"num-cpus": "two"});
    spec
}

/// What the status says is wrong.
fn problem(status: &RayClusterStatus) -> Option<&str> {
    let invalid = status.conditions.iter().find(|condition| condition.type_ == "SpecValid" && condition.status == "False");
    invalid.map(|condition| condition.message.as_str())
}

#[tokio::test]
async fn reconcile_goes_by_the_rules_that_only_warn() {
    let mut scene = Scene::without_operator(server(), "softened").await.unwrap();
    let file = scene.folder().join("rules.yaml");
    std::fs::write(&file, "").unwrap();
    let flag = format!("--rules-file={}", file.display());
    scene.start_in(&[&flag], &[("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "1")]).await.unwrap();
    scene.cluster("c", cluster()).await.unwrap();
    let names = |field: &'static str| move |status: &RayClusterStatus| problem(status).is_some_and(|message| message.contains(field));
    scene.status("c", "the problem", names("num-cpus")).await.unwrap();
    assert!(scene.pods("c", "").await.unwrap().is_empty());

    // A list that does not fit, then a namespace that comes to fit it: no restart, and nobody touches the cluster.
    std::fs::write(&file, "warnOnly: [{rules: [N-C-7], namespaces: {matchLabels: {admission: soft}}}]").unwrap();
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"admission": "soft"}}}));
    namespaces.patch(&scene.namespace, &PatchParams::default(), &label).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    scene.status("c", "no problem", |status| problem(status).is_none()).await.unwrap();

    // A job, and the cluster made for it.
    let job = json!({"entrypoint": "python a.py", "submissionMode": "HTTPMode", "rayClusterSpec": cluster()});
    scene.create::<RayJob>(json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "j"}, "spec": job})).await.unwrap();
    let child = scene
        .until("the job's cluster", async || {
            let status = scene.api::<RayJob>().get("j").await?.status;
            Ok(status.map(|status| status.ray_cluster_name).filter(|name| !name.is_empty()))
        })
        .await
        .unwrap();
    scene.has_pods(&child, 1, 1).await.unwrap();

    // KubeRay's own rules never only warn.
    let mut wrong = group("a", 1);
    wrong["minReplicas"] = json!(20);
    scene.patch::<RayCluster>("c", json!({"spec": {"workerGroupSpecs": [wrong]}})).await.unwrap();
    let shown = scene.status("c", "the next problem", names("minReplicas")).await.unwrap();
    let message = shown.status.as_ref().and_then(problem).unwrap();
    assert!(!message.contains("num-cpus"), "{message}");
}
