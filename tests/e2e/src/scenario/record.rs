//! Every Pod of Ray that was ever made in a namespace, from a watch: lists miss those that came and went in between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;

/// Longer than a scenario takes. The API server allows no more than five minutes a watch.
const WATCH_SECONDS: u32 = 290;
const NODE_TYPE: &str = "ray.io/node-type";

/// The record; it ends when this value is dropped.
pub struct Record {
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    /// By uid.
    pods: BTreeMap<String, Made>,
    /// Why the record has gaps.
    broken: Option<String>,
}

/// A Pod that was made.
#[derive(Default)]
struct Made {
    name: String,
    node_type: String,
    /// The container runtime could not start one of its containers, which happens on a machine that is short of everything. Who does
    /// not restart containers has to make another Pod then.
    unstarted: bool,
}

impl Record {
    /// Begins to record.
    ///
    /// # Errors
    /// When the Pods cannot be listed, or there are some already.
    pub async fn begin(client: &Client, namespace: &str) -> Result<Self> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let list = pods.list(&ListParams::default()).await.context("listing Pods")?;
        if !list.items.is_empty() {
            bail!("there are Pods in {namespace} already");
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        let state = Arc::new(Mutex::new(State::default()));
        let task = tokio::spawn({
            let state = state.clone();
            async move {
                let result = follow(&pods, version, &state).await;
                lock(&state).broken = result.err().map(|error| format!("{error:#}"));
            }
        });
        Ok(Self { state, task })
    }

    /// Name and node type of every Pod, whatever became of it.
    pub fn all(&self) -> Vec<(String, String)> {
        lock(&self.state).pods.values().map(|made| (made.name.clone(), made.node_type.clone())).collect()
    }

    /// How many Pods of a node type were made, but for those that the container runtime could not start.
    ///
    /// # Errors
    /// When the record has gaps.
    pub fn count(&self, node_type: &str) -> Result<usize> {
        let state = lock(&self.state);
        if let Some(why) = &state.broken {
            bail!("the record of Pods broke off: {why}");
        }
        Ok(state.pods.values().filter(|made| made.node_type == node_type && !made.unstarted).count())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows one watch after the other; each goes on where the last one ended.
async fn follow(pods: &Api<Pod>, mut version: String, state: &Mutex<State>) -> Result<()> {
    loop {
        let parameters = WatchParams::default().labels(NODE_TYPE).timeout(WATCH_SECONDS);
        let mut events = std::pin::pin!(pods.watch(&parameters, &version).await.context("watching Pods")?);
        while let Some(event) = events.try_next().await.context("watching Pods")? {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                    version = pod.resource_version().unwrap_or(version);
                    let mut state = lock(state);
                    let made = state.pods.entry(pod.uid().unwrap_or_default()).or_default();
                    made.name = pod.name_any();
                    made.node_type = pod.labels().get(NODE_TYPE).cloned().unwrap_or_default();
                    made.unstarted |= is_unstarted(&pod);
                }
                WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                WatchEvent::Error(status) => bail!("{}", status.message),
            }
        }
    }
}

fn is_unstarted(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses).flatten());
    let mut ended = statuses.filter_map(|container| container.state.as_ref()?.terminated.as_ref());
    ended.any(|end| end.reason.as_deref() == Some("StartError"))
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
