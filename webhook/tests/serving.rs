//! The server over real TLS: both HTTP versions, limits, readiness, metrics, and a drain that loses nothing.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::Value;
use support::{Client, Files, PATIENCE, connect, flags, get, ready, review, start, until};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;

const VALIDATE: &str = "/validate-ray-io-v1-raycluster";

fn answer(text: &str) -> Value {
    let mut answer: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((&answer["kind"], &answer["response"]["uid"]), (&"AdmissionReview".into(), &"u-1".into()));
    answer["response"].take()
}

#[tokio::test]
async fn reviews_are_answered_over_both_http_versions() {
    let files = Files::new();
    let running = ready(&files).await;
    for mut client in [Client::http1(running.addresses, &files).await, Client::http2(running.addresses, &files).await] {
        for _ in 0..3 {
            let (status, headers, text) = client.post(VALIDATE, review(&["a"], 0)).await.expect("answered");
            assert_eq!((status, &headers["content-type"]), (StatusCode::OK, &"application/json".parse().expect("a value")));
            assert_eq!(answer(&text)["allowed"], true, "{text}");
            let (_, _, text) = client.post(VALIDATE, review(&["a", "a"], 0)).await.expect("answered");
            let refused = answer(&text);
            assert_eq!(refused["allowed"], false, "{text}");
            assert_eq!(refused["status"]["details"]["causes"][0]["field"], "spec.workerGroupSpecs[1].groupName", "{text}");
        }
    }
    let (_, metrics) = get(running.addresses.metrics, "/metrics").await;
    for line in [
        r#"kuberay_webhook_admission_decisions_total{path="validate",kind="RayCluster",operation="CREATE",allowed="false"} 6"#,
        r#"kuberay_webhook_rule_hits_total{rule="V-C-70",level="error",namespace="team-a"} 6"#,
        r#"kuberay_webhook_certificate_not_after_seconds{certificate="serving"} "#,
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "no {line} in\n{metrics}");
    }
}

#[tokio::test]
async fn three_megabytes_pass_and_eight_get_a_sentence() {
    let files = Files::new();
    let running = ready(&files).await;
    for mut client in [Client::http1(running.addresses, &files).await, Client::http2(running.addresses, &files).await] {
        let (status, _, text) = client.post(VALIDATE, review(&["a"], 3 << 20)).await.expect("answered");
        assert_eq!(status, StatusCode::OK, "{text}");
        assert_eq!(answer(&text)["allowed"], true, "{text}");
        let (status, _, text) = client.post(VALIDATE, review(&["a"], 8 << 20)).await.expect("answered although it is too large");
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(text.contains("larger than 7 MiB"), "{text}");
    }
    // The process lives on.
    let mut client = Client::http1(running.addresses, &files).await;
    assert_eq!(client.post(VALIDATE, review(&["a"], 0)).await.expect("answered").0, StatusCode::OK);
}

#[tokio::test]
async fn readiness_waits_for_a_certificate_and_says_so() {
    let files = Files::empty();
    let running = start(files.folder.path()).await;
    let (status, text) = get(running.addresses.health, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.starts_with("not ready:\n"), "{text}");
    until("the reason", async || get(running.addresses.health, "/readyz").await.1.contains("tls.crt")).await;
    assert_eq!(get(running.addresses.health, "/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
    assert!(connect(running.addresses.admission, &Files::new().root, "http/1.1").await.is_err(), "no certificate, no handshake");
}

#[tokio::test]
async fn draining_loses_no_request_and_is_quick() {
    let files = Files::new();
    let running = ready(&files).await;
    let mut busy = Client::http1(running.addresses, &files).await;
    let mut streams = Client::http2(running.addresses, &files).await;
    let idle = Client::http1(running.addresses, &files).await;
    let silent = TcpStream::connect(running.addresses.admission).await.expect("accepted");
    busy.post(VALIDATE, review(&["a"], 0)).await.expect("answered");
    streams.post(VALIDATE, review(&["a"], 0)).await.expect("answered");

    let start = Instant::now();
    running.stop.send(()).expect("running");
    until("readiness fails first", async || get(running.addresses.health, "/readyz").await.1.contains("shutting down")).await;
    // Still served, and told to go elsewhere.
    let (status, headers, _) = busy.post(VALIDATE, review(&["a"], 0)).await.expect("answered while draining");
    assert_eq!((status, &headers["connection"]), (StatusCode::OK, &"close".parse().expect("a value")));
    let (status, _, _) = streams.post(VALIDATE, review(&["a"], 0)).await.expect("answered while draining");
    assert_eq!(status, StatusCode::OK);
    let mut fresh = Client::http1(running.addresses, &files).await;
    assert_eq!(fresh.post(VALIDATE, review(&["a"], 0)).await.expect("new connections, too").0, StatusCode::OK);

    running.task.await.expect("no panic");
    assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
    until("idle connections are closed", async || idle.closed() && streams.closed()).await;
    assert!(TcpStream::connect(running.addresses.admission).await.is_err(), "the port is free");
    drop(silent);
}

#[tokio::test]
async fn the_program_says_where_it_listens_and_ends_in_time_on_sigterm() {
    let files = Files::new();
    let program = env!("CARGO_BIN_EXE_kuberay-webhook");
    let mut child = tokio::process::Command::new(program)
        .args(flags(files.folder.path()).into_iter().skip(1))
        .env_remove("KUBECONFIG")
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut log = vec![];
    let started = async {
        loop {
            let line = lines.next_line().await.expect("text").expect("running");
            let entry: Value = serde_json::from_str(&line).expect("one JSON object a line");
            let ready = entry["message"] == "ready";
            log.push(entry);
            if ready {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, started).await.expect("ready in time");
    let begin = log.iter().find(|entry| entry["message"] == "webhook started").expect("said");
    let health = begin["health"].as_str().and_then(|address| address.parse().ok());
    assert_eq!(get(health, "/readyz").await.0, StatusCode::OK);

    let pid = child.id().expect("running").to_string();
    let begin = Instant::now();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.expect("ends").expect("waited");
    assert!(status.success(), "{status}");
    assert!(begin.elapsed() < Duration::from_secs(2), "took {:?}", begin.elapsed());
}

#[tokio::test]
async fn mistakes_in_flags_end_the_program_with_a_sentence() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = format!("--port={}", taken.local_addr().expect("bound").port());
    for (flags, wanted) in [
        (vec!["--bind-address=127.0.0.1", &port, "--cert-mode=secret"], "--port: cannot listen"),
        (vec!["--feature-gates=NoSuchGate=true"], "NoSuchGate"),
        (vec!["--metrics-addr=nowhere"], "HOST:PORT"),
        (vec!["--kubeconfig=/does/not/exist"], "/does/not/exist"),
        (vec!["--log-level=loud,=="], "--log-level"),
    ] {
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_kuberay-webhook")).arg("serve").args(&flags).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("ends").expect("started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(wanted), "{flags:?}: {text}");
    }
}
