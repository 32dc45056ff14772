//! Follows every Pod of a namespace, and says whether there was ever one too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api_tests::Scene;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::watcher::{Config, Event, watcher};
use shared::api::RayCluster;
use tokio::task::JoinHandle;

/// Uid of the cluster, and whether it is about heads.
type Group = (String, bool);

/// How long after an edit a Pod may still be made for what was wanted before.
const REACTION: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Books {
    /// Owner and role of each Pod that nobody has deleted.
    live: HashMap<String, Group>,
    /// How many workers each cluster was told to have, and when.
    wanted: HashMap<String, Vec<(Instant, i32)>>,
    /// How many Pods of a group there were when one was made.
    made: Vec<(Instant, Group, usize)>,
}

impl Books {
    fn take_in(&mut self, pod: &Pod, is_gone: bool) {
        let uid = pod.uid().unwrap_or_default();
        let Some(owner) = pod.owner_references().iter().find(|owner| owner.kind == "RayCluster") else { return };
        if is_gone || pod.metadata.deletion_timestamp.is_some() {
            self.live.remove(&uid);
            return;
        }
        let group = (owner.uid.clone(), pod.labels().get("ray.io/node-type").is_some_and(|kind| kind == "head"));
        if self.live.insert(uid, group.clone()).is_none() {
            let seen = self.live.values().filter(|known| **known == group).count();
            self.made.push((Instant::now(), group, seen));
        }
    }

    /// The highest number of workers that was wanted shortly before or at `time`.
    fn most_wanted(&self, cluster: &str, time: Instant) -> i32 {
        let edits = self.wanted.get(cluster).map(Vec::as_slice).unwrap_or_default();
        let old = edits.iter().rev().find(|(at, _)| *at + REACTION < time);
        let recent = edits.iter().filter(|(at, _)| *at + REACTION >= time && *at <= time + REACTION);
        old.into_iter().chain(recent).map(|(_, wanted)| *wanted).max().unwrap_or_default()
    }
}

/// Follows every Pod of a namespace until it is dropped.
pub(super) struct Watcher {
    books: Arc<Mutex<Books>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Watcher {
    pub(super) fn start(scene: &Scene) -> Self {
        let books = Arc::new(Mutex::new(Books::default()));
        let (pods, clusters) = (scene.api::<Pod>(), scene.api::<RayCluster>());
        let (of_pods, of_clusters) = (Arc::clone(&books), Arc::clone(&books));
        let follow_pods = async move {
            let mut events = watcher(pods, Config::default()).boxed();
            while let Some(event) = events.next().await {
                let mut books = of_pods.lock().unwrap();
                match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) => books.take_in(&pod, false),
                    Ok(Event::Delete(pod)) => books.take_in(&pod, true),
                    _ => {}
                }
            }
        };
        let follow_clusters = async move {
            let mut events = watcher(clusters, Config::default()).boxed();
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(cluster) | Event::InitApply(cluster)) = event {
                    let wanted: i32 = cluster.spec.worker_groups().iter().filter_map(|group| group.replicas).sum();
                    let mut books = of_clusters.lock().unwrap();
                    books.wanted.entry(cluster.uid().unwrap_or_default()).or_default().push((Instant::now(), wanted));
                }
            }
        };
        Self { books, tasks: vec![tokio::spawn(follow_pods), tokio::spawn(follow_clusters)] }
    }

    /// Checks that no Pod was ever made that made a cluster have two heads, or more workers than it was told to have.
    pub(super) fn assert_never_doubled(&self) {
        let books = self.books.lock().unwrap();
        assert!(!books.made.is_empty());
        for (time, (cluster, is_head), seen) in &books.made {
            let wanted = if *is_head { 1 } else { usize::try_from(books.most_wanted(cluster, *time)).unwrap() };
            assert!(*seen <= wanted, "cluster {cluster} had {seen} Pods at a time instead of {wanted} (heads: {is_head})");
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
