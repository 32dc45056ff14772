//! The labels of the cluster's namespaces, for policies that choose namespaces by label. Watched only while such a policy is in force.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};

use super::policy::CurrentPolicy;

pub(super) type Labels = BTreeMap<String, String>;

/// What is known about namespaces.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    known: RwLock<HashMap<String, Labels>>,
}

impl Namespaces {
    /// The labels of a namespace, empty as long as they are not known.
    pub(super) fn labels(&self, name: &str) -> Labels {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned().unwrap_or_default()
    }

    fn learn(&self, listed: &mut HashMap<String, Labels>, event: Event<PartialObjectMeta<Namespace>>) {
        let entry = |mut object: PartialObjectMeta<Namespace>| (object.name_any(), std::mem::take(object.labels_mut()));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.extend([entry(object)]),
            Event::InitDone => *known = std::mem::take(listed),
            Event::Apply(object) => known.extend([entry(object)]),
            Event::Delete(object) => drop(known.remove(&object.name_any())),
        }
    }

    /// Works until it is dropped: waits for a policy that needs labels, then follows the namespaces.
    pub(super) async fn run(self: Arc<Self>, policy: Arc<CurrentPolicy>, cluster: impl Future<Output = anyhow::Result<Client>>) {
        while !policy.get().reads_labels() {
            policy.changed.notified().await;
        }
        let client = match cluster.await {
            Ok(client) => client,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "the configuration chooses namespaces by label, but no cluster tells the labels: such entries fit nowhere"
                );
                return;
            }
        };
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(client);
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
        let mut listed = HashMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.learn(&mut listed, event),
                Err(error) => tracing::warn!(%error, "cannot watch namespaces; the labels known so far stay in use"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str, tier: &str) -> PartialObjectMeta<Namespace> {
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"tier": tier}}})).expect("metadata")
    }

    #[test]
    fn labels_follow_the_events_and_a_new_list_replaces_the_old_at_its_end() {
        let (namespaces, mut listed) = (Namespaces::default(), HashMap::new());
        let mut learn = |event| namespaces.learn(&mut listed, event);
        let tier = |name: &str| namespaces.labels(name).remove("tier");
        learn(Event::Init);
        learn(Event::InitApply(namespace("a", "1")));
        assert_eq!(tier("a"), None, "a list that is not complete is not used");
        learn(Event::InitDone);
        assert_eq!(tier("a").as_deref(), Some("1"));
        learn(Event::Apply(namespace("a", "2")));
        learn(Event::Apply(namespace("b", "3")));
        assert_eq!((tier("a").as_deref(), tier("b").as_deref()), (Some("2"), Some("3")));
        learn(Event::Delete(namespace("a", "2")));
        assert_eq!(tier("a"), None);
        learn(Event::Init);
        learn(Event::InitApply(namespace("c", "4")));
        assert_eq!(tier("b").as_deref(), Some("3"), "the old list serves until the new one is complete");
        learn(Event::InitDone);
        assert_eq!((tier("b"), tier("c").as_deref()), (None, Some("4")));
    }
}
