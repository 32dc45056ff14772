//! The floor: what the API server, the scheduler and the fake nodes need for the same objects without any operator.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use testcluster::progress::Progress;

use super::{LIMIT, Options, PARALLEL};
use crate::server::NAMESPACE;
use crate::watch;

/// Creates the Pods and Services of all clusters and waits until every Pod is ready.
pub(super) async fn create_all(client: &Client, options: &Options) -> Result<Duration> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let ready = watch::pods(client);
    let started = Instant::now();
    stream::iter(0..options.clusters)
        .map(|number| {
            let (pods, services) = (pods.clone(), services.clone());
            async move {
                let name = format!("c{number}");
                services.create(&PostParams::default(), &service(&name)?).await?;
                for part in 0..=options.workers {
                    pods.create(&PostParams::default(), &pod(&name, part)?).await?;
                }
                Ok::<_, anyhow::Error>(())
            }
        })
        .buffer_unordered(PARALLEL)
        .try_collect::<Vec<()>>()
        .await?;
    Progress::stderr().step("floor: until all Pods are ready", ready.wait(options.clusters * (options.workers + 1), LIMIT)).await?;
    Ok(started.elapsed())
}

fn service(name: &str) -> Result<Service> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": format!("{name}-head-svc")},
        "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": true,
            "selector": {"ray.io/cluster": name, "ray.io/node-type": "head"},
            "ports": [{"name": "dashboard", "port": 8265}, {"name": "gcs-server", "port": 6379}, {"name": "client", "port": 10001}],
        },
    }))?)
}

/// A Pod of about the size that the operator makes: what the API server stores and sends is a part of the floor.
fn pod(cluster: &str, part: usize) -> Result<Pod> {
    let probe = json!({
        "exec": {"command": ["bash", "-c", "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"]},
        "periodSeconds": 5, "failureThreshold": 120,
    });
    let env: Vec<_> = (0..12).map(|number| json!({"name": format!("RAY_SETTING_{number}"), "value": format!("value-{number}")})).collect();
    Ok(serde_json::from_value(json!({
        "metadata": {
            "name": format!("{cluster}-{part}"),
            "labels": {"ray.io/cluster": cluster, "ray.io/node-type": if part == 0 { "head" } else { "worker" }, "ray.io/is-ray-node": "yes"},
        },
        "spec": {"containers": [{
            "name": "ray", "image": "rayproject/ray:2.56.0", "command": ["/bin/bash", "-c", "--"], "args": ["ray start --block"], "env": env,
            "livenessProbe": probe, "readinessProbe": probe,
            "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}},
            "volumeMounts": [{"name": "shared-mem", "mountPath": "/dev/shm"}],
        }], "volumes": [{"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}]},
    }))?)
}
