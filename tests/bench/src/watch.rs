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

use crate::server::NAMESPACE;

#[derive(Resource, serde::Deserialize, Clone, Debug)]
#[resource(inherit = shared::api::RayCluster)]
struct ClusterView {
    metadata: ObjectMeta,
    #[serde(default)]
    status: ClusterState,
}

#[derive(serde::Deserialize, Clone, Debug, Default)]
struct ClusterState {
    #[serde(default)]
    state: String,
}

#[derive(Resource, serde::Deserialize, Clone, Debug)]
#[resource(inherit = shared::api::RayJob)]
struct JobView {
    metadata: ObjectMeta,
    #[serde(default)]
    status: JobState,
}

#[derive(serde::Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct JobState {
    #[serde(default)]
    job_deployment_status: String,
}

#[derive(Resource, serde::Deserialize, Clone, Debug)]
#[resource(inherit = Pod)]
struct PodView {
    metadata: ObjectMeta,
    #[serde(default)]
    status: PodState,
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

/// Names of objects that have come to where they should be, with the moment that this was seen.
pub(crate) struct Arrivals(mpsc::UnboundedReceiver<(String, Instant)>);

/// RayClusters that are ready.
pub(crate) fn clusters(client: &Client) -> Arrivals {
    follow::<ClusterView>(client, |cluster| cluster.status.state == "ready")
}

/// RayJobs whose `jobDeploymentStatus` is this.
pub(crate) fn jobs(client: &Client, deployment_status: &'static str) -> Arrivals {
    follow::<JobView>(client, move |job| job.status.job_deployment_status == deployment_status)
}

/// Pods that are ready.
pub(crate) fn pods(client: &Client) -> Arrivals {
    follow::<PodView>(client, |pod| pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}

impl Arrivals {
    /// Waits for so many of them.
    ///
    /// # Errors
    /// When they do not arrive in time.
    pub(crate) async fn wait(mut self, count: usize, limit: Duration) -> Result<HashMap<String, Instant>> {
        let mut seen = HashMap::new();
        let deadline = tokio::time::Instant::now() + limit;
        while seen.len() < count {
            match tokio::time::timeout_at(deadline, self.0.recv()).await {
                Ok(Some((name, at))) => drop(seen.insert(name, at)),
                Ok(None) => bail!("the watch ended"),
                Err(_) => bail!("{} of {count} have arrived after {} s", seen.len(), limit.as_secs()),
            }
        }
        Ok(seen)
    }
}

fn follow<K>(client: &Client, arrived: impl Fn(&K) -> bool + Send + 'static) -> Arrivals
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let (send, receive) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut seen = HashSet::new();
        let mut events = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        while let Ok(Some(object)) = events.try_next().await {
            let name = object.name_any();
            if arrived(&object) && seen.insert(name.clone()) && send.send((name, Instant::now())).is_err() {
                return;
            }
        }
    });
    Arrivals(receive)
}

/// Waits until the namespace has no RayClusters.
///
/// # Errors
/// When it still has after `limit`.
pub(crate) async fn clusters_gone(client: &Client, limit: Duration) -> Result<()> {
    gone::<ClusterView>(client, "the deletion of every RayCluster", limit).await
}

/// Waits until the namespace has neither RayClusters nor Pods.
///
/// # Errors
/// When it still has after `limit`, for each of the two.
pub(crate) async fn all_gone(client: &Client, limit: Duration) -> Result<()> {
    clusters_gone(client, limit).await?;
    gone::<PodView>(client, "the deletion of every Pod", limit).await
}

async fn gone<K>(client: &Client, what: &str, limit: Duration) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    testcluster::wait::until(what, limit, || async { Ok(api.list(&ListParams::default().limit(1)).await?.items.is_empty().then_some(())) })
        .await
}
