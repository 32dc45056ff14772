//! Events about Ray objects (`events.k8s.io/v1`, RC-103).
//!
//! Told and forgotten: telling never waits and never fails. A task of its own joins what belongs together, keeps repeats apart
//! from news ([`aggregate`]), and writes. When the API server does not keep up, events are dropped and counted.

mod aggregate;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::{core::v1::ObjectReference, events::v1::Event};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use aggregate::{Aggregator, Write};
pub use aggregate::{Occurrence, Severity};

use super::{api::FIELD_MANAGER, clock::Clock, metrics::Metrics};

/// How many events may wait to be joined.
const QUEUE: usize = 1024;
/// How long events about one object are collected before they are written.
const WINDOW: Duration = Duration::from_millis(300);
/// How long one event may take to be written.
const DEADLINE: Duration = Duration::from_secs(10);

/// Where events are told. Clones share the task behind.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<Occurrence>,
    metrics: Metrics,
}

/// Tells events in the name of one controller.
#[derive(Clone)]
pub struct Recorder {
    events: Events,
    reporter: &'static str,
}

impl Events {
    /// Starts the task that writes events. It ends with the last clone of the handle.
    pub fn start(client: Client, clock: Clock, metrics: Metrics) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let instance = format!("{FIELD_MANAGER}-{}", host_name());
        tokio::spawn(write_all(client, clock, metrics.clone(), receiver, Aggregator::new(instance, rand::random())));
        Self { sender, metrics }
    }

    /// The recorder of a controller, such as `raycluster-controller`.
    pub fn recorder(&self, reporter: &'static str) -> Recorder {
        Recorder { events: self.clone(), reporter }
    }
}

impl Recorder {
    /// Something went as it should.
    pub fn normal<K: Resource<DynamicType = ()>>(&self, about: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.tell(Severity::Normal, about, reason, action, note.into());
    }

    /// Something that somebody may have to look at.
    pub fn warning<K: Resource<DynamicType = ()>>(&self, about: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.tell(Severity::Warning, about, reason, action, note.into());
    }

    fn tell<K: Resource<DynamicType = ()>>(&self, severity: Severity, about: &K, reason: &str, action: &str, note: String) {
        let meta = about.meta();
        let occurrence = Occurrence {
            regarding: ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
                ..ObjectReference::default()
            },
            reporter: self.reporter,
            severity,
            reason: reason.to_owned(),
            action: action.to_owned(),
            note,
        };
        if self.events.sender.try_send(occurrence).is_err() {
            self.events.metrics.events("dropped", 1);
        }
    }
}

async fn write_all(client: Client, clock: Clock, metrics: Metrics, mut receiver: mpsc::Receiver<Occurrence>, mut aggregator: Aggregator) {
    while let Some(first) = receiver.recv().await {
        aggregator.record(first);
        let end = tokio::time::Instant::now() + WINDOW;
        while let Ok(Some(more)) = tokio::time::timeout_at(end, receiver.recv()).await {
            aggregator.record(more);
        }
        let flushed = aggregator.flush(clock.now());
        metrics.events("merged", flushed.merged);
        metrics.events("dropped", flushed.dropped);
        for write in flushed.writes {
            let verb = if matches!(write, Write::Create(_)) { "create" } else { "patch" };
            let failure = send(&client, write).await.err();
            metrics.events(if failure.is_none() { "sent" } else { "failed" }, 1);
            metrics.api_write("Event", verb, failure);
        }
    }
}

/// Writes one event; fails with the HTTP code, 0 without an answer.
async fn send(client: &Client, write: Write) -> Result<(), u16> {
    let result = match write {
        Write::Create(event) => {
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            let api = Api::<Event>::namespaced(client.clone(), &namespace);
            tokio::time::timeout(DEADLINE, async { api.create(&params, &event).await.map(drop) }).await
        }
        Write::Series { namespace, name, count, last } => {
            let patch = json!({ "series": { "count": count, "lastObservedTime": last } });
            let api = Api::<Event>::namespaced(client.clone(), &namespace);
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            tokio::time::timeout(DEADLINE, async { api.patch(&name, &params, &Patch::Merge(patch)).await.map(drop) }).await
        }
    };
    match result {
        Ok(Ok(())) => Ok(()),
        // The namespace is on its way out, or a repeat came after the API server forgot the first: nobody misses the event.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404 | 409) => {
            tracing::debug!("event not written: {}", status.message);
            Err(status.code)
        }
        Ok(Err(error)) => {
            tracing::info!("event not written: {}", super::controller::with_causes(&error));
            Err(0)
        }
        Err(_) => {
            tracing::info!("event not written: no answer within {} s", DEADLINE.as_secs());
            Err(0)
        }
    }
}

/// Name of the Pod, or of the machine.
pub(crate) fn host_name() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
