//! What the operator's caches take for a fleet.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use api_tests::{Program, namespace, server};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

const PODS: usize = 3000;
/// The most memory that the operator may have used at any time, in MiB. A debug build has more code than a release build has.
const BUDGET: u64 = 48;

/// A head Pod as the operator makes it: about 5 KB.
fn pod(number: usize) -> Pod {
    let env: Vec<_> = (0..12).map(|index| json!({ "name": format!("RAY_VARIABLE_{index}"), "value": "x".repeat(60) })).collect();
    let probe = json!({ "exec": { "command": ["bash", "-c", "y".repeat(150)] }, "periodSeconds": 5, "failureThreshold": 120 });
    let ports: Vec<_> =
        [6379, 8265, 10001, 8000, 8080].iter().map(|port| json!({ "name": format!("p{port}"), "containerPort": port })).collect();
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("raycluster-{number}-head-x7k2p"),
            "labels": {
                "ray.io/cluster": format!("raycluster-{number}"), "ray.io/node-type": "head", "ray.io/group": "headgroup", "ray.io/is-ray-node": "yes",
                "ray.io/identifier": format!("raycluster-{number}-head"), "app.kubernetes.io/name": "kuberay",
                "app.kubernetes.io/created-by": "kuberay-operator", "team": "a-team-with-a-long-name",
            },
            "annotations": { "ray.io/ft-enabled": "false", "note": "z".repeat(400) },
        },
        "spec": {
            "containers": [{ "name": "ray-head", "image": "rayproject/ray:2.54.1", "env": env, "ports": ports,
                             "command": ["/bin/bash", "-c", "--"], "args": ["ulimit -n 65536; ray start --head --block"],
                             "livenessProbe": probe, "readinessProbe": probe }],
            "volumes": [{ "name": "shared-mem", "emptyDir": { "medium": "Memory" } }],
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn runtime_three_thousand_pods_fit_into_the_budget() {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "memory").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let create = |number| {
        let pods = pods.clone();
        async move { pods.create(&PostParams::default(), &pod(number)).await }
    };
    futures::stream::iter(0..PODS).map(create).buffer_unordered(16).try_collect::<Vec<_>>().await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let flags = ["--enable-leader-election=false", &format!("--watch-namespace={namespace}")];
    let program = Program::operator(folder.path(), &server().kubeconfig(), &flags, &[]).await.unwrap();
    let metrics = program.metrics().await.unwrap();
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '))).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(value(r#"kuberay_cache_objects{kind="Pod"}"#), u64::try_from(PODS).unwrap());
    let peak = value("process_resident_memory_peak_bytes") >> 20;
    println!("{PODS} Pods: {peak} MiB at most, {} MiB now", value("process_resident_memory_bytes") >> 20);
    assert!(peak <= BUDGET, "{peak} MiB for {PODS} Pods");
}
