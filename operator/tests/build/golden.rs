//! Whole objects, as files to read. `UPDATE_EXPECT=1 cargo test -p operator --test build` writes them anew; read the difference.

use expect_test::{ExpectFile, expect_file};
use k8s_openapi::api::core::v1::Container;
use operator::build::{redis_cleanup, service};
use operator::settings::{Settings, VERSION};
use serde::Serialize;
use serde_json::{Value, json};
use shared::features::Feature;

use crate::fixture::{cluster, gates, head_group, head_with, limits, ray, settings, worker_group, worker_with};

fn check(objects: &[&dyn erased::Yaml], expected: &ExpectFile) {
    let text: Vec<String> = objects.iter().map(|object| object.yaml()).collect();
    expected.assert_eq(&text.join("---\n"));
}

/// Lets objects of different types stand in one list.
mod erased {
    use super::{Serialize, VERSION, Value};

    pub(super) trait Yaml {
        fn yaml(&self) -> String;
    }

    impl<T: Serialize> Yaml for T {
        fn yaml(&self) -> String {
            let mut value: Value = serde_json::to_value(self).unwrap();
            // A release changes the version, and nothing else here; the hash has tests of its own.
            for metadata in ["/metadata", "/spec/template/metadata"] {
                if let Some(hash) = value.pointer_mut(&format!("{metadata}/annotations/ray.io~1upgrade-strategy-recreate-hash")) {
                    *hash = "HASH".into();
                }
            }
            // One line a command: folded text would end lines in spaces that count.
            let options = serde_saphyr::ser_options! { folded_wrap_chars: 100_000 };
            serde_saphyr::to_string_with_options(&value, options).unwrap().replace(VERSION, "VERSION")
        }
    }
}

/// Head and worker of one cluster.
fn both(edit: impl Fn(&mut Value), settings: &Settings, expected: &ExpectFile) {
    check(&[&head_with(&edit, settings), &worker_with(&edit, settings)], expected);
}

fn originated_from(kind: &str) -> Value {
    json!({"ray.io/originated-from-crd": kind, "ray.io/originated-from-cr-name": "parent"})
}

#[test]
fn plain() {
    both(|_| (), &Settings::default(), &expect_file!["../golden/plain.yaml"]);
    let cluster = cluster(|_| ());
    check(&[&service::head(&cluster, &Settings::default())], &expect_file!["../golden/head-service.yaml"]);
}

#[test]
fn http_probes() {
    both(|c| c["spec"]["rayVersion"] = "2.53.0".into(), &Settings::default(), &expect_file!["../golden/http-probes.yaml"]);
}

#[test]
fn submitter_beside_the_head() {
    let edit = |c: &mut Value| {
        c["metadata"]["labels"] = originated_from("RayJob");
        c["metadata"]["annotations"] = json!({"ray.io/disable-provisioned-head-restart": "true"});
        let spec = &mut head_group(c)["template"]["spec"];
        spec["restartPolicy"] = "Never".into();
        spec["containers"].as_array_mut().unwrap().push(json!({"name": "ray-job-submitter", "image": "rayproject/ray:2.52.0"}));
    };
    check(&[&head_with(edit, &Settings::default())], &expect_file!["../golden/sidecar-head.yaml"]);
}

#[test]
fn autoscaler() {
    let version = |version: &'static str| {
        move |c: &mut Value| {
            c["spec"]["enableInTreeAutoscaling"] = true.into();
            c["spec"]["autoscalerOptions"] = json!({"version": version});
        }
    };
    both(version("v1"), &Settings::default(), &expect_file!["../golden/autoscaler-v1.yaml"]);
    both(version("v2"), &Settings::default(), &expect_file!["../golden/autoscaler-v2.yaml"]);
}

#[test]
fn redis() {
    let edit = |c: &mut Value| {
        let secret = |key: &str| json!({"valueFrom": {"secretKeyRef": {"name": "redis", "key": key}}});
        c["spec"]["gcsFaultToleranceOptions"] =
            json!({"redisAddress": "redis:6379", "redisUsername": secret("username"), "redisPassword": secret("password")});
    };
    both(edit, &Settings::default(), &expect_file!["../golden/redis.yaml"]);
    let job = redis_cleanup::job(&cluster(edit), &Settings::default()).unwrap();
    check(&[&job], &expect_file!["../golden/redis-cleanup.yaml"]);
}

#[test]
fn embedded_storage() {
    let edit = |c: &mut Value| {
        c["spec"]["gcsFaultToleranceOptions"] = json!({"backend": "rocksdb", "storage": {"size": "5Gi", "subPath": "demo"}});
    };
    both(edit, &Settings::default(), &expect_file!["../golden/embedded-storage.yaml"]);
}

#[test]
fn tokens() {
    let auth = |k8s: bool| {
        move |c: &mut Value| {
            c["spec"]["enableInTreeAutoscaling"] = true.into();
            c["spec"]["authOptions"] = json!({"mode": "token", "enableK8sTokenAuth": k8s});
        }
    };
    both(auth(false), &Settings::default(), &expect_file!["../golden/token-of-secret.yaml"]);
    both(auth(true), &Settings::default(), &expect_file!["../golden/token-of-account.yaml"]);
}

#[test]
fn accelerators() {
    let multi_host = |c: &mut Value| {
        worker_group(c)["numOfHosts"] = 4.into();
        limits(worker_group(c), &json!({"google.com/tpu": "4", "cpu": "8", "memory": "16Gi"}));
    };
    check(&[&worker_with(multi_host, &Settings::default())], &expect_file!["../golden/multi-host-tpu-worker.yaml"]);
    for (name, expected) in [
        ("nvidia.com/gpu", expect_file!["../golden/gpu-worker.yaml"]),
        ("nvidia.com/mig-2g.32gb", expect_file!["../golden/mig-worker.yaml"]),
    ] {
        check(&[&worker_with(|c| limits(worker_group(c), &json!({name: "2"})), &Settings::default())], &expected);
    }
}

#[test]
fn login_shell() {
    let login = settings(|s| s.switches.login_shell = true);
    both(|c| c["spec"]["enableInTreeAutoscaling"] = true.into(), &login, &expect_file!["../golden/login-shell.yaml"]);
}

#[test]
fn tls() {
    let edit = |c: &mut Value| c["spec"]["tlsOptions"] = json!({"enabled": true});
    both(edit, &gates(&[Feature::RayClusterMTLS]), &expect_file!["../golden/tls.yaml"]);
}

#[test]
fn history_collector() {
    let edit = |c: &mut Value| {
        let env = json!([{"name": "STORAGE_BACKEND", "value": "GCS"}, {"name": "GCS_BUCKET", "value": "logs"}]);
        c["spec"]["historyServerOptions"] = json!({"collectorOptions": {"image": "collector:1", "env": env}});
    };
    both(edit, &gates(&[Feature::RayClusterHistoryServer]), &expect_file!["../golden/history-collector.yaml"]);
}

#[test]
fn ray_service() {
    both(|c| c["metadata"]["labels"] = originated_from("RayService"), &Settings::default(), &expect_file!["../golden/ray-service.yaml"]);
}

#[test]
fn configured_defaults() {
    let configured = settings(|s| {
        s.pods.head_sidecars = vec![Container { name: "head-sidecar".to_owned(), image: Some("s:1".to_owned()), ..Container::default() }];
        s.pods.worker_sidecars =
            vec![Container { name: "worker-sidecar".to_owned(), image: Some("s:1".to_owned()), ..Container::default() }];
        s.pods.env = serde_json::from_value(json!([{"name": "HTTP_PROXY", "value": "http://proxy"}])).unwrap();
        s.pods.annotations = [("note".to_owned(), "configured".to_owned())].into();
        s.pods.labels = [("team".to_owned(), "configured".to_owned())].into();
    });
    both(|_| (), &configured, &expect_file!["../golden/configured.yaml"]);
}

#[test]
fn pod_security_restricted() {
    let strict = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    });
    let edit = |c: &mut Value| {
        c["spec"]["enableInTreeAutoscaling"] = true.into();
        ray(head_group(c))["securityContext"] = strict.clone();
        ray(worker_group(c))["securityContext"] = strict.clone();
    };
    both(edit, &Settings::default(), &expect_file!["../golden/restricted.yaml"]);
}

#[test]
fn overwritten_command() {
    let edit = |c: &mut Value| {
        c["metadata"]["annotations"] = json!({"ray.io/overwrite-container-cmd": "true"});
        ray(head_group(c))["command"] = json!(["/bin/bash", "-c"]);
        ray(head_group(c))["args"] = json!(["prepare; $KUBERAY_GEN_RAY_START_CMD"]);
    };
    both(edit, &Settings::default(), &expect_file!["../golden/overwritten-command.yaml"]);
}
