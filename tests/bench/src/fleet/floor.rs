//! The floor: what the API server, the scheduler and the fake nodes need for the same objects without any operator.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use testcluster::progress::Progress;

use super::{LIMIT, Options, PARALLEL};
use crate::server::{self, NAMESPACE};
use crate::watch;

/// Pods and Services of one cluster as an operator made them, to be made again for as many as wanted.
pub(super) struct Pattern {
    cluster: String,
    services: Vec<String>,
    pods: Vec<String>,
}

impl Pattern {
    /// What is there of `cluster`, whose name must not be a part of any other text in its objects.
    pub(super) async fn of(client: &Client, cluster: &str) -> Result<Self> {
        let pattern = Self {
            cluster: cluster.to_owned(),
            services: found::<Service>(client, cluster).await?,
            pods: found::<Pod>(client, cluster).await?,
        };
        ensure!(!pattern.services.is_empty() && !pattern.pods.is_empty(), "nothing is there of RayCluster {cluster}");
        Ok(pattern)
    }

    /// Creates the Pods and Services of all clusters and waits until every Pod is ready.
    pub(super) async fn create_all(&self, client: &Client, options: &Options) -> Result<Duration> {
        let ready = watch::pods(client);
        let started = Instant::now();
        stream::iter(0..options.clusters)
            .map(|number| async move {
                let name = super::name(number);
                create::<Service>(client, &self.services, &self.cluster, &name).await?;
                create::<Pod>(client, &self.pods, &self.cluster, &name).await
            })
            .buffer_unordered(PARALLEL)
            .try_collect::<Vec<()>>()
            .await?;
        Progress::stderr().step("floor: until all Pods are ready", ready.wait(options.clusters * self.pods.len(), LIMIT)).await?;
        Ok(started.elapsed())
    }
}

/// The objects of a kind with the label of a cluster, as they were sent.
async fn found<K>(client: &Client, cluster: &str) -> Result<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let of_cluster = ListParams::default().labels(&format!("ray.io/cluster={cluster}"));
    let list = server::again(|| api.list(&of_cluster)).await?;
    list.items.iter().map(|object| Ok(as_sent(&serde_json::to_value(object)?).to_string())).collect()
}

/// An object without what the API server, the scheduler and the kubelet have put into it.
fn as_sent(object: &Value) -> Value {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let mut spec = part("/spec");
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
        if spec.get("clusterIP").is_some_and(|address| address != "None") {
            spec.retain(|key, _| !key.starts_with("clusterIP"));
        }
    }
    json!({"metadata": {"name": part("/metadata/name"), "labels": part("/metadata/labels"), "annotations": part("/metadata/annotations")}, "spec": spec})
}

async fn create<K>(client: &Client, objects: &[String], from: &str, to: &str) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    for object in objects {
        api.create(&PostParams::default(), &serde_json::from_str(&object.replace(from, to))?).await?;
    }
    Ok(())
}
