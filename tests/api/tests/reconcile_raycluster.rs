//! RayClusters at a real API server. Nobody runs the Pods: the tests say how they fare.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "reconcile_raycluster/children.rs"]
mod children;
#[path = "reconcile_raycluster/deletion.rs"]
mod deletion;
#[path = "reconcile_raycluster/pods.rs"]
mod pods;
#[path = "reconcile_raycluster/status.rs"]
mod status;
#[path = "reconcile_raycluster/takeover.rs"]
mod takeover;

use api_tests::{Scene, server};

async fn scene(prefix: &str) -> Scene {
    Scene::new(server(), prefix).await.unwrap()
}

/// Reason and status of a condition.
fn condition<'a>(cluster: &'a shared::api::RayCluster, name: &str) -> Option<(&'a str, &'a str)> {
    let conditions = &cluster.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == name).map(|condition| (condition.status.as_str(), condition.reason.as_str()))
}

/// Reasons of the events about an object, each once.
async fn event_reasons(scene: &Scene, name: &str) -> std::collections::BTreeMap<String, usize> {
    let events = scene.api::<k8s_openapi::api::events::v1::Event>().list(&kube::api::ListParams::default()).await.unwrap();
    let mut reasons = std::collections::BTreeMap::new();
    for event in events {
        if event.regarding.and_then(|regarding| regarding.name).as_deref() == Some(name) {
            *reasons.entry(event.reason.unwrap_or_default()).or_default() += 1;
        }
    }
    reasons
}
