//! API servers with other definitions than ours: none, older ones, newer ones, and ones that let anything through.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::path::Path;
use std::time::Duration;

use api_tests::{Program, program::binary};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testcluster::api::{ApiServer, Options};
use testcluster::local::free_port;
use testcluster::progress::Progress;
use testcluster::wait;

const PATIENCE: Duration = Duration::from_secs(30);

async fn server(crds: Vec<CustomResourceDefinition>) -> ApiServer {
    let _ = rustls::crypto::ring::default_provider().install_default();
    ApiServer::start(Options { crds, controller_manager: false, progress: Progress::stderr(), ..Options::default() }).await.unwrap()
}

/// Our definitions without a schema.
fn anything_goes() -> Vec<CustomResourceDefinition> {
    let mut definitions = shared::crd::all();
    for version in definitions.iter_mut().flat_map(|definition| definition["spec"]["versions"].as_array_mut().unwrap()) {
        version["schema"] = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    }
    definitions.into_iter().map(|definition| serde_json::from_value(definition).unwrap()).collect()
}

fn clusters(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &resource("RayCluster"))
}

async fn create(client: &Client, name: &str, spec: &Value) {
    let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": name }, "spec": spec });
    clusters(client).create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn good() -> Value {
    json!({ "headGroupSpec": { "rayStartParams": {}, "template": { "spec": { "containers": [{ "name": "ray-head", "image": "ray:2.54.1" }] } } } })
}

async fn head(client: &Client, cluster: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let selector = ListParams::default().labels(&format!("ray.io/cluster={cluster},ray.io/node-type=head"));
    let head = wait::until("a head Pod", PATIENCE, || async { Ok(pods.list(&selector).await?.items.pop()) });
    head.await.unwrap_or_else(|error| panic!("{cluster}: {error}"));
}

async fn told(client: &Client, cluster: &str, reason: &str) {
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let selector = ListParams::default().fields(&format!("regarding.name={cluster},reason={reason}"));
    wait::until(reason, PATIENCE, || async { Ok(events.list(&selector).await?.items.pop()) }).await.unwrap();
}

#[tokio::test]
async fn runtime_an_object_that_cannot_be_read_stops_nobody() {
    let server = server(anything_goes()).await;
    let client = server.client();
    // Without the controller-manager nobody makes it, and no Pod is admitted without it.
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default" } });
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    create(&client, "bad-before", &json!({ "headGroupSpec": 7 })).await;
    create(&client, "good-before", &good()).await;
    let folder = tempfile::tempdir().unwrap();
    let program = Program::operator(folder.path(), &server.kubeconfig_path(), &["--enable-leader-election=false"], &[]).await.unwrap();
    head(&client, "good-before").await;
    create(&client, "bad-after", &json!({ "headGroupSpec": { "template": [] }, "workerGroupSpecs": "none" })).await;
    create(&client, "good-after", &good()).await;
    head(&client, "good-after").await;
    // It heals with the object.
    let heal = json!({ "spec": { "headGroupSpec": null } });
    clusters(&client).patch("bad-before", &PatchParams::default(), &Patch::Merge(&heal)).await.unwrap();
    let heal = json!({ "spec": good() });
    clusters(&client).patch("bad-before", &PatchParams::default(), &Patch::Merge(&heal)).await.unwrap();
    head(&client, "bad-before").await;
    told(&client, "bad-after", "CannotBeRead").await;
    let log = program.log();
    assert_eq!(log.matches("default/bad-after cannot be read").count(), 1, "{log}");
    // Its deletion does not wait until it heals, and takes off no finalizer of others.
    let held = json!({ "metadata": { "finalizers": ["ray.io/gcs-ft-redis-cleanup-finalizer", "example.com/other"] } });
    clusters(&client).patch("bad-after", &PatchParams::default(), &Patch::Merge(&held)).await.unwrap();
    clusters(&client).delete("bad-after", &DeleteParams::default()).await.unwrap();
    told(&client, "bad-after", "ReleasedUnreadable").await;
    let left = clusters(&client).get_metadata("bad-after").await.unwrap().metadata.finalizers;
    assert_eq!(left, Some(vec!["example.com/other".to_owned()]));
    program.terminate().await.unwrap();
    server.stop().await.unwrap();
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("ray.io", "v1", kind))
}

#[allow(clippy::disallowed_methods, reason = "when a tick came is for the wall clock to say")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// A RayJob of a schedule with a field of the wrong type and a status that says that it ended: nobody knows whether that is true.
#[tokio::test]
async fn runtime_a_rayjob_that_cannot_be_read_counts_for_its_schedule_and_is_kept() {
    let server = server(anything_goes()).await;
    let client = server.client();
    let [schedules, jobs]: [Api<DynamicObject>; 2] =
        ["RayCronJob", "RayJob"].map(|kind| Api::namespaced_with(client.clone(), "default", &resource(kind)));
    let make = async |api: &Api<DynamicObject>, object: Value| {
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
    };
    let spec = json!({
        "schedule": "*/5 * * * *", "suspend": true, "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0,
        "jobTemplate": {
            "entrypoint": "e", "submissionMode": "HTTPMode", "suspend": true, "shutdownAfterJobFinishes": true, "rayClusterSpec": good(),
        },
    });
    let schedule =
        make(&schedules, json!({ "apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": { "name": "k" }, "spec": spec })).await;
    let owner = json!([{ "apiVersion": "ray.io/v1", "kind": "RayCronJob", "name": "k", "uid": schedule.uid(), "controller": true }]);
    for (name, status) in [("k-complete", "Complete"), ("k-failed", "Failed")] {
        let metadata = json!({ "name": name, "labels": { "ray.io/cronjob-name": "k" }, "ownerReferences": owner });
        make(&jobs, json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": { "entrypoint": 7 } })).await;
        let ended = json!({ "status": { "jobDeploymentStatus": status, "endTime": "2024-01-01T00:00:00Z" } });
        jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&ended)).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--enable-leader-election=false", "--feature-gates=RayCronJob=true"];
    let program = Program::operator(folder.path(), &server.kubeconfig_path(), &flags, &[]).await.unwrap();
    told(&client, "k-complete", "CannotBeRead").await;

    // A tick has come while the operator was away.
    let before = now() - jiff::SignedDuration::from_secs(400);
    let last = json!({ "status": { "lastScheduleTime": format!("{before:.0}") } });
    schedules.patch_status("k", &PatchParams::default(), &Patch::Merge(&last)).await.unwrap();
    schedules.patch("k", &PatchParams::default(), &Patch::Merge(&json!({ "spec": { "suspend": false } }))).await.unwrap();
    let said = || async {
        let status = schedules.get("k").await?.data["status"].take();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let waits = conditions.into_iter().find(|condition| condition["reason"] == "EarlierRayJobActive");
        Ok(waits.map(|condition| (condition["message"].as_str().unwrap_or_default().to_owned(), status["active"].clone())))
    };
    let (text, active) = wait::until("a word about it", PATIENCE, said).await.unwrap_or_else(|error| panic!("{error}\n{}", program.log()));
    assert!(text.contains("which cannot be read") && text.contains("k-complete"), "{text}");
    assert_eq!(active, json!(["k-complete", "k-failed"]));
    told(&client, "k", "EarlierRayJobActive").await;
    let names: Vec<String> = jobs.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["k-complete", "k-failed"], "nothing made, nothing deleted");

    // Corrected, they are what their status says: beyond the limits, and no longer in the way.
    for name in &names {
        let correct = json!({ "spec": { "entrypoint": "e", "submissionMode": "HTTPMode", "rayClusterSpec": good() } });
        jobs.patch(name, &PatchParams::default(), &Patch::Merge(&correct)).await.unwrap();
    }
    let next = || async {
        let names: Vec<String> = jobs.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        Ok((names.len() == 1 && !names[0].starts_with("k-c") && !names[0].starts_with("k-f")).then_some(()))
    };
    wait::until("the RayJob of the tick alone", PATIENCE, next).await.unwrap_or_else(|error| panic!("{error}\n{}", program.log()));
    program.terminate().await.unwrap();
    server.stop().await.unwrap();
}

async fn readiness(port: u16) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await else { return String::new() };
    let mut answer = String::new();
    let _ = stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await;
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

fn start(kubeconfig: &Path, port: u16, flags: &[&str]) -> tokio::process::Child {
    let mut command = tokio::process::Command::new(binary("kuberay-operator"));
    command.arg(format!("--kubeconfig={}", kubeconfig.display())).args(["--metrics-addr=0", "--leader-election-namespace=default"]);
    command.arg(format!("--health-probe-bind-address=127.0.0.1:{port}")).args(flags).kill_on_drop(true);
    command.stdout(std::process::Stdio::piped()).spawn().unwrap()
}

async fn wait_ready(port: u16) {
    wait::until("readiness", PATIENCE, || async { Ok(readiness(port).await.starts_with("HTTP/1.0 200").then_some(())) }).await.unwrap();
}

#[tokio::test]
async fn runtime_missing_definitions_are_waited_for_or_installed() {
    let server = server(Vec::new()).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    let port = free_port().unwrap();
    let mut waiting = start(&server.kubeconfig_path(), port, &["--enable-leader-election=false"]);
    let told =
        wait::until("the reason", PATIENCE, || async { Ok(Some(readiness(port).await).filter(|answer| answer.contains("rayclusters"))) });
    let told = told.await.unwrap();
    assert!(told.starts_with("HTTP/1.0 503") && told.contains("--manage-crds"), "{told}");
    assert!(waiting.try_wait().unwrap().is_none(), "it waits");

    let other = free_port().unwrap();
    let _managing = start(&server.kubeconfig_path(), other, &["--manage-crds"]);
    wait_ready(other).await;
    wait_ready(port).await;
    let version = |definition: &CustomResourceDefinition| definition.annotations().get("ray.io/crd-version").cloned();
    let found = definitions.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|definition| version(definition).is_some_and(|version| version.starts_with("rs-v"))), "{found:?}");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn runtime_definitions_are_kept_current_but_never_taken_back() {
    let server = server(anything_goes()).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    let newer = json!({ "metadata": { "annotations": { "ray.io/crd-version": "rs-v99.0.0" } } });
    definitions.patch("rayjobs.ray.io", &PatchParams::default(), &Patch::Merge(&newer)).await.unwrap();
    let port = free_port().unwrap();
    let _managing = start(&server.kubeconfig_path(), port, &["--manage-crds"]);
    wait_ready(port).await;
    let has_schema = async |name: &str| {
        let text = serde_json::to_string(&definitions.get(name).await.unwrap().spec).unwrap();
        text.contains("headGroupSpec")
    };
    let current = wait::until("our schema of RayClusters", PATIENCE, || async { Ok(has_schema("rayclusters.ray.io").await.then_some(())) });
    current.await.unwrap();
    let last = wait::until("the last of them", PATIENCE, || async { Ok(has_schema("rayservices.ray.io").await.then_some(())) });
    last.await.unwrap();
    assert!(!has_schema("rayjobs.ray.io").await, "a newer definition is left alone");
    server.stop().await.unwrap();
}
