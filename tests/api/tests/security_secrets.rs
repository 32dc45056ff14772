//! Secrets stay secret: both programs at level debug, through making, changing, failing and deleting, and nothing of what is secret in
//! their logs, in events or in metrics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use api_tests::scene::{PATIENCE, Scene, group, spec};
use api_tests::server::{Wanted, server_with};
use api_tests::{Dashboard, Mood, Program, hook};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use shared::api::{RayCluster, RayJob};
use testcluster::api::FakeNodes;
use testcluster::wait;

const REDIS_STORED: &str = "stored-5ecret-of-redis";
const REDIS_INLINE: &str = "inline-5ecret-of-redis";
const TOKEN: &str = "5ecret-token-of-a-dashboard";
const ENVIRONMENT: &str = "5ecret-of-a-runtime-environment";

/// What must not be seen, by name.
struct Secrets(BTreeMap<&'static str, String>);

impl Secrets {
    fn add(&mut self, name: &'static str, value: &str) {
        assert!(value.len() > 20, "{name}: long enough not to be met by chance");
        self.0.insert(name, value.to_owned());
    }

    /// As it is, and as a Secret holds it.
    fn assert_absent(&self, place: &str, text: &str) {
        for (name, value) in &self.0 {
            let encoded = serde_json::to_value(k8s_openapi::ByteString(value.clone().into_bytes())).unwrap();
            for form in [value.as_str(), encoded.as_str().unwrap().trim_end_matches('=')] {
                if let Some(line) = text.lines().find(|line| line.contains(form)) {
                    panic!("{place} shows {name}: {line}");
                }
            }
        }
    }
}

#[tokio::test]
async fn secrets_reach_no_log_event_or_metric() {
    if testcluster::platform::require_linux_root().is_err() {
        eprintln!("skipped: fake Pods at addresses of this machine need root");
        return;
    }
    let nodes = FakeNodes { count: 2, local_pods: true, pod_cidr: "10.91.0.0/16".to_owned(), ..FakeNodes::default() };
    let server = server_with(Wanted { fake_nodes: Some(nodes) });
    let mut scene = Scene::without_operator(server, "secrets").await.unwrap();
    scene.start_in(&["--use-kubernetes-proxy"], &[("RUST_LOG", "debug")]).await.unwrap();
    let rendered = hook::chart_for(&scene.namespace, &[]).unwrap();
    // Before anybody checks: the operator has to judge it by itself.
    scene.create::<RayJob>(job("unchecked", json!({ "runtimeEnvYAML": format!("env_vars: {{TOKEN: {ENVIRONMENT}") }))).await.unwrap();
    let webhook = hook::start(server, &scene, &rendered, &["--log-level=debug"]).await.unwrap();
    let ray = Dashboard::start(scene.client.clone(), &scene.namespace);

    let mut secrets = Secrets(BTreeMap::new());
    for (name, value) in [
        ("a Redis password in a Secret", REDIS_STORED),
        ("a Redis password in a RayCluster", REDIS_INLINE),
        ("a token in a Secret", TOKEN),
        ("a runtime environment", ENVIRONMENT),
    ] {
        secrets.add(name, value);
    }
    scene.create::<Secret>(json!({ "metadata": { "name": "redis" }, "stringData": { "password": REDIS_STORED } })).await.unwrap();
    scene.create::<Secret>(json!({ "metadata": { "name": "mine" }, "stringData": { "auth_token": TOKEN } })).await.unwrap();

    clusters(&scene).await;
    let made = scene.api::<Secret>().get("stored").await.unwrap().data.unwrap();
    secrets.add("a token that the operator made", std::str::from_utf8(&made["auth_token"].0).unwrap());
    jobs(&scene, &ray).await;
    keys(&scene, &mut secrets).await;
    refusals(&scene).await;
    end(&scene).await;

    look(&scene, &webhook, &secrets).await;
}

/// Searches everything that others than the owner may see.
async fn look(scene: &Scene, webhook: &Program, secrets: &Secrets) {
    for (place, log, metrics) in [
        ("the operator", scene.operator().log(), scene.operator().metrics().await.unwrap()),
        ("the webhook", webhook.log(), webhook.metrics().await.unwrap()),
    ] {
        assert!(log.to_lowercase().contains("debug"), "{place} does not log at level debug:\n{log}");
        secrets.assert_absent(&format!("the log of {place}"), &log);
        secrets.assert_absent(&format!("a metric of {place}"), &metrics);
    }
    let events = scene.api::<Event>().list(&Default::default()).await.unwrap();
    assert!(events.items.len() > 5, "too few events to mean anything: {}", events.items.len());
    for event in events {
        secrets.assert_absent("an event", event.note.as_deref().unwrap_or_default());
    }
}

/// Redis passwords and tokens in each form, changed once.
async fn clusters(scene: &Scene) {
    let from = json!({ "secretKeyRef": { "name": "redis", "key": "password" } });
    let stored = json!({
        "authOptions": { "mode": "token" },
        "gcsFaultToleranceOptions": { "redisAddress": "redis:6379", "redisPassword": { "valueFrom": from } },
    });
    let inline = json!({
        "authOptions": { "mode": "token", "secretName": "mine" },
        "gcsFaultToleranceOptions": { "redisAddress": "redis:6379", "redisPassword": { "value": REDIS_INLINE } },
        "upgradeStrategy": { "type": "Recreate" },
    });
    for (name, more) in [("stored", stored), ("inline", inline)] {
        scene.cluster(name, spec(&[group("a", 1)], more)).await.unwrap_or_else(|error| panic!("{error:#}"));
        scene.has_pods(name, 1, 1).await.unwrap();
        // Another template: the Pods are made anew.
        let change = json!([{ "op": "add", "path": "/spec/workerGroupSpecs/0/template/spec/containers/0/env", "value": [{ "name": "X", "value": ENVIRONMENT }] }]);
        let patch = kube::api::Patch::<RayCluster>::Json(serde_json::from_value(change).unwrap());
        scene.api::<RayCluster>().patch(name, &Default::default(), &patch).await.unwrap();
    }
    // What the API server refuses, it may quote.
    let quota = json!({ "metadata": { "name": "full" }, "spec": { "hard": { "pods": "0" } } });
    scene.create::<ResourceQuota>(quota).await.unwrap();
    scene.patch_group("inline", "replicas", json!(4)).await.unwrap();
    let told = async || {
        let events = scene.api::<Event>().list(&Default::default()).await?;
        Ok(events.items.iter().any(|event| event.note.as_deref().is_some_and(|note| note.contains("quota"))).then_some(()))
    };
    scene.until("a Pod that the quota refuses", told).await.unwrap();
    scene.api::<ResourceQuota>().delete("full", &DeleteParams::default()).await.unwrap();
}

fn job(name: &str, more: Value) -> Value {
    let cluster = spec(&[], json!({ "authOptions": { "mode": "token", "secretName": "mine" } }));
    let mut object = json!({ "entrypoint": "python x.py", "submissionMode": "HTTPMode", "rayClusterSpec": cluster });
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name }, "spec": object })
}

/// Runtime environments that reach Ray, after Ray has failed and quoted them.
async fn jobs(scene: &Scene, ray: &Dashboard) {
    let environment = json!({ "runtimeEnvYAML": format!("env_vars:\n  TOKEN: {ENVIRONMENT}\n") });
    let asked = async |count: usize| {
        wait::until("calls of the dashboard", PATIENCE, || async { Ok((ray.calls("").len() > count).then_some(())) }).await.unwrap();
    };
    let status = async |name: &str, wanted: &str| {
        let jobs = scene.api::<RayJob>();
        let reached = async || {
            let status = jobs.get(name).await?.status.unwrap_or_default();
            Ok((status.job_deployment_status.as_str() == wanted).then_some(()))
        };
        scene.until(&format!("{name} to be {wanted}"), reached).await.unwrap();
    };
    ray.set(Mood::Echoes(500));
    scene.create::<RayJob>(job("patient", environment.clone())).await.unwrap();
    asked(3).await;
    ray.set(Mood::Fine);
    ray.submitted("SUCCEEDED");
    status("patient", "Complete").await;
    assert!(ray.submissions().iter().any(|body| body.to_string().contains(ENVIRONMENT)), "Ray has to get it");
    assert!(ray.calls("").iter().any(|call| call.token.contains(TOKEN)), "and the token");

    // Ray knows no job, and refuses each.
    ray.set(Mood::Echoes(400));
    scene.create::<RayJob>(job("refused", environment)).await.unwrap();
    asked(ray.calls("").len() + 3).await;
}

/// The webhook's own keys, those of a second CA included.
async fn keys(scene: &Scene, secrets: &mut Secrets) {
    let api = scene.api::<Secret>();
    let key = async |former: Option<&str>| {
        let probe = || async {
            let data = api.get_opt("kuberay-webhook-ca").await?.and_then(|secret| secret.data).unwrap_or_default();
            let pem = data.get("tls.key").map(|value| String::from_utf8_lossy(&value.0).into_owned()).unwrap_or_default();
            Ok(pem.lines().nth(1).filter(|line| former != Some(*line)).map(str::to_owned))
        };
        wait::until("a key", PATIENCE, probe).await.unwrap()
    };
    let first = key(None).await;
    api.delete("kuberay-webhook-ca", &DeleteParams::default()).await.unwrap();
    secrets.add("the key of the second CA", &key(Some(&first)).await);
    secrets.add("the webhook's key", &first);
}

/// Mistakes right beside secrets.
async fn refusals(scene: &Scene) {
    let broken = json!({ "runtimeEnvYAML": format!("env_vars: {{TOKEN: {ENVIRONMENT}") });
    let both = json!({ "gcsFaultToleranceOptions": { "redisAddress": "redis:6379", "redisPassword": {
        "value": REDIS_INLINE, "valueFrom": { "secretKeyRef": { "name": "redis", "key": "password" } } } } });
    let mut parameters = spec(&[group("a", 1)], json!({}));
    parameters["headGroupSpec"]["rayStartParams"] =
        json!({ "redis-password": REDIS_INLINE, "num-cpus": ENVIRONMENT, "bad key": ENVIRONMENT });
    let mut image = spec(&[group("a", 1), group("a", 1)], json!({}));
    image["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = json!([{ "name": "REDIS_PASSWORD", "value": REDIS_INLINE }]);
    let said = [
        scene.create::<RayJob>(job("broken", broken)).await.err(),
        scene.cluster("both", spec(&[], both)).await.err(),
        scene.cluster("parameters", parameters).await.err(),
        scene.cluster("image", image).await.err(),
    ];
    let refused = said.iter().flatten().filter(|error| format!("{error:#}").contains("denied the request")).count();
    assert!(refused >= 3, "the webhook refuses most of them: {said:?}");
}

/// Everything goes.
async fn end(scene: &Scene) {
    scene.api::<RayJob>().delete_collection(&DeleteParams::background(), &Default::default()).await.unwrap();
    scene.api::<RayCluster>().delete_collection(&DeleteParams::background(), &Default::default()).await.unwrap();
    // With Redis to be cleaned up, the end is for a Job to bring; here it never runs.
    let gone = async || {
        let pods = scene.api::<Pod>().list(&Default::default()).await?;
        let left =
            pods.iter().filter(|pod| pod.labels().contains_key("ray.io/group")).filter(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok((left.filter(|pod| pod.labels().get("ray.io/node-type").is_none_or(|kind| kind != "redis-cleanup")).count() == 0).then_some(()))
    };
    scene.until("the Pods to go", gone).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
}
