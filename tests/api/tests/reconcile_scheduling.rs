//! Gang schedulers at a real API server: PodGroups, and what Pods carry. The schedulers themselves are not there; where Pods are to run,
//! the test binds them to a fake node.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are tests

#[path = "reconcile_scheduling/clusters.rs"]
mod clusters;
#[path = "reconcile_scheduling/jobs.rs"]
mod jobs;
#[path = "reconcile_scheduling/refusals.rs"]
mod refusals;

use api_tests::gang;
use api_tests::scene::Scene;
use api_tests::server::{Server, Wanted, server_with};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::ListParams;
use operator::build::scheduling::pod_group::{Family, PodGroup};
use serde_json::Value;
use testcluster::api::FakeNodes;

/// The API server of this binary. Only RayJobs need Pods with addresses of this machine, which takes root.
async fn server() -> &'static Server {
    let local_pods = testcluster::platform::require_linux_root().is_ok();
    let nodes = FakeNodes { count: 1, local_pods, pod_cidr: "10.90.0.0/16".to_owned(), ..FakeNodes::default() };
    let server = server_with(Wanted { fake_nodes: Some(nodes) });
    gang::install(server).await.unwrap();
    server
}

/// A namespace with an operator for this scheduler.
async fn scene(scheduler: &str, prefix: &str) -> Scene {
    let mut scene = Scene::without_operator(server().await, prefix).await.unwrap();
    scene.start_with(&[&format!("--batch-scheduler={scheduler}"), "--use-kubernetes-proxy"]).await.unwrap();
    scene
}

/// Waits until there is a group of this name that asks for so many Pods.
async fn group_of<F: Family>(scene: &Scene, name: &str, members: i32) -> PodGroup<F> {
    let groups = scene.api::<PodGroup<F>>();
    let probe = async || Ok(groups.get_opt(name).await?.filter(|group| group.spec.min_member == members));
    match scene.until(&format!("{name} of {members}"), probe).await {
        Ok(group) => group,
        Err(error) => panic!("{error:#}\n{:?}", groups.get_opt(name).await),
    }
}

/// Amounts of resources as `name=amount`, in order.
fn resources<F: Family>(group: &PodGroup<F>) -> String {
    group.spec.min_resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
}

/// When an object was changed last, as a number that grows with every change of anything.
fn version(object: &impl kube::Resource) -> u64 {
    object.meta().resource_version.as_ref().unwrap().parse().unwrap()
}

/// Gives the Ray container of a group, or of the head, these requests.
fn asking(mut group: Value, cpu: &str) -> Value {
    group["template"]["spec"]["containers"][0]["resources"] = serde_json::json!({ "requests": { "cpu": cpu } });
    group
}

/// How many events of this reason were told about an object.
async fn told(scene: &Scene, name: &str, reason: &str) -> usize {
    let events = scene.api::<Event>().list(&ListParams::default()).await.unwrap();
    let about = |event: &Event| event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref()) == Some(name);
    events.iter().filter(|event| about(event) && event.reason.as_deref() == Some(reason)).count()
}

/// Waits until an event of this reason was told about an object, once.
async fn told_once(scene: &Scene, name: &str, reason: &str) {
    scene.until(reason, async || Ok((told(scene, name, reason).await == 1).then_some(()))).await.unwrap();
}

/// A label or an annotation of an object.
fn mark<'a>(object: &'a impl kube::Resource, key: &str) -> Option<&'a str> {
    object.labels().get(key).or_else(|| object.annotations().get(key)).map(String::as_str)
}
