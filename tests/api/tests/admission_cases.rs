//! The knowledge base at a real API server with the webhook installed: every admission case gets the verdict, the field paths and the
//! warnings of its head, and every sample of KubeRay is admitted, but for those that docs/admission.md names.
//!
//! Everything is a server-side dry run, as kubectl would send it. Webhooks with other feature gates are for namespaces of their own.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

#[path = "../../../shared/tests/common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};

use api_tests::admission::{Program, Scene, Service, with_namespace};
use common::cases::{Answer, Header};
use common::{gated_samples, shared_directory, yaml_texts};
use futures::StreamExt;
use futures::stream;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::client::Body;
use serde_json::{Value, json};
use shared::validation::Kind;
use shared::yaml;

/// Requests under way at the same time.
const AT_ONCE: usize = 8;

/// A namespace with a webhook that has these gates.
struct Site {
    scene: Scene,
    _webhook: Program,
    _service: Service,
}

impl Site {
    /// Puts the webhook in the way of `scene`, with `gates` as in the flag.
    async fn install(scene: Scene, gates: &str) -> Self {
        let service = Service::start().await;
        scene.register(service.port).await;
        let webhook = Program::start(&scene, &[&format!("--feature-gates={gates}")]).await;
        service.select(&[webhook.place]);
        scene.enforced().await;
        Self { scene, _webhook: webhook, _service: service }
    }
}

/// A Ray object as it stands in a file.
struct Object {
    kind: Kind,
    value: Value,
}

impl Object {
    /// The Ray objects of a file.
    fn all(text: &str) -> Vec<Self> {
        let documents = yaml::documents(text).into_iter().map(|document| document.expect("YAML").value);
        documents.filter_map(|value| Some(Self { kind: value["kind"].as_str()?.parse().ok()?, value })).collect()
    }

    fn one(text: &str) -> Self {
        let mut all = Self::all(text);
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// For the namespace of `scene` instead of its own.
    fn moved(mut self, scene: &Scene) -> Self {
        self.value["metadata"]["namespace"] = json!(scene.namespace);
        self
    }

    fn dynamic(&self) -> DynamicObject {
        serde_json::from_value(self.value.clone()).expect("an object")
    }
}

/// What the API server said.
struct Said {
    answer: Answer,
    message: String,
}

/// Sends an object as kubectl does with `--dry-run=server`.
async fn ask(scene: &Scene, object: &Object, update: bool) -> Said {
    let version = object.value["apiVersion"].as_str().expect("a version");
    let (method, name) = if update { ("PUT", format!("/{}", object.name())) } else { ("POST", String::new()) };
    let path = format!(
        "/apis/{version}/namespaces/{}/{}{name}?dryRun=All&fieldValidation=Strict&fieldManager=kubectl",
        scene.namespace,
        object.kind.plural()
    );
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(object.value.to_string().into_bytes())).expect("a request");
    let response = scene.client.send(request).await.expect("an answer");
    let denied = !response.status().is_success();
    let warnings = response.headers().get_all("warning").iter().filter_map(|value| warning(value.to_str().ok()?)).collect();
    let body = response.into_body().collect_bytes().await.expect("a body");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let causes = body["details"]["causes"].as_array().filter(|_| denied);
    let mut errors: Vec<String> = causes.into_iter().flatten().filter_map(|cause| cause["field"].as_str().map(str::to_owned)).collect();
    // The API server's note that rules of the schema were not evaluated, because of the errors beside it.
    errors.retain(|field| field != "<nil>");
    let message = if denied { body["message"].as_str().unwrap_or_default().to_owned() } else { String::new() };
    Said { answer: Answer { denied, errors, warnings }, message }
}

/// The field that a `Warning` header names: `299 - "spec.field: text"`.
fn warning(header: &str) -> Option<String> {
    let text = header.split_once('"')?.1;
    Some(text.split_once(": ").map_or(text, |(field, _)| field).to_owned())
}

/// Stores the object that an update is about, as it was stored before there was a webhook.
async fn seed(scene: &Scene, old: &Object) {
    let api = scene.rays(old.kind.as_str());
    let stored = api.create(&PostParams::default(), &old.dynamic()).await.expect("nobody checks yet");
    if !old.value["status"].is_null() {
        let stored = DynamicObject { data: json!({"spec": old.value["spec"], "status": old.value["status"]}), ..stored };
        api.replace_status(old.name(), &PostParams::default(), &stored).await.expect("a status");
    }
    if !old.value["metadata"]["deletionTimestamp"].is_null() {
        api.delete(old.name(), &DeleteParams::default()).await.expect("a finalizer holds it");
    }
}

/// Asks for an update of what is stored.
async fn ask_update(scene: &Scene, mut new: Object) -> Said {
    let stored = scene.rays(new.kind.as_str()).get(new.name()).await.expect("it is stored");
    let metadata = &mut new.value["metadata"];
    metadata["resourceVersion"] = json!(stored.metadata.resource_version);
    // Nobody can choose when an object was deleted.
    if !metadata["deletionTimestamp"].is_null() {
        metadata["deletionTimestamp"] = json!(stored.metadata.deletion_timestamp);
    }
    ask(scene, &new, true).await
}

/// What is wrong with the answer to a case, if anything.
async fn judge(scene: &Scene, text: &str) -> Option<String> {
    let header = Header::parse(text);
    let (_, judged) = header.objects(text);
    let object = Object::one(judged).moved(scene);
    let said = if header.update { ask_update(scene, object).await } else { ask(scene, &object, false).await };
    header.complaint(&said.answer).map(|complaint| format!("{complaint}: {}", said.message))
}

/// What is wrong with the answer to a sample, if anything. `gate` names the gate that is missing at this site.
async fn judge_sample(scene: &Scene, text: &str, gate: Option<&str>) -> Option<String> {
    let mut refused = Vec::new();
    for object in Object::all(text) {
        let said = ask(scene, &object.moved(scene), false).await;
        refused.extend(said.answer.denied.then_some(said.message));
    }
    match gate {
        None => (!refused.is_empty()).then(|| format!("{refused:?}")),
        Some(gate) => {
            let expected = !refused.is_empty() && refused.iter().all(|message| message.contains(gate));
            (!expected).then(|| format!("should be refused because of {gate}: {refused:?}"))
        }
    }
}

#[test]
fn admit_as_the_knowledge_base_says() {
    let (Some(cases), Some(samples)) = (shared_directory("cases/admission"), shared_directory("upstream/samples")) else { return };
    let (cases, samples, gated) = (yaml_texts(&cases), yaml_texts(&samples), gated_samples());
    assert!(cases.len() >= 100 && samples.len() >= 80, "only {} cases, {} samples", cases.len(), samples.len());
    let stale: Vec<_> = gated.keys().filter(|name| !samples.contains_key(*name)).collect();
    assert!(stale.is_empty(), "docs/admission.md names samples that there are not: {stale:?}");

    with_namespace("cases", async |scene| {
        let switched_on = |gate: &String| format!("{gate}=true");
        let mut gates: BTreeSet<String> = cases.values().map(|text| Header::parse(text).gates.to_owned()).collect();
        gates.extend(gated.values().map(switched_on));
        // Namespaces first, and in them what was there before the webhooks.
        let mut scenes = BTreeMap::new();
        for (number, gates) in gates.iter().enumerate() {
            scenes.insert(gates.as_str(), scene.another(&format!("cases-{number}")).await);
        }
        let updates = cases.iter().enumerate().filter(|(_, (_, text))| Header::parse(text).update);
        let annexes: BTreeMap<&String, Scene> = stream::iter(updates)
            .map(async |(number, (name, text))| {
                let header = Header::parse(text);
                let annex = scenes[header.gates].annex(&format!("update-{number}")).await;
                let old = header.objects(text).0.expect("an UPDATE");
                seed(&annex, &Object::one(old).moved(&annex)).await;
                (name, annex)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let sites: BTreeMap<&str, Site> = stream::iter(scenes)
            .map(async |(gates, scene)| (gates, Site::install(scene, gates).await))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;

        let complaints: BTreeMap<&String, String> = stream::iter(&cases)
            .map(async |(name, text)| {
                let site = &sites[Header::parse(text).gates];
                judge(annexes.get(name).unwrap_or(&site.scene), text).await.map(|complaint| (name, complaint))
            })
            .buffer_unordered(AT_ONCE)
            .filter_map(async |complaint| complaint)
            .collect()
            .await;
        assert!(complaints.is_empty(), "{} of {} cases: {complaints:#?}", complaints.len(), cases.len());

        let complaints: BTreeMap<&String, String> = stream::iter(&samples)
            .map(async |(name, text)| {
                let gate = gated.get(name);
                let mut complaint = judge_sample(&sites[""].scene, text, gate.map(String::as_str)).await;
                if let (None, Some(gate)) = (&complaint, gate) {
                    complaint = judge_sample(&sites[switched_on(gate).as_str()].scene, text, None).await;
                }
                complaint.map(|complaint| (name, complaint))
            })
            .buffer_unordered(AT_ONCE)
            .filter_map(async |complaint| complaint)
            .collect()
            .await;
        assert!(complaints.is_empty(), "{} of {} samples: {complaints:#?}", complaints.len(), samples.len());
        println!("{} cases ({} updates) under {} sets of gates, {} samples", cases.len(), annexes.len(), sites.len(), samples.len());
    });
}
