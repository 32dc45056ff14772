//! Traces: what a collector gets from both programs at a real API server, and what becomes of them when there is none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

#[path = "traces/collector.rs"]
mod collector;

use std::time::Duration;

use api_tests::scene::{PATIENCE, Scene, group, spec};
use api_tests::{Program, Server, hook, server};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use shared::api::{RayCluster, RayJob};
use testcluster::local::free_port;
use testcluster::wait;
use tokio::time::Instant;

use collector::{Collector, Seen};

const SECRET: &str = "5ecret-that-no-collector-may-see";
/// Span of a caller that nobody else knows.
const CALLER: &str = "b7ad6b7169203331";

/// Asks for a RayCluster as a caller whose trace is sent does.
async fn ask(scene: &Scene, trace: &str, name: &str, spec: Value, dry_run: bool) -> Result<String, kube::Error> {
    let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": name }, "spec": spec });
    let dry_run = if dry_run { "?dryRun=All" } else { "" };
    let request = http::Request::post(format!("/apis/ray.io/v1/namespaces/{}/rayclusters{dry_run}", scene.namespace))
        .header("content-type", "application/json")
        .header("traceparent", format!("00-{trace}-{CALLER}-01"))
        .body(object.to_string().into_bytes())
        .unwrap();
    scene.client.request_text(request).await
}

/// Whether the process has the thread that sends spans.
fn sends(program: &Program) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", program.pid().unwrap())).unwrap();
    threads.flatten().any(|thread| std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.starts_with("OpenTelemetry")))
}

fn lines(program: &Program, text: &str) -> usize {
    program.log().lines().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn one_trace_leads_from_the_caller_through_both_programs() {
    let server = server();
    let collector = Collector::start(0).await;
    let endpoint = collector.endpoint();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector"),
        ("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=me"),
    ];
    let mut scene = Scene::without_operator(server, "traces").await.unwrap();
    let soon = ("OTEL_BSP_SCHEDULE_DELAY", "200");
    scene.start_in(&[], &environment.into_iter().chain([soon]).collect::<Vec<_>>()).await.unwrap();
    let rendered = hook::chart_for(&scene.namespace, &[]).unwrap();
    // What it has to say, it says when it ends.
    let late = ("OTEL_BSP_SCHEDULE_DELAY", "600000");
    let environment: Vec<_> = environment.into_iter().chain([late, ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2000")]).collect();
    let webhook = hook::start_in(server, &scene, &rendered, &["--log-level=debug"], &environment).await.unwrap();
    assert!(sends(&webhook) && sends(scene.operator()));

    let (good, bad) = ("0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319d");
    scene.create::<Secret>(json!({ "metadata": { "name": "redis" }, "stringData": { "password": SECRET } })).await.unwrap();
    let mut wanted = spec(&[group("workers", 1)], json!({ "authOptions": { "mode": "token" } }));
    wanted["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = json!([{ "name": "PASSWORD", "value": SECRET }]);
    ask(&scene, good, "traced", wanted, false).await.unwrap();
    let twice = spec(&[group("same", 1), group("same", 1)], json!({ "headServiceAnnotations": { "password": SECRET } }));
    ask(&scene, bad, "refused", twice, true).await.unwrap_err();
    scene.has_pods("traced", 1, 1).await.unwrap();

    let pass = reconciled(&collector).await;
    let trace = |span: &Seen| span.trace == pass.trace;
    for name in ["create Pod", "create Service", "patch_status RayCluster"] {
        let call = collector.span(name, |span| span.name == name && span.get("k8s.namespace.name") == scene.namespace).await;
        assert_eq!((call.kind, call.get("kuberay.result"), call.failed), (3, "ok", false), "{call:?}");
    }
    let children: Vec<Seen> = collector.spans().into_iter().filter(|span| trace(span) && span.parent == pass.id).collect();
    assert!(children.iter().any(|child| child.name == "create Pod"), "{children:?}");
    let called = job(&scene, &collector).await;

    let took = webhook.terminate().await.unwrap();
    assert!(took < Duration::from_secs(4), "{took:?}");
    reviewed(&collector, good, bad);
    let within = |span: &Seen| span.service == "kuberay-webhook" && span.trace == called.trace && span.parent == called.id;
    let review = collector.spans().into_iter().find(|span| within(span) && span.name == "validate RayCluster");
    assert_eq!(review.expect("the review of what the operator made").object(), called.object());

    idle_passes_are_not_sent(&collector);
    let made = scene.api::<Secret>().get("traced").await.unwrap().data.unwrap();
    for secret in [SECRET, std::str::from_utf8(&made["auth_token"].0).unwrap()] {
        assert!(secret.len() > 20 && !collector.knows(secret), "content reached the collector");
    }
    assert!(collector.knows("k8s.pod.name"));
    let credentials = collector.credentials();
    assert!(!credentials.is_empty() && credentials.iter().all(|said| said == "Bearer of-the-collector"), "{credentials:?}");
    assert_eq!(lines(scene.operator(), "of-the-collector"), 0);
}

/// The pass in which the first Pod was made.
async fn reconciled(collector: &Collector) -> Seen {
    let made = collector.span("a Pod", |span| span.name == "create Pod").await;
    let pass = collector.span("its pass", |span| span.id == made.parent).await;
    assert_eq!((pass.service.as_str(), pass.name.as_str(), pass.kind), ("kuberay-operator", "reconcile RayCluster", 1));
    assert_eq!((pass.object(), pass.get("k8s.object.generation"), pass.parent.as_str()), ("traced", "1", ""));
    assert!(["success", "requeue_after"].contains(&pass.get("kuberay.outcome")) && !pass.failed, "{pass:?}");
    pass
}

/// A RayJob whose dashboard is not there; the call that made its RayCluster.
async fn job(scene: &Scene, collector: &Collector) -> Seen {
    let job = json!({ "entrypoint": "python x.py", "submissionMode": "HTTPMode", "rayClusterSpec": spec(&[], json!({})) });
    scene
        .create::<RayJob>(json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": "job" }, "spec": job }))
        .await
        .unwrap();
    let called = collector.span("a RayCluster", |span| span.name == "create RayCluster").await;
    let name =
        async || Ok(scene.api::<RayJob>().get("job").await?.status.map(|status| status.ray_cluster_name).filter(|name| !name.is_empty()));
    let cluster = scene.until("the RayCluster's name", name).await.unwrap();
    assert_eq!(called.object(), cluster);
    scene.run_to_ready(&cluster).await.unwrap();
    let question = collector.span("a question", |span| span.name == "ask dashboard").await;
    assert!(question.get("server.address").starts_with(&cluster), "{question:?}");
    assert_eq!((question.get("http.request.method"), question.get("error.type"), question.failed), ("GET", "unreachable", true));
    called
}

/// What the webhook said of the two requests.
fn reviewed(collector: &Collector, good: &str, bad: &str) {
    let spans = collector.spans();
    for name in ["mutate RayCluster", "validate RayCluster"] {
        let review = spans.iter().find(|span| span.trace == good && span.name == name).unwrap_or_else(|| panic!("no {name}: {spans:?}"));
        assert_eq!((review.service.as_str(), review.kind, review.object()), ("kuberay-webhook", 2, "traced"));
        assert_eq!(review.parent, CALLER, "an API server that makes no spans hands the caller's on");
        let said = ["kuberay.operation", "kuberay.allowed", "kuberay.rules", "kuberay.dry_run"].map(|key| review.get(key));
        assert_eq!(said, ["CREATE", "true", "", "false"]);
    }
    let refusal = spans.iter().find(|span| span.trace == bad && span.name == "validate RayCluster").expect("the refusal");
    let said = ["kuberay.allowed", "kuberay.dry_run", "http.route"].map(|key| refusal.get(key));
    assert_eq!(said, ["false", "true", "/validate-ray-io-v1-raycluster"]);
    assert!(refusal.get("kuberay.rules").starts_with("V-") && !refusal.failed, "a refusal is no failure of the webhook: {refusal:?}");
}

fn idle_passes_are_not_sent(collector: &Collector) {
    let spans = collector.spans();
    let roots = spans.iter().filter(|span| span.name.starts_with("reconcile ") && !span.failed);
    let idle: Vec<&Seen> = roots.filter(|pass| !spans.iter().any(|span| span.parent == pass.id)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}

/// The median of a hundred requests that the webhook looks at.
async fn admission(scene: &Scene) -> Duration {
    let mut times = Vec::new();
    for number in 0..100 {
        let began = Instant::now();
        hook::ask(scene, &format!("asked-{number}"), spec(&[group("a", 1)], json!({}))).await.unwrap();
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

/// Starts the webhook, measures, and ends it.
async fn with_webhook(server: &'static Server, scene: &Scene, environment: &[(&str, &str)]) -> (Duration, Program) {
    let rendered = hook::chart_for(&scene.namespace, &[]).unwrap();
    let webhook = hook::start_in(server, scene, &rendered, &[], environment).await.unwrap();
    (admission(scene).await, webhook)
}

#[tokio::test]
async fn a_collector_that_is_away_disturbs_nobody() {
    let server = server();
    let (quiet, dead) =
        (Scene::without_operator(server, "untraced").await.unwrap(), Scene::without_operator(server, "dead").await.unwrap());
    let (usual, webhook) = with_webhook(server, &quiet, &[]).await;
    assert!(!sends(&webhook), "off costs no thread");
    webhook.terminate().await.unwrap();

    let port = free_port().unwrap();
    let endpoint = format!("http://127.0.0.1:{port}");
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let (lonely, webhook) = with_webhook(server, &dead, &environment).await;
    assert!(lonely < usual * 2 + Duration::from_millis(10), "{lonely:?} without a collector, {usual:?} without traces");
    let told = || async { Ok((lines(&webhook, "traces cannot be sent") > 0).then_some(())) };
    wait::until("a word about it", PATIENCE, told).await.unwrap_or_else(|error| panic!("{error:#}\n{}", webhook.log()));

    let collector = Collector::start(port).await;
    hook::ask(&dead, "afterwards", spec(&[], json!({}))).await.unwrap();
    collector.span("a review", |span| span.object() == "afterwards").await;
    let again = || async { Ok((lines(&webhook, "traces are sent again") > 0).then_some(())) };
    wait::until("a word about its return", PATIENCE, again).await.unwrap();
    let said = ["sending traces", "traces cannot be sent", "traces are sent again"].map(|text| lines(&webhook, text));
    assert_eq!(said, [1, 1, 1], "{}", webhook.log());
    drop(collector);
    let took = webhook.terminate().await.unwrap();
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test]
async fn a_wrong_address_is_one_line_and_the_operator_works() {
    let mut scene = Scene::without_operator(server(), "wrong").await.unwrap();
    scene.start_in(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]).await.unwrap();
    scene.cluster("works", spec(&[], json!({}))).await.unwrap();
    scene.has_pods("works", 1, 0).await.unwrap();
    assert!(!sends(scene.operator()));
    let log = scene.operator().log();
    let said: Vec<&str> = log.lines().filter(|line| line.contains("traces")).collect();
    assert!(matches!(said[..], [one] if one.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && one.contains("http://HOST:PORT")), "{said:?}");
    scene.api::<RayCluster>().delete("works", &Default::default()).await.unwrap();
}
