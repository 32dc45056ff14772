//! From the moment when Helm makes the webhook configurations: nobody is refused before the webhook can answer, nobody passes unchecked
//! afterwards, and no upgrade, and no hand in an emergency, is taken back.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::time::Instant;

use api_tests::admission::{Load, Replica, Scene, Service, quick_settling, raycluster, until, with_namespace};
use api_tests::{chart, hook};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// The Service that the configurations name.
const SERVICE: &str = "kuberay-webhook";

/// What `helm upgrade --install` of Helm 4 does with the configurations: it applies them, and gives up where it meets a conflict.
async fn helm(scene: &Scene, port: u16, value: &str) {
    let selector = format!(r#"webhook.namespaceSelector={{"matchLabels":{{"kubernetes.io/metadata.name":"{}"}}}}"#, scene.namespace);
    let values = ["--set-json", r#"fullnameOverride="kuberay""#, "--set-json", &selector, "--set-json", value];
    let rendered = chart::render("kuberay-operator", "ray", &scene.namespace, &values).expect("rendered");
    let params = PatchParams::apply("helm");
    for object in hook::configurations(&rendered, SERVICE, port).expect("configurations") {
        let (name, patch) = (scene.configuration(), Patch::Apply(&object));
        assert_eq!(chart::text(&object, "/metadata/name"), name);
        if chart::text(&object, "/kind").starts_with("Validating") {
            scene.validating().patch(&name, &params, &patch).await.expect("no conflict");
        } else {
            scene.mutating().patch(&name, &params, &patch).await.expect("no conflict");
        }
    }
}

/// The Service that the configurations name.
async fn service(scene: &Scene) -> Service {
    let object = json!({"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    let api = kube::Api::<k8s_openapi::api::core::v1::Service>::namespaced(scene.client.clone(), &scene.namespace);
    api.create(&PostParams::default(), &serde_json::from_value(object).expect("a Service")).await.expect("created");
    Service::start().await
}

async fn replica(scene: &Scene, service: &Service) -> Replica {
    let replica = Replica::start(scene, quick_settling(), &[]).await;
    service.select(&[replica.place]);
    replica
}

/// `failurePolicy` of every webhook.
async fn policies(scene: &Scene) -> Vec<String> {
    let name = scene.configuration();
    let (validating, mutating) = (scene.validating().get(&name).await.expect("there"), scene.mutating().get(&name).await.expect("there"));
    let validating = validating.webhooks.unwrap_or_default().into_iter().map(|webhook| webhook.failure_policy);
    let mutating = mutating.webhooks.unwrap_or_default().into_iter().map(|webhook| webhook.failure_policy);
    validating.chain(mutating).map(Option::unwrap_or_default).collect()
}

async fn until_all(scene: &Scene, policy: &str) {
    until(policy, async || {
        let policies = policies(scene).await;
        policies.len() == 8 && policies.iter().all(|found| found == policy)
    })
    .await;
}

fn bad() -> Value {
    raycluster("bad", &["a", "a"])
}

#[test]
fn nobody_is_refused_before_the_webhook_answers_and_nobody_passes_afterwards() {
    with_namespace("gap", async |scene| {
        let service = service(&scene).await;
        let load = Load::admissions(&scene, 2);
        let start = Instant::now();
        helm(&scene, service.port, "webhook.timeoutSeconds=10").await;
        // No Pod has started: the image cannot be pulled, perhaps.
        for _ in 0..3 {
            scene.create(&bad(), true).await.expect("nobody is asked yet");
        }
        assert!(policies(&scene).await.is_empty());

        let first = replica(&scene, &service).await;
        first.ready().await;
        println!("ready after {:?}", start.elapsed());
        scene.enforced().await;
        println!("asked after {:?}", start.elapsed());
        until_all(&scene, "Fail").await;
        println!("depended upon after {:?}", start.elapsed());
        scene.enforced().await;
        load.unharmed(20).await;

        drop(first);
        service.select(&[]);
        let refused = async || scene.create(&raycluster("good", &["a"]), true).await.err().map(|error| error.to_string());
        until("a refusal", async || refused().await.is_some_and(|text| text.contains("failed calling webhook"))).await;
    });
}

#[test]
fn upgrades_and_hands_in_an_emergency_are_not_taken_back() {
    with_namespace("upgrades", async |scene| {
        let service = service(&scene).await;
        helm(&scene, service.port, "webhook.timeoutSeconds=10").await;
        let replica = replica(&scene, &service).await;
        replica.ready().await;
        until_all(&scene, "Fail").await;
        scene.enforced().await;

        let load = Load::admissions(&scene, 2);
        helm(&scene, service.port, "webhook.timeoutSeconds=10").await;
        until_all(&scene, "Fail").await;
        // Another setting holds at once, without a time in which objects pass.
        helm(&scene, service.port, "webhook.timeoutSeconds=7").await;
        until("the other setting", async || {
            let all = scene.validating().get(&scene.configuration()).await.expect("there").webhooks.unwrap_or_default();
            let policies = policies(&scene).await;
            assert!(policies.len() == 8 && policies.iter().all(|policy| policy == "Fail"), "{policies:?}");
            all.iter().all(|webhook| webhook.timeout_seconds == Some(7))
        })
        .await;
        assert!(scene.bundles().await.iter().all(|bundle| !bundle.is_empty()));
        scene.enforced().await;

        // Somebody takes all webhooks out; they come back.
        let nothing = Patch::Merge(json!({"webhooks": []}));
        let start = Instant::now();
        scene.mutating().patch(&scene.configuration(), &PatchParams::default(), &nothing).await.expect("patched");
        until_all(&scene, "Fail").await;
        println!("webhooks that were taken out are back, and depended upon, after {:?}", start.elapsed());
        load.unharmed(20).await;

        // Somebody lets everything pass, by hand; it stays so until the chart's values speak of it.
        let ignore = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
        let ignore = Patch::Json::<()>(serde_json::from_value(ignore).expect("a patch"));
        scene.validating().patch(&scene.configuration(), &PatchParams::default(), &ignore).await.expect("patched");
        helm(&scene, service.port, "webhook.timeoutSeconds=7").await;
        scene.overwrite_bundle("").await;
        until("the caBundle again", async || scene.bundles().await.iter().all(|bundle| !bundle.is_empty())).await;
        assert_eq!(policies(&scene).await.iter().filter(|policy| *policy == "Ignore").count(), 1, "the hand's, and only that");
        helm(&scene, service.port, r#"webhook.failurePolicy="Ignore""#).await;
        until_all(&scene, "Ignore").await;
    });
}
