//! RC-116: the Job that deletes a cluster's keys from Redis.

use operator::build::redis_cleanup;
use operator::settings::Settings;
use serde_json::{Value, json};
use shared::features::Feature;

use crate::fixture::{ContainerExt, Edit, cluster, gates, head_group, ray};

fn redis(c: &mut Value) {
    c["spec"]["gcsFaultToleranceOptions"] = json!({"redisAddress": "redis:6379", "redisPassword": {"value": "pw"}});
}

#[test]
fn the_job_is_the_head_without_ray() {
    let job = redis_cleanup::job(
        &cluster(|c| {
            redis(c);
            c["spec"]["enableInTreeAutoscaling"] = true.into();
            c["spec"]["tlsOptions"] = json!({"enabled": true});
            let group = head_group(c);
            group["template"]["metadata"]["labels"] =
                json!({"app.kubernetes.io/created-by": "me", "app.kubernetes.io/name": "mine", "team": "x"});
            group["template"]["spec"]["initContainers"] = json!([{"name": "users"}]);
            ray(group)["lifecycle"] = json!({"preStop": {"exec": {"command": ["ray", "stop"]}}});
        }),
        &gates(&[Feature::RayClusterMTLS]),
    )
    .unwrap();
    assert_eq!(job.metadata.name.as_deref(), Some("demo-redis-cleanup"));
    assert_eq!(job.metadata.owner_references.as_ref().unwrap()[0].kind, "RayCluster");
    let spec = job.spec.unwrap();
    assert_eq!((spec.backoff_limit, spec.active_deadline_seconds), (Some(0), Some(300)));
    let labels = json!(job.metadata.labels);
    assert_eq!(labels["ray.io/node-type"], "redis-cleanup");
    assert_eq!((&labels["team"], &labels["app.kubernetes.io/created-by"]), (&json!("x"), &json!("kuberay-operator")));
    assert_eq!(json!(spec.template.metadata)["labels"], labels);
    let pod = spec.template.spec.unwrap();
    assert_eq!(pod.restart_policy.as_deref(), Some("Never"));
    assert_eq!(pod.containers.len(), 1);
    let init: Vec<&str> = pod.init_containers.iter().flatten().map(|init| init.name.as_str()).collect();
    assert_eq!(init, ["users"]);
    let ray = &pod.containers[0];
    assert_eq!((&ray.liveness_probe, &ray.readiness_probe, &ray.lifecycle), (&None, &None, &None));
    assert_eq!(json!(ray.resources)["limits"], json!({"cpu": "200m", "memory": "256Mi"}));
    assert_eq!(ray.value("RAY_redis_db_connect_retries"), Some("120"));
    assert_eq!(ray.value("RAY_redis_db_connect_wait_milliseconds"), Some("500"));
    assert_eq!(ray.value("RAY_REDIS_ADDRESS"), Some("redis:6379"));
    assert_eq!(ray.command.as_deref().unwrap(), ["/bin/bash", "-c", "--"]);
    assert!(ray.mounted().contains(&"ray-tls:/etc/ray/tls".to_owned()));
}

/// The text run by bash and Python, with Ray's function replaced by one that prints what it is asked.
#[test]
fn the_program_asks_ray_for_the_right_thing() {
    let arguments = |edit: Edit<'_>, env: &[(&str, &str)], answer: &str| {
        let job = redis_cleanup::job(&cluster(edit), &Settings::default()).unwrap();
        let container = job.spec.unwrap().template.spec.unwrap().containers.remove(0);
        let stub = package(&format!(
            "import json\ndef cleanup_redis_storage(**arguments):\n    print(json.dumps(arguments))\n    return {answer}\n"
        ));
        let preamble = format!("python() {{ PYTHONPATH={} command python3 \"$@\"; }}\n", stub.path().display());
        let text = format!("{preamble}{}", container.args.unwrap()[0]);
        let output = std::process::Command::new("bash").args(["-c", "--", &text]).envs(env.iter().copied()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let last = printed.lines().last().unwrap_or_default();
        (
            serde_json::from_str::<Value>(last).unwrap_or_else(|_| panic!("{printed}{}", String::from_utf8_lossy(&output.stderr))),
            output.status.code(),
        )
    };
    let plain: Edit<'_> = &redis;
    let with_user: Edit<'_> = &|c| {
        redis(c);
        c["spec"]["gcsFaultToleranceOptions"]["redisUsername"] = json!({"value": "ray"});
    };
    let namespace = ("RAY_external_storage_namespace", "uid");
    let table = [
        (
            plain,
            vec![namespace, ("RAY_REDIS_ADDRESS", "redis:6380,other:1"), ("REDIS_PASSWORD", "p'\"$x")],
            json!({"host": "redis", "port": 6380, "password": "p'\"$x", "use_ssl": false, "storage_namespace": "uid"}),
        ),
        (
            plain,
            vec![namespace, ("RAY_REDIS_ADDRESS", "rediss://:url@redis")],
            json!({"host": "redis", "port": 6379, "password": "url", "use_ssl": true, "storage_namespace": "uid"}),
        ),
        (
            with_user,
            vec![namespace, ("RAY_REDIS_ADDRESS", "redis:1"), ("REDIS_USERNAME", "ray")],
            json!({"host": "redis", "port": 1, "password": "", "use_ssl": false, "storage_namespace": "uid", "username": "ray"}),
        ),
        (
            with_user,
            vec![namespace, ("RAY_REDIS_ADDRESS", "redis://u:p@redis:1")],
            json!({"host": "redis", "port": 1, "password": "p", "use_ssl": false, "storage_namespace": "uid", "username": "u"}),
        ),
    ];
    for (edit, env, wanted) in table {
        assert_eq!(arguments(edit, &env, "True"), (wanted, Some(0)), "{env:?}");
    }
    assert_eq!(arguments(plain, &[("RAY_REDIS_ADDRESS", "redis:1")], "False").1, Some(1));
}

/// A folder with a package `ray._private.gcs_utils` of this text.
fn package(module: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("ray/_private")).unwrap();
    for (file, text) in [("ray/__init__.py", ""), ("ray/_private/__init__.py", ""), ("ray/_private/gcs_utils.py", module)] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    folder
}
