//! RC-60..RC-64.

use serde_json::{Value, json};

use crate::fixture::{PodExt, head, head_group, head_with, ray, settings, worker, worker_group};

const RAYLET: &str = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success";
const GCS: &str = "wget --tries 1 -T 10 -q -O- http://localhost:8265/api/gcs_healthz | grep success";
const SERVE: &str = "wget --tries 1 -T 10 -q -O- http://localhost:8000/-/healthz | grep success";

fn exec(checks: &[&str]) -> Value {
    json!({"command": ["bash", "-c", checks.join(" && ")]})
}

fn service(c: &mut Value) {
    c["metadata"]["labels"] = json!({"ray.io/originated-from-crd": "RayService"});
}

#[test]
fn rc_61_63_timing_and_checks() {
    let pod = head(|_| ());
    let wanted = |action: &Value, delay: i32, failures: i32, timeout: i32| {
        json!({
            "exec": action, "initialDelaySeconds": delay, "periodSeconds": 5, "successThreshold": 1,
            "failureThreshold": failures, "timeoutSeconds": timeout,
        })
    };
    let both = exec(&[RAYLET, GCS]);
    assert_eq!(json!(pod.ray().liveness_probe), wanted(&both, 30, 120, 5));
    assert_eq!(json!(pod.ray().readiness_probe), wanted(&both, 10, 10, 5));
    let pod = worker(|_| ());
    let raylet = exec(&[RAYLET]);
    assert_eq!(json!(pod.ray().liveness_probe), wanted(&raylet, 30, 120, 2));
    assert_eq!(json!(pod.ray().readiness_probe), wanted(&raylet, 10, 10, 2));
}

#[test]
fn rc_62_versions() {
    let http = json!({"path": "/api/healthz", "port": 52365});
    let table = [
        ("2.53.0", true),
        ("v2.53", true),
        ("2.53.0rc1", true),
        ("3.0.0", true),
        ("2.52.9", false),
        ("2", false),
        ("nightly", false),
        ("", false),
    ];
    for (version, has_endpoint) in table {
        let pod = worker(|c| c["spec"]["rayVersion"] = version.into());
        let probe = pod.ray().liveness_probe.clone().unwrap();
        assert_eq!(json!(probe.http_get), if has_endpoint { http.clone() } else { Value::Null }, "{version}");
        assert_eq!(probe.exec.is_some(), !has_endpoint, "{version}");
    }
    let pod = worker(|c| {
        c["spec"].as_object_mut().unwrap().remove("rayVersion");
    });
    assert!(pod.ray().liveness_probe.clone().unwrap().exec.is_some());
}

#[test]
fn rc_62_63_ports_follow_the_options() {
    let pod = head(|c| head_group(c)["rayStartParams"] = json!({"dashboard-agent-listen-port": "1234", "dashboard-port": "5678"}));
    let text = json!(pod.ray().readiness_probe)["exec"]["command"][2].as_str().unwrap().to_owned();
    assert!(text.contains("localhost:1234/api/local") && text.contains("localhost:5678/api/gcs"), "{text}");
    let pod = head(|c| head_group(c)["rayStartParams"] = json!({"dashboard-agent-listen-port": "$PORT", "dashboard-port": "99999999999"}));
    assert_eq!(json!(pod.ray().readiness_probe)["exec"], exec(&[RAYLET, GCS]));
    let pod = head(|c| {
        c["spec"]["rayVersion"] = "2.53.0".into();
        head_group(c)["rayStartParams"] = json!({"dashboard-agent-listen-port": "1234"});
    });
    assert_eq!(json!(pod.ray().readiness_probe)["httpGet"]["port"], 1234);
}

#[test]
fn rc_64_workers_of_a_service_are_ready_when_they_serve() {
    for version in ["2.52.0", "2.53.0"] {
        let pod = worker(|c| {
            service(c);
            c["spec"]["rayVersion"] = version.into();
        });
        let readiness = json!(pod.ray().readiness_probe);
        assert_eq!(readiness["exec"], exec(&[RAYLET, SERVE]), "{version}");
        assert_eq!(readiness["failureThreshold"], 1);
        assert_eq!(json!(pod.ray().liveness_probe)["httpGet"].is_object(), version == "2.53.0");
    }
    let pod = worker(|c| {
        service(c);
        ray(worker_group(c))["ports"] = json!([{"name": "serve", "containerPort": 9000}]);
    });
    assert!(json!(pod.ray().readiness_probe)["exec"]["command"][2].as_str().unwrap().contains("localhost:9000/-/healthz"));
    assert_eq!(json!(head(service).ray().readiness_probe)["exec"], exec(&[RAYLET, GCS]), "never the head");
}

#[test]
fn rc_60_the_users_probes_and_the_switch() {
    let mine = json!({"tcpSocket": {"port": 1}});
    let pod = head(|c| ray(head_group(c))["livenessProbe"] = mine.clone());
    assert_eq!(json!(pod.ray().liveness_probe), mine);
    assert!(pod.ray().readiness_probe.is_some());
    let pod = worker(|c| {
        service(c);
        ray(worker_group(c))["readinessProbe"] = mine.clone();
    });
    assert_eq!(json!(pod.ray().readiness_probe), mine);
    let pod = head_with(|_| (), &settings(|s| s.switches.probes_injection = false));
    assert!(pod.ray().liveness_probe.is_none() && pod.ray().readiness_probe.is_none());
}
