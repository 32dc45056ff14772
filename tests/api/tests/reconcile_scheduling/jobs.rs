//! RayJobs: their Pods are bound by the test and run by a fake node, and a dashboard says how the job fares.

use api_tests::Dashboard;
use api_tests::gang::Binder;
use api_tests::scene::{PATIENCE, Scene, group, spec};
use k8s_openapi::api::batch::v1::Job;
use operator::build::scheduling::pod_group::{Plugins, PodGroup, Volcano};
use serde_json::{Value, json};
use shared::api::{RayCluster, RayJob, RayJobStatus};
use testcluster::wait;

use super::*;

/// A namespace with an operator, a dashboard, and somebody who binds Pods.
pub struct Play {
    pub scene: Scene,
    pub dashboard: Dashboard,
    binder: Binder,
}

impl Play {
    /// `None` where these tests cannot run.
    pub async fn new(scheduler: &str, prefix: &str) -> Option<Self> {
        if testcluster::platform::require_linux_root().is_err() {
            eprintln!("skipped: fake Pods at addresses of this machine need root");
            return None;
        }
        let scene = scene(scheduler, prefix).await;
        let dashboard = Dashboard::start(scene.client.clone(), &scene.namespace);
        let binder = Binder::start(scene.client.clone(), &scene.namespace, "fake1");
        Some(Self { scene, dashboard, binder })
    }

    /// Makes RayJob `j` on one head and one worker.
    pub async fn job(&self, mode: &str, labels: Value, more: Value) {
        let mut job = json!({
            "entrypoint": "python x.py", "submissionMode": mode,
            "rayClusterSpec": spec(&[asking(group("a", 1), "2")], json!({})),
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let job = json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": "j", "labels": labels }, "spec": job });
        self.scene.create::<RayJob>(job).await.unwrap();
    }

    /// Waits for `jobDeploymentStatus/jobStatus`.
    pub async fn reaches(&self, summary: &str) -> RayJobStatus {
        let jobs = self.scene.api::<RayJob>();
        let found = |status: &RayJobStatus| format!("{}/{}", status.job_deployment_status.as_str(), status.job_status);
        let probe = || async { Ok(jobs.get("j").await?.status.filter(|status| found(status) == summary)) };
        match wait::until(summary, PATIENCE, probe).await {
            Ok(status) => status,
            Err(error) => panic!("{error:#}\n{:?}\n{}", jobs.get("j").await.unwrap().status, self.scene.operator().log()),
        }
    }

    async fn suspend(&self, suspended: bool) {
        self.scene.patch::<RayJob>("j", json!({ "spec": { "suspend": suspended } })).await.unwrap();
    }
}

/// BS-12, BS-14, BS-19, RJ-100, RJ-180.
#[tokio::test]
async fn reconcile_c_51_a_group_asks_for_what_is_left_after_the_end() {
    let Some(play) = Play::new("volcano", "c51").await else { return };
    let rule = |policy: &str, seconds: i32| json!({ "policy": policy, "condition": { "jobStatus": "SUCCEEDED", "ttlSeconds": seconds } });
    let rules = json!({ "deletionStrategy": { "deletionRules": [rule("DeleteWorkers", 4), rule("DeleteCluster", 9)] } });
    play.dashboard.submitted("SUCCEEDED");
    play.job("HTTPMode", json!({ "volcano.sh/queue-name": "q" }), rules).await;
    let status = play.reaches("Complete/SUCCEEDED").await;
    let first = group_of::<Volcano>(&play.scene, "ray-j-pg", 2).await;
    assert_eq!((first.owner_references()[0].kind.as_str(), first.spec.queue.as_deref()), ("RayJob", Some("q")));
    let groups = play.scene.api::<PodGroup<Volcano>>().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(groups.len(), 1, "the cluster has none of its own");
    assert_eq!(play.binder.bound().len(), 2);
    for pod in play.scene.pods(&status.ray_cluster_name, "").await.unwrap() {
        assert_eq!(mark(&pod, "scheduling.k8s.io/group-name"), Some("ray-j-pg"));
    }
    assert_eq!(told(&play.scene, "j", "BatchSchedulerCleanedUp").await, 0, "all of it is still needed");
    let workers_gone = group_of::<Volcano>(&play.scene, "ray-j-pg", 1).await;
    assert_eq!(workers_gone.metadata.uid, first.metadata.uid);
    let all_gone = group_of::<Volcano>(&play.scene, "ray-j-pg", 0).await;
    assert_eq!((all_gone.metadata.uid, all_gone.spec.min_resources.len()), (first.metadata.uid, 0));
    let told_of_it = async || Ok((told(&play.scene, "j", "BatchSchedulerCleanedUp").await > 0).then_some(()));
    play.scene.until("a word about it", told_of_it).await.unwrap();
    assert_eq!(told(&play.scene, "j", "FailedToCleanupBatchScheduler").await, 0);
}

/// BS-5, BS-14, BS-18, RJ-35, RJ-52: with a submitter, through scaling, suspension and another try.
#[tokio::test]
async fn reconcile_rj_180_a_group_through_the_life_of_a_job() {
    let Some(play) = Play::new("volcano", "life").await else { return };
    play.job("K8sJobMode", json!({}), json!({ "shutdownAfterJobFinishes": true })).await;
    let status = play.reaches("Running/").await;
    let group = group_of::<Volcano>(&play.scene, "ray-j-pg", 2).await;
    // Head and worker, and in the resources alone the submitter.
    assert_eq!(resources(&group), "cpu=2500m memory=200Mi");
    for pod in play.scene.pods(&status.ray_cluster_name, "").await.unwrap() {
        assert!(version(&pod) > 0 && mark(&pod, "scheduling.k8s.io/group-name") == Some("ray-j-pg"));
        assert!(pod.metadata.creation_timestamp >= group.metadata.creation_timestamp);
    }
    let submitter = play.scene.api::<Job>().get("j").await.unwrap().spec.unwrap().template;
    assert_eq!(submitter.spec.as_ref().unwrap().scheduler_name.as_deref(), Some("volcano"));
    let annotations = submitter.metadata.unwrap().annotations.unwrap();
    assert_eq!(annotations["scheduling.k8s.io/group-name"], "ray-j-pg");
    assert_eq!(annotations["volcano.sh/task-spec"], "submittergroup");
    play.scene.patch_group(&status.ray_cluster_name, "replicas", json!(2)).await.unwrap();
    group_of::<Volcano>(&play.scene, "ray-j-pg", 3).await;

    play.suspend(true).await;
    play.reaches("Suspended/").await;
    assert_eq!(resources(&group_of::<Volcano>(&play.scene, "ray-j-pg", 0).await), "");
    play.suspend(false).await;
    let again = play.reaches("Running/").await;
    assert_ne!(again.ray_cluster_name, status.ray_cluster_name);
    assert_eq!(group_of::<Volcano>(&play.scene, "ray-j-pg", 2).await.metadata.uid, group.metadata.uid);
}

/// BS-15: KubeRay leaves such a RayJob Initializing for good. BS-16: a label that cannot be read is shown, and holds no deletion.
#[tokio::test]
async fn reconcile_bs_15_jobs_on_other_clusters_and_bad_labels() {
    let Some(play) = Play::new("volcano", "shared").await else { return };
    play.scene.cluster("shared", spec(&[], json!({}))).await.unwrap();
    group_of::<Volcano>(&play.scene, "ray-shared-pg", 1).await;
    let selector = json!({ "clusterSelector": { "ray.io/cluster": "shared" }, "rayClusterSpec": null });
    play.job("HTTPMode", json!({}), selector).await;
    play.reaches("Running/RUNNING").await;
    assert!(play.scene.api::<PodGroup<Volcano>>().get_opt("ray-j-pg").await.unwrap().is_none());
    play.scene.delete::<RayJob>("j").await.unwrap();
    let gone = async || Ok(play.scene.api::<RayJob>().get_opt("j").await?.is_none().then_some(()));
    play.scene.until("the RayJob to go", gone).await.unwrap();

    let (mode, tier) = ("volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier-allowed");
    play.job("HTTPMode", json!({ mode: "soft", tier: "low" }), json!({})).await;
    let shown = async || {
        let status = play.scene.api::<RayJob>().get("j").await?.status.unwrap_or_default();
        let says = status.conditions.iter().any(|condition| condition.reason == "InvalidPodGroup" && condition.status == "False");
        Ok((says && status.message.contains(tier)).then_some(()))
    };
    play.scene.until("a word about the label", shown).await.unwrap();
    let own = ListParams::default().labels("ray.io/originated-from-cr-name=j");
    assert!(play.scene.api::<RayCluster>().list(&own).await.unwrap().items.is_empty());
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.scene.until("the RayJob to go", gone).await.unwrap();

    // The same for a group of somebody else.
    play.scene.create::<PodGroup<Volcano>>(json!({ "metadata": { "name": "ray-j-pg" }, "spec": { "minMember": 5 } })).await.unwrap();
    play.job("HTTPMode", json!({}), json!({})).await;
    let shown = async || {
        let status = play.scene.api::<RayJob>().get("j").await?.status.unwrap_or_default();
        Ok(status.conditions.iter().any(|condition| condition.reason == "PodGroupNameTaken").then_some(()))
    };
    play.scene.until("a word about the name", shown).await.unwrap();
    assert_eq!(play.scene.api::<PodGroup<Volcano>>().get("ray-j-pg").await.unwrap().spec.min_member, 5);
    play.scene.delete::<PodGroup<Volcano>>("ray-j-pg").await.unwrap();
    play.reaches("Running/RUNNING").await;
    group_of::<Volcano>(&play.scene, "ray-j-pg", 2).await;
}

/// BS-30, BS-31, BS-32, BS-34, RJ-181.
#[tokio::test]
async fn reconcile_bs_34_yunikorn_reads_one_list_of_groups() {
    let Some(play) = Play::new("yunikorn", "yunikorn").await else { return };
    let labels = json!({
        "ray.io/gang-scheduling-enabled": "true", "yunikorn.apache.org/app-id": "app", "yunikorn.apache.org/queue": "root.q",
    });
    play.job("K8sJobMode", labels, json!({})).await;
    let status = play.reaches("Running/").await;
    let cluster = play.scene.api::<RayCluster>().get(&status.ray_cluster_name).await.unwrap();
    let list = mark(&cluster, "yunikorn.apache.org/task-groups").unwrap();
    let groups: Vec<Value> = serde_json::from_str(list).unwrap();
    let sizes: Vec<String> = groups.iter().map(|group| format!("{}={}", group["name"].as_str().unwrap(), group["minMember"])).collect();
    assert_eq!(sizes, ["headgroup=1", "a=1", "submittergroup=1"]);
    let pods = play.scene.pods(&status.ray_cluster_name, "").await.unwrap();
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert_eq!(pod.spec.as_ref().unwrap().scheduler_name.as_deref(), Some("yunikorn"));
        assert_eq!((mark(pod, "applicationId"), mark(pod, "queue")), (Some("app"), Some("root.q")));
        assert_eq!(mark(pod, "yunikorn.apache.org/task-groups"), Some(list));
        assert_eq!(mark(pod, "yunikorn.apache.org/task-group-name"), mark(pod, "ray.io/group"));
    }
    let submitter = play.scene.api::<Job>().get("j").await.unwrap().spec.unwrap().template;
    let metadata = submitter.metadata.unwrap();
    assert_eq!(metadata.labels.unwrap()["applicationId"], "app");
    let annotations = metadata.annotations.unwrap();
    assert_eq!(annotations["yunikorn.apache.org/task-group-name"], "submittergroup");
    assert_eq!(annotations["yunikorn.apache.org/task-groups"], list);
}

/// BS-40, BS-41, BS-53: KubeRay refuses such RayJobs, and they stay Initializing for good.
#[tokio::test]
async fn reconcile_bs_41_bs_53_jobs_run_with_kai_and_scheduler_plugins() {
    if let Some(play) = Play::new("kai-scheduler", "kai").await {
        play.job("K8sJobMode", json!({ "kai.scheduler/queue": "q" }), json!({})).await;
        let status = play.reaches("Running/").await;
        for pod in play.scene.pods(&status.ray_cluster_name, "").await.unwrap() {
            assert_eq!(pod.spec.as_ref().unwrap().scheduler_name.as_deref(), Some("kai-scheduler"));
            assert_eq!(mark(&pod, "kai.scheduler/queue"), Some("q"));
        }
        let submitter = play.scene.api::<Job>().get("j").await.unwrap().spec.unwrap().template;
        assert_eq!(submitter.spec.unwrap().scheduler_name.as_deref(), Some("kai-scheduler"));
        assert_eq!(submitter.metadata.unwrap().labels.unwrap()["kai.scheduler/queue"], "q");
    }
    if let Some(play) = Play::new("scheduler-plugins", "plugjob").await {
        play.job("K8sJobMode", json!({ "ray.io/gang-scheduling-enabled": "true" }), json!({})).await;
        let status = play.reaches("Running/").await;
        let name = status.ray_cluster_name;
        let group = group_of::<Plugins>(&play.scene, &name, 2).await;
        assert_eq!(group.owner_references()[0].kind, "RayCluster");
        for pod in play.scene.pods(&name, "").await.unwrap() {
            assert_eq!(mark(&pod, "scheduling.x-k8s.io/pod-group"), Some(name.as_str()));
        }
        let submitter = play.scene.api::<Job>().get("j").await.unwrap().spec.unwrap().template;
        assert_eq!(submitter.spec.unwrap().scheduler_name.as_deref(), Some("scheduler-plugins-scheduler"));
        assert!(!submitter.metadata.unwrap().labels.unwrap().contains_key("scheduling.x-k8s.io/pod-group"));
    }
}
