//! RayJobs and RayCronJobs at a real API server, with fake nodes that run every Pod and a dashboard that says what the test wants.
//!
//! The operator reaches the dashboard through the API server's proxy, so the fake Pods need addresses of this machine, which takes root.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are tests

#[path = "reconcile_rayjob/cron.rs"]
mod cron;
#[path = "reconcile_rayjob/ends.rs"]
mod ends;
#[path = "reconcile_rayjob/heads.rs"]
mod heads;
#[path = "reconcile_rayjob/lifecycle.rs"]
mod lifecycle;
#[path = "reconcile_rayjob/sidecar.rs"]
mod sidecar;
#[path = "reconcile_rayjob/trouble.rs"]
mod trouble;

use std::time::Duration;

use api_tests::scene::{PATIENCE, Scene, spec};
use api_tests::server::{Server, Wanted, server_with};
use api_tests::{Dashboard, Mood};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use shared::api::{RayCluster, RayJob, RayJobStatus};
use testcluster::api::FakeNodes;
use testcluster::wait;

const GATES: &str = "--feature-gates=RayCronJob=true,SidecarSubmitterRestart=true";

fn server() -> Option<&'static Server> {
    if testcluster::platform::require_linux_root().is_err() {
        eprintln!("skipped: fake Pods at addresses of this machine need root");
        return None;
    }
    let nodes = FakeNodes { count: 2, local_pods: true, pod_cidr: "10.93.0.0/16".to_owned(), ..FakeNodes::default() };
    Some(server_with(Wanted { fake_nodes: Some(nodes) }))
}

/// A namespace with an operator and a dashboard.
struct Play {
    scene: Scene,
    dashboard: Dashboard,
}

/// The flags that every operator here gets, and then some.
fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["--use-kubernetes-proxy", GATES].into_iter().chain(more.iter().copied()).collect()
}

impl Play {
    /// `None` where these tests cannot run.
    async fn new(prefix: &str) -> Option<Self> {
        Self::with(prefix, &[], &[]).await
    }

    async fn with(prefix: &str, more: &[&str], environment: &[(&str, &str)]) -> Option<Self> {
        let mut scene = Scene::without_operator(server()?, prefix).await.unwrap();
        scene.start_in(&flags(more), environment).await.unwrap();
        let dashboard = Dashboard::start(scene.client.clone(), &scene.namespace);
        Some(Self { scene, dashboard })
    }

    /// Makes RayJob `j`.
    async fn job(&self, mode: &str, more: Value) -> RayJob {
        self.job_on(mode, spec(&[], json!({})), more).await
    }

    /// The same on this cluster.
    async fn job_on(&self, mode: &str, cluster: Value, more: Value) -> RayJob {
        let mut object = json!({ "entrypoint": "python x.py", "submissionMode": mode });
        if more.get("clusterSelector").is_none() {
            object["rayClusterSpec"] = cluster;
        }
        if mode == "K8sJobMode" {
            // The fake nodes would end the submitter at once; this is for the test to say.
            object["submitterPodTemplate"] =
                json!({ "spec": { "nodeSelector": { "no": "such" }, "containers": [{ "name": "ray-job-submitter" }] } });
        }
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": "j" }, "spec": object });
        self.scene.create(object).await.unwrap()
    }

    async fn status(&self) -> RayJobStatus {
        self.scene.api::<RayJob>().get_opt("j").await.unwrap().and_then(|job| job.status).unwrap_or_default()
    }

    /// Waits until the status is as wanted.
    async fn is(&self, what: &str, wanted: impl Fn(&RayJobStatus) -> bool) -> RayJobStatus {
        let jobs = self.scene.api::<RayJob>();
        let probe = || async { Ok(jobs.get_opt("j").await?.and_then(|job| job.status).filter(|status| wanted(status))) };
        match wait::until(what, PATIENCE, probe).await {
            Ok(status) => status,
            Err(error) => panic!("{error:#}\n{}\n{}", serde_json::to_string(&self.status().await).unwrap(), self.scene.operator().log()),
        }
    }

    /// Waits for `jobDeploymentStatus/reason/jobStatus`; a star stands for anything.
    async fn reaches(&self, summary: &str) -> RayJobStatus {
        let wanted: Vec<String> = summary.split('/').map(str::to_owned).collect();
        self.is(summary, |status| {
            let found = [status.job_deployment_status.as_str(), &status.reason, &status.job_status];
            wanted.iter().zip(found).all(|(wanted, found)| wanted == "*" || wanted == found)
        })
        .await
    }

    /// Makes sure that the status stays as it is for a while.
    async fn stays(&self, summary: &str, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            let status = self.status().await;
            let found = format!("{}/{}/{}", status.job_deployment_status.as_str(), status.reason, status.job_status);
            assert_eq!(found, summary, "{}", self.scene.operator().log());
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    async fn clusters(&self) -> Vec<RayCluster> {
        let list = self.scene.api::<RayCluster>().list(&ListParams::default()).await.unwrap().items;
        list.into_iter().filter(|cluster| cluster.metadata.deletion_timestamp.is_none()).collect()
    }

    async fn submitter(&self) -> Option<Job> {
        self.scene.api::<Job>().get_opt("j").await.unwrap()
    }

    /// Ends the Pod of the submitter's Job and waits for the Job's own word.
    async fn finish_submitter(&self, well: bool) {
        let jobs = self.scene.api::<Job>();
        let ended = |job: &Job| {
            let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| {
                all.iter().any(|condition| matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True")
            })
        };
        let probe = async || {
            let Some(job) = jobs.get_opt("j").await? else { return Ok(None) };
            if ended(&job) {
                return Ok(Some(()));
            }
            let list = ListParams::default().labels("batch.kubernetes.io/job-name=j");
            for pod in self.scene.api::<Pod>().list(&list).await?.items {
                if matches!(phase(&pod), "Pending" | "Running") {
                    let state = json!({ "terminated": { "exitCode": i32::from(!well), "reason": "Ended" } });
                    self.scene.set_pod(&pod, json!({ "phase": if well { "Succeeded" } else { "Failed" }, "containerStatuses": containers(&pod, &[("ray-job-submitter", 0, state)]) })).await?;
                }
            }
            Ok(None)
        };
        self.scene.until("the end of the submitter's Job", probe).await.unwrap();
    }

    /// The running head Pod of the job's cluster.
    async fn head(&self) -> Pod {
        self.scene
            .until("a running head", async || {
                let list = ListParams::default().labels("ray.io/node-type=head");
                let pods = self.scene.api::<Pod>().list(&list).await?.items;
                Ok(pods.into_iter().find(|pod| phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none()))
            })
            .await
            .unwrap()
    }

    /// Sets the state of the submitter's container in the head Pod.
    async fn set_sidecar(&self, restarts: i32, state: Value) {
        let head = self.head().await;
        let status = json!({
            "containerStatuses": containers(&head, &[("ray-job-submitter", restarts, state)]),
            "conditions": [{ "type": "Ready", "status": "False", "reason": "ContainersNotReady" }],
        });
        self.scene.set_pod(&head, status).await.unwrap();
    }

    /// Waits until nothing of the RayJob is left.
    async fn is_gone(&self) {
        let everything = async || {
            let left = [
                count::<RayJob>(&self.scene).await?,
                count::<RayCluster>(&self.scene).await?,
                count::<Job>(&self.scene).await?,
                count::<Pod>(&self.scene).await?,
                count::<Service>(&self.scene).await?,
            ];
            Ok((left.iter().sum::<usize>() == 0).then_some(()))
        };
        self.scene.until("nothing to be left", everything).await.unwrap();
    }

    /// Waits until events of these reasons were told, each once.
    async fn told_once(&self, reasons: &[&str]) {
        let probe = async || {
            for reason in reasons {
                if self.told(reason).await != 1 {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        };
        if let Err(error) = self.scene.until("the events", probe).await {
            let events = self.scene.api::<Event>().list(&ListParams::default()).await.unwrap();
            let all: Vec<String> = events.into_iter().map(|event| format!("{:?}: {:?}", event.reason, event.note)).collect();
            panic!("{error:#}\n{}", all.join("\n"));
        }
    }

    /// How often an event of this reason was told about RayJobs and RayCronJobs.
    async fn told(&self, reason: &str) -> usize {
        let events = self.scene.api::<Event>().list(&ListParams::default()).await.unwrap();
        let ours = |event: &Event| matches!(event.reporting_controller.as_deref(), Some("rayjob-controller" | "raycronjob-controller"));
        events.into_iter().filter(|event| ours(event) && event.reason.as_deref() == Some(reason)).count()
    }
}

async fn count<K>(scene: &Scene) -> anyhow::Result<usize>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let api: Api<K> = scene.api();
    Ok(api.list(&ListParams::default()).await?.items.len())
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Statuses of a Pod's containers: all run but those named, by name, restarts and state.
fn containers(pod: &Pod, others: &[(&str, i32, Value)]) -> Value {
    let one = |name: &str| {
        let other = others.iter().find(|(found, ..)| *found == name);
        let (restarts, state) = other.map_or_else(
            || (0, json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } })),
            |(_, restarts, state)| (*restarts, state.clone()),
        );
        let last = if restarts > 0 { json!({ "terminated": { "exitCode": 1, "reason": "Error" } }) } else { json!({}) };
        json!({ "name": name, "image": "i", "imageID": "", "ready": other.is_none(), "restartCount": restarts, "state": state, "lastState": last })
    };
    pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| one(&container.name)).collect()
}

/// State of a condition.
fn condition(status: &RayJobStatus, name: &str) -> Option<(String, String)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == name)?;
    Some((found.status.clone(), found.reason.clone()))
}

/// A spec whose worker never finds a node.
fn never_ready() -> Value {
    let mut group = api_tests::scene::group("a", 1);
    group["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    on_node("fake2", &[group])
}

/// A spec whose head runs on this node.
fn on_node(node: &str, groups: &[Value]) -> Value {
    let mut all = spec(groups, json!({}));
    all["headGroupSpec"]["template"]["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": node });
    all
}

fn now() -> jiff::Timestamp {
    operator::runtime::clock::Clock::system().now()
}

fn name_of(status: &RayJobStatus) -> &str {
    &status.ray_cluster_name
}
