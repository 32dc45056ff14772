//! The end of a cluster.

use std::time::Duration;

use api_tests::scene::{group, spec};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use shared::api::RayCluster;
use shared::labels::finalizer::GCS_FT_REDIS_CLEANUP;

use super::{event_reasons, scene};

fn redis() -> serde_json::Value {
    json!({ "gcsFaultToleranceOptions": { "redisAddress": "redis:6379" } })
}

#[tokio::test]
async fn reconcile_c_22_an_invalid_cluster_is_deleted_with_its_keys() {
    let scene = scene("redis").await;
    scene.cluster("c", spec(&[group("a", 1)], redis())).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    let held = scene.api::<RayCluster>().get("c").await.unwrap();
    assert_eq!(held.finalizers(), [GCS_FT_REDIS_CLEANUP], "it was there before the first Pod");
    scene.patch_group("c", "minReplicas", json!(5)).await.unwrap();
    scene.patch_group("c", "maxReplicas", json!(1)).await.unwrap();
    scene.delete::<RayCluster>("c").await.unwrap();
    scene.has_pods("c", 0, 0).await.unwrap();
    let jobs = scene.api::<Job>();
    let job = scene.until("the Job", async || Ok(jobs.list(&ListParams::default()).await?.items.pop())).await.unwrap();
    assert_eq!(job.name_any(), "c-redis-cleanup");
    assert!(scene.api::<RayCluster>().get_opt("c").await.unwrap().is_some(), "it stays until the Job has ended");
    // The Job controller wants to be told of its Pod; the operator only of the Job.
    let condition = |name: &str| json!({ "type": name, "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let started = async || Ok(jobs.get(&job.name_any()).await?.status.and_then(|status| status.start_time));
    scene.until("the Job to be taken up", started).await.unwrap();
    let ended = json!({ "status": { "conditions": [condition("FailureTarget")] } });
    jobs.patch_status(&job.name_any(), &PatchParams::default(), &Patch::Merge(ended)).await.unwrap();
    scene
        .until("the cluster to be gone", async || Ok(scene.api::<RayCluster>().get_opt("c").await?.is_none().then_some(())))
        .await
        .unwrap();
}

#[tokio::test]
async fn reconcile_rc_114_a_clean_up_that_never_ends_does_not_hold_for_ever() {
    let scene = scene("stuck").await;
    let object = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "name": "c", "annotations": { "ray.io/gcs-ft-deletion-timeout": "3" } },
        "spec": spec(&[], redis()),
    });
    scene.create::<RayCluster>(object).await.unwrap();
    scene.has_pods("c", 1, 0).await.unwrap();
    scene.delete::<RayCluster>("c").await.unwrap();
    let began = tokio::time::Instant::now();
    scene
        .until("the cluster to be gone", async || Ok(scene.api::<RayCluster>().get_opt("c").await?.is_none().then_some(())))
        .await
        .unwrap();
    assert!(began.elapsed() > Duration::from_secs(1), "the Job had its time");
    let told = async || Ok(event_reasons(&scene, "c").await.get("ForceDeletedStuckCluster").copied());
    scene.until("an event", told).await.unwrap();
}

#[tokio::test]
async fn reconcile_rc_117_fault_tolerance_switched_off_takes_the_finalizer_along() {
    let scene = scene("ft-off").await;
    scene.cluster("c", spec(&[], redis())).await.unwrap();
    scene.has_pods("c", 1, 0).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "spec": { "gcsFaultToleranceOptions": null } })).await.unwrap();
    let free = async || Ok(scene.api::<RayCluster>().get("c").await?.finalizers().is_empty().then_some(()));
    scene.until("the finalizer to go", free).await.unwrap();
}

#[tokio::test]
async fn reconcile_a_namespace_that_ends_is_not_held() {
    let scene = scene("ending").await;
    scene.cluster("c", spec(&[group("a", 1)], redis())).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(scene.client.clone());
    namespaces.delete(&scene.namespace, &kube::api::DeleteParams::default()).await.unwrap();
    let gone = async || Ok(namespaces.get_opt(&scene.namespace).await?.is_none().then_some(()));
    scene.until("the namespace to be gone", gone).await.unwrap();
}
