//! What a Prometheus knows of the running programs: names and labels, every query of the dashboard, every alert.
//!
//! With `KUBERAY_WRITE_PICTURES=1` (`make pictures`) the pictures of the README are drawn from what was seen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

#[path = "observability/names.rs"]
mod names;
#[path = "observability/panels.rs"]
mod panels;
#[path = "observability/play.rs"]
mod play;
#[path = "observability/prometheus.rs"]
mod prometheus;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use api_tests::{chart, picture};
use axum::routing::get;
use serde_json::{Value, json};
use testcluster::wait;

use panels::Dashboard;
use play::Play;
use prometheus::{PATIENCE, Prometheus};

/// The chart's groups of alert rules.
fn groups(rendered: &chart::Rendered) -> Value {
    rendered.of_kind("PrometheusRule").next().unwrap()["spec"]["groups"].clone()
}

#[tokio::test]
async fn a_prometheus_sees_all_that_the_dashboard_and_the_alerts_ask_for() {
    let Some(play) = Play::start("observed").await else { return };
    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(folder.path(), &play.jobs(), &groups(&play.rendered)).await.unwrap();
    tokio::select! {
        seen = see(&play, &prometheus) => seen,
        () = play.nobody_answers() => {}
    }
    play.end().await;
    prometheus.until_raised(&["KubeRayOperatorDown", "KubeRayWebhookDown"]).await.unwrap_or_else(|error| panic!("{error:#}"));
}

async fn see(play: &Play, prometheus: &Prometheus) {
    play.work().await;

    let dashboard = Dashboard::of(&play.rendered);
    let ids: BTreeSet<i64> = dashboard.panels().iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), dashboard.panels().len(), "every panel has an id of its own");
    for query in dashboard.queries() {
        let what = format!("{}: a series of {}", query.panel, query.expression);
        let found = wait::until(&what, PATIENCE, || async {
            Ok(Some(prometheus.now(&query.expression).await?).filter(|series| !series.is_empty()))
        });
        found.await.unwrap_or_else(|error| panic!("{error:#}"));
    }
    names::check(&play.scene.operator().metrics().await.unwrap(), &play.webhook.metrics().await.unwrap());

    let expected = ["KubeRayWebhookRefuses", "KubeRayWebhookUnreachable", "KubeRayWebhookSettingsInvalid", "KubeRayWritesForbidden"];
    tokio::select! {
        raised = prometheus.until_raised(&expected) => raised.unwrap_or_else(|error| panic!("{error:#}")),
        () = play.stumble(1_000) => panic!("no alert"),
    }
    for rule in prometheus.rules().await.unwrap() {
        let name = rule["name"].as_str().unwrap();
        assert_eq!((&rule["health"], rule.get("lastError")), (&json!("ok"), None), "{name}: {rule}");
        // Whether a fifth of the reconciles fails while a quota is full depends on what else happens.
        let may = expected.contains(&name) || name == "KubeRayReconcileErrors";
        assert!(may || rule["state"] == "inactive", "a false alarm: {rule}");
    }
    pictures(play, &dashboard, prometheus).await;
}

/// Draws the README's pictures, and keeps them where they belong if it is told to.
async fn pictures(play: &Play, dashboard: &Dashboard, prometheus: &Prometheus) {
    let write = std::env::var_os("KUBERAY_WRITE_PICTURES").is_some();
    if write {
        // Enough for a line.
        for round in 0..12 {
            play.resize(round % 3).await;
            play.stumble(4).await;
        }
    }
    let refusal = play.refusal().await;
    assert!(refusal.contains("is invalid"), "{refusal}");
    let panels = dashboard.filled(prometheus, 60.0).await.unwrap();
    let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
    let folder = chart::workspace().join("docs/pictures");
    // Numbers differ from run to run, titles do not.
    for (file, drawn, says) in [
        ("dashboard.svg", picture::dashboard(dashboard.title(), &panels), titles),
        ("admission-error.svg", picture::terminal(&refusal), refusal.lines().map(|line| line.split(':').next().unwrap()).collect()),
    ] {
        if write {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(file), &drawn).unwrap();
        }
        let kept = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        for text in says {
            let escaped = text.replace('<', "&lt;").replace('>', "&gt;");
            assert!(drawn.contains(&escaped), "{text}");
            assert!(kept.contains(&escaped), "docs/pictures/{file} has no {text}: run `make pictures`");
        }
    }
}

/// What the alerts are for, played: numbers that grow with each scrape.
fn sick(scrapes: u64) -> String {
    let n = scrapes;
    format!(
        r#"kuberay_build_info{{program="operator",version="x"}} 1
leader_election_master_status{{name="ray-operator-leader"}} 0
controller_runtime_reconcile_total{{controller="rayjob",result="error"}} {n}
controller_runtime_reconcile_errors_total{{controller="rayjob"}} {n}
controller_runtime_reconcile_panics_total{{controller="rayjob"}} {n}
workqueue_queue_duration_seconds_bucket{{controller="rayjob",le="10"}} 0
workqueue_queue_duration_seconds_bucket{{controller="rayjob",le="60"}} {n}
workqueue_queue_duration_seconds_bucket{{controller="rayjob",le="+Inf"}} {n}
kuberay_api_writes_total{{kind="Pod",verb="create",result="403"}} {n}
apiserver_admission_webhook_fail_open_count{{name="vrayjob.kb.io",type="validating"}} {n}
kuberay_webhook_rule_hits_total{{rule="V-C-10",level="error",namespace="team"}} {hits}
kuberay_webhook_panics_total {n}
kuberay_webhook_review_duration_seconds_bucket{{kind="RayJob",path="validate",le="0.1"}} 0
kuberay_webhook_review_duration_seconds_bucket{{kind="RayJob",path="validate",le="1"}} {n}
kuberay_webhook_review_duration_seconds_bucket{{kind="RayJob",path="validate",le="+Inf"}} {n}
kuberay_webhook_certificate_not_after_seconds{{certificate="serving"}} 1
kuberay_webhook_configuration_valid{{file="rules"}} 0
"#,
        hits = 20 * n
    )
}

/// A leader that no longer looks at anything.
const STUCK: &str = r#"leader_election_master_status{name="ray-operator-leader"} 1
workqueue_depth{controller="raycluster",name="raycluster"} 3
controller_runtime_reconcile_total{controller="raycluster",result="success"} 7
"#;

/// A standby, whose queue is full because it is not its turn.
const STANDBY: &str = r#"leader_election_master_status{name="ray-operator-leader"} 0
workqueue_depth{controller="rayjob",name="rayjob"} 3
"#;

#[tokio::test]
async fn each_alert_is_raised_by_what_it_is_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let scrapes = std::sync::Arc::new(AtomicU64::new(0));
    let router = axum::Router::new()
        .route("/sick", get(move || async move { sick(scrapes.fetch_add(1, Ordering::Relaxed)) }))
        .route("/stuck", get(async || STUCK))
        .route("/standby", get(async || STANDBY));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    // `standby` is in the same namespace as its leader.
    let jobs = [("sick", "one"), ("stuck", "two"), ("standby", "two")].map(|(name, namespace)| {
        let labels = json!({ "namespace": namespace, "pod": name });
        json!({
            "job_name": name, "metrics_path": format!("/{name}"), "honor_labels": true,
            "static_configs": [{ "targets": [target], "labels": labels }],
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let groups = groups(&play::chart("home"));
    let prometheus = Prometheus::start(folder.path(), &jobs, &groups).await.unwrap();
    let rules = groups.as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let all: Vec<&str> = rules.map(|rule| rule["alert"].as_str().unwrap()).collect();
    // Somebody says that he is an operator; that there is none is in the other test.
    let wanted: Vec<&str> = all.iter().copied().filter(|name| *name != "KubeRayOperatorDown").collect();
    prometheus.until_raised(&wanted).await.unwrap_or_else(|error| panic!("{error:#}"));

    let rules = prometheus.rules().await.unwrap();
    let alerts = |name: &str| rules.iter().find(|rule| rule["name"] == name).unwrap()["alerts"].as_array().unwrap().clone();
    assert!(alerts("KubeRayOperatorDown").is_empty());
    let leaderless: Vec<Value> = alerts("KubeRayOperatorNoLeader").iter().map(|alert| alert["labels"]["namespace"].clone()).collect();
    assert_eq!(leaderless, ["one"], "a standby is none");
    let stuck: Vec<Value> = alerts("KubeRayQueueStuck").iter().map(|alert| alert["labels"]["pod"].clone()).collect();
    assert_eq!(stuck, ["stuck"], "nor is its queue");
    for alert in rules.iter().flat_map(|rule| rule["alerts"].as_array().unwrap()) {
        for text in alert["annotations"].as_object().unwrap().values() {
            assert!(!["<no value>", "<error"].iter().any(|sign| text.as_str().unwrap().contains(sign)), "{alert}");
        }
    }
    server.abort();

    let page = std::fs::read_to_string(chart::workspace().join("docs/operations.md")).unwrap();
    for name in all {
        assert!(page.contains(name), "docs/operations.md does not say what to do about {name}");
    }
}
