//! Watches that tell when objects have come to where they should be. Metadata and the status only: the watcher shares the machine with
//! what is measured.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, ObjectMeta};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use tokio::sync::mpsc;

use super::NAMESPACE;

#[derive(Resource, serde::Deserialize, Clone, Debug)]
#[resource(inherit = shared::api::RayCluster)]
struct ClusterView {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Option<ClusterState>,
}

#[derive(serde::Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct ClusterState {
    #[serde(default)]
    state: String,
}

#[derive(Resource, serde::Deserialize, Clone, Debug)]
#[resource(inherit = Pod)]
struct PodView {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Option<PodState>,
}

#[derive(serde::Deserialize, Clone, Debug, Default)]
struct PodState {
    #[serde(default)]
    conditions: Vec<PodCondition>,
}

#[derive(serde::Deserialize, Clone, Debug)]
struct PodCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

/// Names of ready RayClusters with the moment that this was seen.
pub(super) struct Ready(mpsc::UnboundedReceiver<(String, Instant)>);

/// Names of ready Pods.
pub(super) struct ReadyPods(mpsc::UnboundedReceiver<(String, Instant)>);

impl Ready {
    pub(super) fn start(client: &Client) -> Self {
        let api: Api<ClusterView> = Api::namespaced(client.clone(), NAMESPACE);
        Self(follow(api, |cluster| cluster.status.as_ref().is_some_and(|status| status.state == "ready")))
    }

    pub(super) async fn wait(mut self, count: usize, limit: Duration) -> Result<HashMap<String, Instant>> {
        collect(&mut self.0, count, limit).await
    }
}

impl ReadyPods {
    pub(super) fn start(client: &Client) -> Self {
        let api: Api<PodView> = Api::namespaced(client.clone(), NAMESPACE);
        Self(follow(api, |pod| {
            let conditions = pod.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        }))
    }

    pub(super) async fn wait(mut self, count: usize, limit: Duration) -> Result<()> {
        collect(&mut self.0, count, limit).await.map(drop)
    }
}

fn follow<K>(api: Api<K>, ready: impl Fn(&K) -> bool + Send + 'static) -> mpsc::UnboundedReceiver<(String, Instant)>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let (send, receive) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut seen = HashSet::new();
        let mut events = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        while let Ok(Some(object)) = events.try_next().await {
            let name = object.name_any();
            if ready(&object) && seen.insert(name.clone()) && send.send((name, Instant::now())).is_err() {
                return;
            }
        }
    });
    receive
}

async fn collect(
    events: &mut mpsc::UnboundedReceiver<(String, Instant)>,
    count: usize,
    limit: Duration,
) -> Result<HashMap<String, Instant>> {
    let mut seen = HashMap::new();
    let deadline = tokio::time::Instant::now() + limit;
    while seen.len() < count {
        match tokio::time::timeout_at(deadline, events.recv()).await {
            Ok(Some((name, at))) => drop(seen.insert(name, at)),
            Ok(None) => bail!("the watch ended"),
            Err(_) => bail!("{} of {count} are ready after {} s", seen.len(), limit.as_secs()),
        }
    }
    Ok(seen)
}

/// Waits until the namespace has neither RayClusters nor Pods.
pub(super) async fn wait_gone(client: &Client, limit: Duration) -> Result<()> {
    let clusters: Api<ClusterView> = Api::namespaced(client.clone(), NAMESPACE);
    let pods: Api<PodView> = Api::namespaced(client.clone(), NAMESPACE);
    testcluster::wait::until("the deletion of everything", limit, || async {
        let one = ListParams::default().limit(1);
        let gone = clusters.list(&one).await?.items.is_empty() && pods.list(&one).await?.items.is_empty();
        Ok(gone.then_some(()))
    })
    .await
}
