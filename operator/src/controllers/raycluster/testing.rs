//! Clusters and Pods for tests, and a world in which plans come true.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use shared::api::RayCluster;

use super::memory::{ClusterMemory, Refusal};
use super::plan::{CleanupJob, NewWorker, Observed, Plan, Verdict, Why, plan};
use super::pods::ClusterPod;
use crate::runtime::pod_view::PodView;
use crate::settings::Settings;

/// Uid of the cluster of tests.
pub(super) const UID: &str = "cluster-uid";

/// When tests happen: at the beginning of a step of name drawing.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub(super) fn after(time: Timestamp, millis: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_millis(millis)).unwrap()
}

fn template() -> Value {
    json!({ "spec": { "containers": [{ "name": "ray", "image": "rayproject/ray:2.52.0" }] } })
}

/// A worker group.
pub(super) fn group(name: &str, replicas: i32) -> Value {
    json!({ "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 10, "template": template() })
}

/// The same with more fields.
pub(super) fn with(mut object: Value, more: Value) -> Value {
    let more: serde_json::Map<String, Value> = serde_json::from_value(more).unwrap();
    object.as_object_mut().unwrap().extend(more);
    object
}

/// A cluster with these groups and further fields of the spec.
pub(super) fn cluster(groups: &[Value], more: Value) -> RayCluster {
    let spec = with(json!({ "headGroupSpec": { "template": template() }, "workerGroupSpecs": groups }), more);
    serde_json::from_value(json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "name": "c", "namespace": "n", "uid": UID, "generation": 1, "creationTimestamp": at(-100) },
        "spec": spec,
    }))
    .unwrap()
}

/// The same with a condition of the status.
pub(super) fn saying(mut cluster: RayCluster, conditions: &[(&str, &str)]) -> RayCluster {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(name, status)| json!({ "type": name, "status": status, "reason": "Test", "message": "", "lastTransitionTime": at(-50) }))
        .collect();
    cluster.status = Some(serde_json::from_value(json!({ "conditions": conditions })).unwrap());
    cluster
}

pub(super) fn annotated(mut cluster: RayCluster, key: &str, value: &str) -> RayCluster {
    cluster.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    cluster
}

/// A Pod in the making.
#[derive(Clone)]
pub(super) struct P(Value);

impl P {
    fn new(name: &str, node_type: &str, group: &str) -> Self {
        Self(json!({
            "metadata": {
                "name": name, "namespace": "n", "uid": format!("uid-{name}"), "creationTimestamp": at(-100),
                "labels": { "ray.io/cluster": "c", "ray.io/node-type": node_type, "ray.io/group": group },
                "annotations": {},
                "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": UID, "controller": true }],
            },
            "spec": { "restartPolicy": "Always", "containers": [{ "name": "ray" }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
    }

    pub(super) fn head(name: &str) -> Self {
        Self::new(name, "head", "headgroup")
    }

    pub(super) fn worker(name: &str, group: &str) -> Self {
        Self::new(name, "worker", group)
    }

    pub(super) fn set(mut self, pointer: &str, value: Value) -> Self {
        *self.0.pointer_mut(pointer).unwrap() = value;
        self
    }

    pub(super) fn label(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.0["metadata"]["labels"][key] = json!(format!("{value}"));
        self
    }

    pub(super) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][key] = json!(value);
        self
    }

    pub(super) fn status(self, status: Value) -> Self {
        self.set("/status", status)
    }

    pub(super) fn pending(self) -> Self {
        self.status(json!({ "phase": "Pending" }))
    }

    pub(super) fn unready(self) -> Self {
        self.status(json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] }))
    }

    pub(super) fn failed(self) -> Self {
        let ended = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
        self.status(json!({ "phase": "Failed", "containerStatuses": [{ "name": "ray", "state": ended }] }))
    }

    pub(super) fn created(self, time: Timestamp) -> Self {
        self.set("/metadata/creationTimestamp", json!(Timestamp::from_second(time.as_second()).unwrap()))
    }

    /// Being deleted, to be gone by `time`.
    pub(super) fn terminating(mut self, time: Timestamp) -> Self {
        self.0["metadata"]["deletionTimestamp"] = json!(time);
        self
    }

    pub(super) fn replica(self, name: &str, index: i32, host: i32) -> Self {
        self.index(index).label("ray.io/worker-group-replica-name", name).label("ray.io/replica-host-index", host)
    }

    pub(super) fn index(self, index: i32) -> Self {
        self.label("ray.io/worker-group-replica-index", index)
    }

    pub(super) fn view(&self) -> PodView {
        serde_json::from_value(self.0.clone()).unwrap()
    }

    pub(super) fn pod(&self) -> ClusterPod {
        ClusterPod::of(Arc::new(self.view()), UID).unwrap()
    }
}

pub(super) fn observed(cluster: RayCluster, pods: &[P]) -> Observed {
    Observed {
        cluster: Arc::new(cluster),
        verdict: Verdict::Valid,
        pods: pods.iter().map(P::pod).collect(),
        head_service: None,
        cleanup_job: CleanupJob::Absent,
    }
}

/// Plans once, with an empty memory.
pub(super) fn plan_once(cluster: RayCluster, pods: &[P]) -> Plan {
    plan(&observed(cluster, pods), &mut ClusterMemory::default(), &Settings::default(), at(0))
}

/// Names of the Pods that go, and why, ordered by name.
pub(super) fn going(plan: &Plan) -> Vec<(String, Why)> {
    let mut going: Vec<_> = plan.pods.delete.iter().map(|deletion| (deletion.pod.name().to_owned(), deletion.why)).collect();
    going.sort();
    going
}

/// Workers that come.
pub(super) fn coming(plan: &Plan) -> Vec<&NewWorker> {
    plan.pods.create_workers.iter().flat_map(|group| &group.workers).collect()
}

/// What becomes of Pods that are made.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kubelet {
    /// They are ready at once.
    Ready,
    /// Workers fail at once.
    WorkersFail,
    /// Heads fail at once.
    HeadFails,
    /// They wait for a node.
    Pending,
}

/// A cluster in which plans come true at once.
pub(super) struct World {
    pub(super) cluster: RayCluster,
    pub(super) pods: BTreeMap<String, P>,
    pub(super) memory: ClusterMemory,
    pub(super) settings: Settings,
    pub(super) now: Timestamp,
    pub(super) kubelet: Kubelet,
    /// How many Pods the quota allows.
    pub(super) quota: usize,
    /// Names of workers made so far.
    pub(super) made: Vec<String>,
    /// Names of Pods deleted so far.
    pub(super) deleted: Vec<String>,
}

impl World {
    pub(super) fn new(cluster: RayCluster) -> Self {
        Self {
            cluster,
            pods: BTreeMap::new(),
            memory: ClusterMemory::default(),
            settings: Settings::default(),
            now: at(0),
            kubelet: Kubelet::Ready,
            quota: usize::MAX,
            made: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// Plans and has the plan come true; answers with it.
    pub(super) fn step(&mut self) -> Plan {
        let pods: Vec<P> = self.pods.values().cloned().collect();
        let plan = plan(&observed(self.cluster.clone(), &pods), &mut self.memory, &self.settings, self.now);
        for deletion in &plan.pods.delete {
            self.pods.remove(deletion.pod.name());
            self.deleted.push(deletion.pod.name().to_owned());
        }
        if let Some(head) = &plan.pods.create_head {
            let name = head.name.clone().unwrap_or_else(|| "c-head".to_owned());
            self.admit(P::head(&name), self.kubelet == Kubelet::HeadFails);
        }
        for batch in &plan.pods.create_workers {
            let group = self.cluster.spec.worker_groups()[batch.group].group_name.clone();
            for worker in &batch.workers {
                if self.deleted.contains(&worker.name) {
                    self.memory.names.add(&worker.name);
                    continue;
                }
                let mut pod = P::worker(&worker.name, &group);
                if let Some(replica) = &worker.replica {
                    pod = pod.index(replica.index);
                    if !replica.name.is_empty() {
                        pod = pod.replica(&replica.name, replica.index, replica.host_index);
                    }
                }
                if !self.admit(pod, self.kubelet == Kubelet::WorkersFail) {
                    let memory = self.memory.group(&group);
                    memory.refusal = Some(Refusal::after(memory.refusal.as_ref(), "FailedCreateWorkerPod", "quota".to_owned(), self.now));
                    break;
                }
                let memory = self.memory.group(&group);
                memory.refusal = None;
                if let Some(replica) = worker.replica.as_ref().filter(|replica| !replica.name.is_empty()) {
                    memory.hosts.entry(replica.name.clone()).or_default().insert(replica.host_index);
                }
                self.made.push(worker.name.clone());
            }
        }
        plan
    }

    fn admit(&mut self, pod: P, fails: bool) -> bool {
        if self.pods.len() >= self.quota {
            return false;
        }
        let pod = match self.kubelet {
            _ if fails => pod.failed(),
            Kubelet::Pending => pod.pending(),
            _ => pod,
        };
        let pod = pod.created(self.now);
        let name = pod.pod().name().to_owned();
        assert!(self.pods.insert(name.clone(), pod).is_none(), "{name} was made twice");
        true
    }

    /// Steps until nothing more happens at this moment.
    pub(super) fn settle(&mut self) -> Plan {
        for _ in 0..50 {
            let plan = self.step();
            if plan.pods.delete.is_empty() && plan.pods.create_head.is_none() && plan.pods.create_workers.is_empty() {
                return plan;
            }
        }
        panic!("never at rest");
    }

    /// Lets time go by, planning whenever a plan asked for it.
    pub(super) fn run(&mut self, seconds: i64) {
        let end = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        for _ in 0..10_000 {
            let plan = self.settle();
            let wake = plan.wake.into_iter().chain(self.memory.retry_at(self.now)).min();
            match wake {
                Some(wake) if wake <= end => self.now = wake.max(after(self.now, 1)),
                _ => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("woken all the time");
    }

    pub(super) fn set_group(&mut self, index: usize, change: Value) {
        let mut spec = serde_json::to_value(&self.cluster.spec).unwrap();
        let group = &mut spec["workerGroupSpecs"][index];
        *group = with(group.clone(), change);
        self.cluster.spec = serde_json::from_value(spec).unwrap();
    }

    pub(super) fn workers(&self, group: &str) -> Vec<String> {
        self.pods.values().map(P::pod).filter(|pod| pod.is_worker_of(group)).map(|pod| pod.name().to_owned()).collect()
    }

    pub(super) fn heads(&self) -> usize {
        self.pods.values().map(P::pod).filter(|pod| pod.role() == super::pods::Role::Head).count()
    }
}
