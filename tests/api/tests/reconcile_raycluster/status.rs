//! What the status and the events tell.

use api_tests::scene::{group, spec};
use kube::ResourceExt;
use serde_json::json;
use shared::api::RayCluster;

use super::{condition, event_reasons, scene};

#[tokio::test]
async fn reconcile_an_invalid_spec_makes_nothing_says_so_and_heals() {
    let scene = scene("invalid").await;
    scene.cluster("c", spec(&[group("a", 1), group("a", 3)], json!({}))).await.unwrap();
    let shown = scene
        .status("c", "the problem", |status| status.conditions.iter().any(|c| c.type_ == "SpecValid" && c.status == "False"))
        .await
        .unwrap();
    let message = shown.status.as_ref().unwrap().conditions.iter().find(|c| c.type_ == "SpecValid").unwrap().message.clone();
    assert!(message.contains("spec.workerGroupSpecs[1].groupName"), "{message}");
    assert!(scene.pods("c", "").await.unwrap().is_empty());
    let told = async || Ok(event_reasons(&scene, "c").await.get("InvalidRayClusterSpec").copied());
    assert_eq!(scene.until("an event", told).await.unwrap(), 1);

    scene.patch::<RayCluster>("c", json!({ "spec": { "workerGroupSpecs": [group("a", 1)] } })).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    let ready = scene.run_to_ready("c").await.unwrap();
    assert_eq!(condition(&ready, "SpecValid"), None);
    let before = scene.pods("c", "").await.unwrap();

    // Running Pods are left alone while the spec is wrong, C-03b included.
    let mut wrong = group("a", 1);
    (wrong["minReplicas"], wrong["maxReplicas"], wrong["numOfHosts"]) = (json!(5), json!(1), json!(0));
    scene.patch::<RayCluster>("c", json!({ "spec": { "workerGroupSpecs": [wrong] } })).await.unwrap();
    scene
        .status("c", "the next problem", |status| status.conditions.iter().any(|c| c.type_ == "SpecValid" && c.status == "False"))
        .await
        .unwrap();
    let after = scene.pods("c", "").await.unwrap();
    assert_eq!(before.iter().map(ResourceExt::uid).collect::<Vec<_>>(), after.iter().map(ResourceExt::uid).collect::<Vec<_>>());
}

#[tokio::test]
async fn reconcile_c_50_the_cause_of_a_blocked_pod_reaches_the_status() {
    let scene = scene("cause").await;
    scene.cluster("c", spec(&[group("a", 1)], json!({}))).await.unwrap();
    let pods = scene.has_pods("c", 1, 1).await.unwrap();
    for pod in pods {
        if pod.labels()["ray.io/node-type"] == "head" {
            scene.make_ready(&pod).await.unwrap();
        } else {
            let waiting = json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } });
            let status = json!({ "name": "ray-worker", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": waiting });
            scene.set_pod(&pod, json!({ "phase": "Pending", "containerStatuses": [status] })).await.unwrap();
        }
    }
    let shown = scene.status("c", "the cause", |status| status.reason.starts_with("ErrImagePull")).await.unwrap();
    assert_eq!(condition(&shown, "PodsBlocked"), Some(("True", "ErrImagePull")));
    assert_eq!(condition(&shown, "HeadPodReady").unwrap().0, "True");
}

#[tokio::test]
async fn reconcile_the_state_is_true_at_any_time() {
    let scene = scene("truth").await;
    scene.cluster("c", spec(&[group("a", 1)], json!({}))).await.unwrap();
    let ready = scene.run_to_ready("c").await.unwrap();
    let status = ready.status.unwrap();
    assert_eq!((status.desired_worker_replicas, status.ready_worker_replicas, status.available_worker_replicas), (1, 1, 1));
    assert_eq!(status.head.service_name, "c-head-svc");
    assert_eq!((status.head.pod_ip.as_str(), status.head.service_ip.as_str()), ("10.0.0.1", "10.0.0.1"));
    assert_eq!(status.endpoints["dashboard"], "8265");
    assert_eq!(status.observed_generation, 1);
    let worker = scene.pods("c", "worker").await.unwrap().remove(0);
    scene.set_pod(&worker, json!({ "conditions": [{ "type": "Ready", "status": "False" }] })).await.unwrap();
    let unready = scene.status("c", "the state to be no longer ready", |status| status.state.is_empty()).await.unwrap();
    assert_eq!(condition(&unready, "RayClusterProvisioned").unwrap().0, "True", "that it was complete once stays true");
    scene.make_ready(&worker).await.unwrap();
    scene.status("c", "the state to be ready again", |status| status.state == "ready").await.unwrap();
}
