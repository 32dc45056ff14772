//! RC-80..RC-99c: fault tolerance, token authentication, TLS, history collector.

use operator::build::{GcsStore, auth, gcs_store};
use serde_json::{Value, json};
use shared::features::Feature;

use crate::fixture::{ContainerExt, PodExt, cluster, gates, head, head_group, head_with, ray, worker, worker_group, worker_with};

const UID: &str = "5f3c9e1a-0000-4000-8000-000000000001";

fn options(value: Value) -> impl Fn(&mut Value) {
    move |c| c["spec"]["gcsFaultToleranceOptions"] = value.clone()
}

#[test]
fn rc_80_which_store() {
    let table = [
        (json!({}), json!(null), None),
        (json!({"ray.io/ft-enabled": "False"}), json!(null), None),
        (json!({"ray.io/ft-enabled": "TRUE"}), json!(null), Some(GcsStore::Redis)),
        (json!({}), json!({}), Some(GcsStore::Redis)),
        (json!({}), json!({"backend": "redis"}), Some(GcsStore::Redis)),
        (json!({}), json!({"backend": "rocksdb"}), Some(GcsStore::Embedded)),
    ];
    for (annotations, options, wanted) in table {
        let cluster = cluster(|c| {
            c["metadata"]["annotations"] = annotations.clone();
            c["spec"]["gcsFaultToleranceOptions"] = options.clone();
        });
        assert_eq!(gcs_store(&cluster), wanted, "{annotations} {options}");
        let pod = operator::build::pod::head(&cluster, &Default::default()).unwrap();
        assert_eq!(pod.annotations()["ray.io/ft-enabled"], wanted.is_some().to_string(), "RC-86");
    }
}

#[test]
fn rc_81_workers_wait_for_a_head_that_comes_back() {
    for on in [json!({"redisAddress": "redis:6379"}), json!({"backend": "rocksdb"})] {
        let pod = worker(options(on.clone()));
        assert_eq!(pod.ray().value("RAY_gcs_rpc_server_reconnect_timeout_s"), Some("600"), "{on}");
        assert_eq!(head(options(on)).ray().count("RAY_gcs_rpc_server_reconnect_timeout_s"), 0);
    }
    let own = worker(|c| {
        options(json!({}))(c);
        ray(worker_group(c))["env"] = json!([{"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": "1"}]);
    });
    assert_eq!(own.ray().value("RAY_gcs_rpc_server_reconnect_timeout_s"), Some("1"));
    assert_eq!(worker(|_| ()).ray().count("RAY_gcs_rpc_server_reconnect_timeout_s"), 0);
}

#[test]
fn rc_82_storage_namespace() {
    let table = [
        (json!(null), json!({}), UID),
        (json!("annotated"), json!({}), "annotated"),
        (json!("annotated"), json!({"externalStorageNamespace": "optioned"}), "optioned"),
        (json!(null), json!({"externalStorageNamespace": ""}), UID),
    ];
    for (annotation, ft, wanted) in table {
        let pod = head(|c| {
            if annotation.is_string() {
                c["metadata"]["annotations"] = json!({"ray.io/external-storage-namespace": annotation});
            }
            options(ft.clone())(c);
        });
        assert_eq!(pod.annotations()["ray.io/external-storage-namespace"], wanted);
        assert_eq!(pod.ray().value("RAY_external_storage_namespace"), Some(wanted));
    }
    let own = head(|c| {
        options(json!({}))(c);
        ray(head_group(c))["env"] = json!([{"name": "RAY_external_storage_namespace", "value": "mine"}]);
    });
    assert_eq!(own.ray().value("RAY_external_storage_namespace"), Some("mine"));
    assert_eq!(own.annotations()["ray.io/external-storage-namespace"], UID);
}

#[test]
fn rc_83_redis_by_options() {
    let secret = json!({"secretKeyRef": {"name": "redis", "key": "password"}});
    let pod = head(options(json!({
        "redisAddress": "redis:6379", "redisUsername": {"value": "ray"}, "redisPassword": {"valueFrom": secret},
    })));
    assert_eq!(pod.ray().names()[..4], ["RAY_external_storage_namespace", "RAY_REDIS_ADDRESS", "REDIS_USERNAME", "REDIS_PASSWORD"]);
    assert_eq!(pod.ray().value("RAY_REDIS_ADDRESS"), Some("redis:6379"));
    assert_eq!(pod.ray().value("REDIS_USERNAME"), Some("ray"));
    assert_eq!(json!(pod.ray().variable("REDIS_PASSWORD").unwrap().value_from), secret);
    assert!(pod.start().contains(r#" --redis-password="$REDIS_PASSWORD"  --redis-username="$REDIS_USERNAME" "#), "{}", pod.start());
    assert_eq!(head(options(json!({}))).ray().value("RAY_REDIS_ADDRESS"), Some(""));
}

#[test]
fn rc_84_redis_by_annotation() {
    let by_annotation = |env: Value| {
        head(move |c| {
            c["metadata"]["annotations"] = json!({"ray.io/ft-enabled": "true"});
            head_group(c)["rayStartParams"] = json!({"redis-password": "$SECRET"});
            ray(head_group(c))["env"] = env;
        })
    };
    let pod = by_annotation(json!([]));
    assert_eq!(pod.ray().value("REDIS_PASSWORD"), Some("$SECRET"));
    assert!(pod.start().contains(" --redis-password=$SECRET "));
    assert_eq!(by_annotation(json!([{"name": "REDIS_PASSWORD", "value": "mine"}])).ray().value("REDIS_PASSWORD"), Some("mine"));
    assert_eq!(pod.ray().count("RAY_REDIS_ADDRESS"), 0);
}

#[test]
fn rc_85_embedded_storage() {
    let pod = head(options(json!({"backend": "rocksdb", "storage": {"subPath": "a"}})));
    assert_eq!(pod.ray().names()[..2], ["RAY_gcs_storage", "RAY_gcs_storage_path"]);
    assert_eq!((pod.ray().value("RAY_gcs_storage"), pod.ray().value("RAY_gcs_storage_path")), (Some("rocksdb"), Some("/data/gcs")));
    assert_eq!(json!(pod.ray().volume_mounts)[0], json!({"name": "gcs-storage", "mountPath": "/data/gcs", "subPath": "a"}));
    assert_eq!(pod.volume("gcs-storage")["persistentVolumeClaim"], json!({"claimName": "demo-gcs-pvc"}));
    assert!(pod.annotations().get("ray.io/external-storage-namespace").is_none());
    let pod = head(options(json!({"backend": "rocksdb", "storage": {"claimName": "mine"}})));
    assert_eq!(pod.volume("gcs-storage")["persistentVolumeClaim"], json!({"claimName": "mine"}));
    assert!(worker(options(json!({"backend": "rocksdb"}))).volume("gcs-storage").is_null());
}

fn token(extra: Value) -> impl Fn(&mut Value) {
    move |c| {
        let mut options = json!({"mode": "token"});
        options.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        c["spec"]["authOptions"] = options;
        c["spec"]["enableInTreeAutoscaling"] = true.into();
    }
}

#[test]
fn rc_90_only_the_mode_counts() {
    for off in [json!(null), json!({}), json!({"mode": "disabled"}), json!({"secretName": "x"})] {
        let pod = head(|c| c["spec"]["authOptions"] = off.clone());
        assert_eq!(pod.ray().count("RAY_AUTH_MODE") + pod.ray().count("RAY_AUTH_TOKEN"), 0, "{off}");
    }
}

#[test]
fn rc_91_token_from_a_secret() {
    let (head, worker) = (head(token(json!({}))), worker(token(json!({}))));
    for container in [head.ray(), head.container("autoscaler"), worker.ray(), worker.init("wait-gcs-ready")] {
        assert_eq!(container.value("RAY_AUTH_MODE"), Some("token"), "{}", container.name);
        let from = json!(container.variable("RAY_AUTH_TOKEN").unwrap().value_from);
        assert_eq!(from, json!({"secretKeyRef": {"name": "demo", "key": "auth_token"}}), "{}", container.name);
    }
    let pod = crate::fixture::head(token(json!({"secretName": "mine"})));
    assert_eq!(json!(pod.ray().variable("RAY_AUTH_TOKEN").unwrap().value_from)["secretKeyRef"]["name"], "mine");
    let own = crate::fixture::head(|c| {
        token(json!({}))(c);
        ray(head_group(c))["env"] = json!([{"name": "RAY_AUTH_TOKEN", "value": "mine"}]);
    });
    assert_eq!((own.ray().value("RAY_AUTH_TOKEN"), own.ray().count("RAY_AUTH_TOKEN")), (Some("mine"), 1));
}

#[test]
fn rc_91_92_tokens_of_service_accounts() {
    let edit = token(json!({"enableK8sTokenAuth": true}));
    let pod = worker(|c| {
        edit(c);
        worker_group(c)["template"]["spec"]["initContainers"] = json!([{"name": "mine"}]);
    });
    for container in [pod.ray(), pod.init("wait-gcs-ready")] {
        assert_eq!(container.value("RAY_ENABLE_K8S_TOKEN_AUTH"), Some("true"));
        assert_eq!(container.count("RAY_AUTH_TOKEN"), 0);
        let mount = json!(container.volume_mounts.iter().flatten().find(|mount| mount.name == "ray-token"));
        assert_eq!(mount, json!({"name": "ray-token", "mountPath": "/var/run/secrets/ray.io/serviceaccount", "readOnly": true}));
    }
    assert_eq!(pod.init("mine").names(), ["FQ_RAY_IP", "RAY_IP"]);
    assert_eq!(pod.volume("ray-token")["projected"], json!({"sources": [{"serviceAccountToken": {"path": "token"}}]}));
    let own = worker(|c| {
        edit(c);
        worker_group(c)["template"]["spec"]["volumes"] = json!([{"name": "ray-token", "emptyDir": {}}]);
    });
    assert_eq!(own.volume("ray-token"), json!({"name": "ray-token", "emptyDir": {}}));
}

/// RJ-115: what a submitter uses.
#[test]
fn auth_for_other_pods() {
    let cluster = cluster(token(json!({"enableK8sTokenAuth": true})));
    let mut container = Default::default();
    let mut pod = Default::default();
    for _ in 0..2 {
        auth::add_to_container(&mut container, &cluster);
        auth::add_volume(&mut pod, &cluster);
    }
    assert_eq!(container.names(), ["RAY_AUTH_MODE", "RAY_ENABLE_K8S_TOKEN_AUTH"]);
    assert_eq!(container.mounted(), ["ray-token:/var/run/secrets/ray.io/serviceaccount"]);
    assert_eq!(pod.volumes.unwrap().len(), 1);
    assert!(auth::uses_service_account_tokens(&cluster) && auth::uses_tokens(&cluster));
}

fn tls(c: &mut Value) {
    c["spec"]["tlsOptions"] = json!({"enabled": true});
    c["spec"]["enableInTreeAutoscaling"] = true.into();
}

#[test]
fn rc_95_98_certificates() {
    let gates = gates(&[Feature::RayClusterMTLS]);
    let (head, worker) = (head_with(tls, &gates), worker_with(tls, &gates));
    assert_eq!(head.volume("ray-tls")["secret"]["secretName"], "ray-head-secret-demo");
    assert_eq!(worker.volume("ray-tls")["secret"]["secretName"], "ray-worker-secret-demo");
    for container in [head.ray(), head.container("autoscaler"), worker.ray(), worker.init("wait-gcs-ready")] {
        let tls: Vec<&str> = container.names().into_iter().filter(|name| name.contains("TLS")).collect();
        assert_eq!(tls, ["RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"], "{}", container.name);
        assert_eq!(container.value("RAY_TLS_CA_CERT"), Some("/etc/ray/tls/ca.crt"));
        assert!(container.mounted().contains(&"ray-tls:/etc/ray/tls".to_owned()), "{}", container.name);
    }
    for pod in [&head, &worker] {
        let init = &pod.spec.as_ref().unwrap().init_containers.as_ref().unwrap()[0];
        assert_eq!(init.name, "wait-for-tls-ip-san");
        assert_eq!(init.command.as_deref().unwrap(), ["sh", "-c"]);
        assert_eq!(init.names(), ["POD_IP", "FQ_RAY_IP", "RAY_IP"]);
        assert_eq!(init.mounted(), ["ray-tls:/etc/ray/tls"]);
        assert_eq!(json!(init.resources)["limits"], json!({"cpu": "50m", "memory": "64Mi"}));
    }
    for off in [worker_with(tls, &Default::default()), worker_with(|c| c["spec"]["tlsOptions"] = json!({"enabled": false}), &gates)] {
        assert!(off.volume("ray-tls").is_null());
        assert_eq!(off.spec.unwrap().init_containers.unwrap().len(), 1);
    }
}

/// RC-98, run for real with certificates as `openssl` prints them.
#[test]
fn rc_98_the_script_waits_for_the_whole_address() {
    let pod = head_with(tls, &gates(&[Feature::RayClusterMTLS]));
    let script = pod.init("wait-for-tls-ip-san").args.as_ref().unwrap()[0].clone();
    let ends_at_once = |names: &str, address: &str| {
        // `sleep` ends the script: it is only reached when the address is missing.
        let preamble = format!("openssl() {{ echo '{names}'; }}; sleep() {{ exit 9; }}\n");
        let mut shell = std::process::Command::new("bash");
        let output = shell.args(["-c", &format!("{preamble}{script}")]).env("POD_IP", address).output().unwrap();
        output.status.code() == Some(0)
    };
    let table = [
        ("DNS:localhost, IP Address:127.0.0.1, IP Address:10.0.0.1", "10.0.0.1", true),
        ("IP Address:10.0.0.1, IP Address:127.0.0.1", "10.0.0.1", true),
        ("IP Address:10.0.0.11", "10.0.0.1", false),
        ("IP Address:10.0.0.1.2", "10.0.0.1", false),
        ("IP Address:10.0.0.1", "10.0.0.11", false),
        ("IP Address:10a0b0c1", "10.0.0.1", false),
        ("DNS:localhost", "10.0.0.1", false),
    ];
    for (names, address, wanted) in table {
        assert_eq!(ends_at_once(names, address), wanted, "{names} / {address}");
    }
}

#[test]
fn rc_99_the_collector() {
    let gates = gates(&[Feature::RayClusterHistoryServer]);
    let edit = |c: &mut Value| {
        c["metadata"]["labels"] = json!({"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "job"});
        c["spec"]["authOptions"] = json!({"mode": "token"});
        c["spec"]["historyServerOptions"] =
            json!({"collectorOptions": {"image": "collector:1", "env": [{"name": "STORAGE_BACKEND", "value": "GCS"}]}});
    };
    let pod = head_with(edit, &gates);
    let collector = pod.container("ray-history-collector");
    let wanted = [
        "POD_IP",
        "RAY_CLUSTER_NAME",
        "RAY_CLUSTER_NAMESPACE",
        "RAY_ROLE",
        "EVENTS_PORT",
        "FQ_RAY_IP",
        "OWNER_KIND",
        "OWNER_NAME",
        "RAY_DASHBOARD_ADDRESS",
        "STORAGE_BACKEND",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN",
    ];
    assert_eq!(collector.names(), wanted);
    assert_eq!((collector.value("RAY_ROLE"), collector.value("OWNER_KIND")), (Some("Head"), Some("RayJob")));
    assert_eq!(collector.image_pull_policy.as_deref(), Some("IfNotPresent"));
    assert_eq!(
        json!(collector.resources),
        json!({"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}})
    );
    assert_eq!((&collector.command, &collector.args), (&None, &None));
    let last: Vec<&str> = pod.ray().names().into_iter().rev().take(5).collect();
    assert!(
        last.iter()
            .all(|name| name.starts_with("RAY_DASHBOARD_AGGREGATOR") || name.ends_with("ray_event") || name.ends_with("to_aggregator")),
        "{last:?}"
    );

    let worker = worker_with(edit, &gates);
    assert_eq!(worker.container("ray-history-collector").value("RAY_ROLE"), Some("Worker"));
    assert_eq!(worker.container("ray-history-collector").count("RAY_DASHBOARD_ADDRESS"), 0);
    let own = head_with(
        |c| {
            edit(c);
            c["spec"]["historyServerOptions"]["collectorOptions"]["env"] = json!([{"name": "RAY_DASHBOARD_ADDRESS", "value": "mine"}]);
        },
        &gates,
    );
    assert_eq!(own.container("ray-history-collector").count("RAY_DASHBOARD_ADDRESS"), 1);
    assert_eq!(crate::fixture::head(edit).spec.unwrap().containers.len(), 1, "nothing without the gate");
}
