//! RayClusters.

use std::time::Duration;

use api_tests::scene::{Scene, group, spec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use operator::build::scheduling::pod_group::{Plugins, PodGroup, Volcano};
use serde_json::{Value, json};
use shared::api::RayCluster;

use super::*;

/// A cluster `c` with one worker group that asks for two CPUs a Pod.
fn cluster(labels: Value, workers: i32, more: Value) -> Value {
    let mut spec = spec(&[asking(group("a", workers), "2")], more);
    spec["headGroupSpec"] = asking(spec["headGroupSpec"].clone(), "500m");
    json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "c", "labels": labels }, "spec": spec })
}

async fn pods(scene: &Scene) -> Vec<Pod> {
    scene.pods("c", "").await.unwrap()
}

/// Versions of everything that the operator has made or written for `c`.
async fn versions(scene: &Scene) -> Vec<(String, u64)> {
    let mut all: Vec<_> = pods(scene).await.iter().map(|pod| (pod.name_any(), version(pod))).collect();
    let groups = scene.api::<PodGroup<Volcano>>().list(&ListParams::default()).await.unwrap();
    all.extend(groups.iter().map(|group| (group.name_any(), version(group))));
    all.push(("c".to_owned(), version(&scene.api::<RayCluster>().get("c").await.unwrap())));
    all.sort();
    all
}

/// The same once it no longer changes.
async fn at_rest(scene: &Scene) -> Vec<(String, u64)> {
    let probe = async || {
        let before = versions(scene).await;
        tokio::time::sleep(Duration::from_millis(800)).await;
        Ok((versions(scene).await == before).then_some(before))
    };
    scene.until("rest", probe).await.unwrap()
}

/// BS-5, BS-10, BS-13, BS-16, BS-17, BS-18, BS-20.
#[tokio::test]
async fn reconcile_bs_10_a_group_comes_before_the_pods_and_follows_the_cluster() {
    let mut scene = scene("volcano", "volcano").await;
    let labels = json!({
        "volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high",
        "volcano.sh/network-topology-mode": "soft", "volcano.sh/network-topology-highest-tier-allowed": "2",
    });
    let mut object = cluster(labels, 2, json!({}));
    object["metadata"]["annotations"] = json!({ "note": "mine" });
    let made: RayCluster = scene.create(object).await.unwrap();
    let all = scene.has_pods("c", 1, 2).await.unwrap();
    let first = group_of::<Volcano>(&scene, "ray-c-pg", 3).await;
    assert!(all.iter().all(|pod| version(pod) > version(&first)), "no Pod before its group");
    assert_eq!(resources(&first), "cpu=4500m");
    assert_eq!((first.spec.queue.as_deref(), first.spec.priority_class.as_deref()), (Some("q"), Some("high")));
    let topology = first.spec.topology.clone().unwrap();
    assert_eq!((topology.mode.as_str(), topology.highest_tier), ("soft", Some(2)));
    assert_eq!(mark(&first, "note"), Some("mine"));
    let owner = &first.owner_references()[0];
    assert_eq!((owner.kind.as_str(), Some(&owner.uid), owner.controller), ("RayCluster", made.metadata.uid.as_ref(), Some(true)));
    for pod in &all {
        let role = pod.labels()["ray.io/group"].as_str();
        assert_eq!(pod.spec.as_ref().unwrap().scheduler_name.as_deref(), Some("volcano"));
        assert_eq!(mark(pod, "scheduling.k8s.io/group-name"), Some("ray-c-pg"));
        assert_eq!((mark(pod, "volcano.sh/task-spec"), mark(pod, "volcano.sh/queue-name")), (Some(role), Some("q")));
        assert_eq!(mark(pod, "ray.io/priority-class-name"), Some("high"));
    }
    scene.run_to_ready("c").await.unwrap();
    told_once(&scene, "c", "CreatedPodGroup").await;

    // Size, queue and priority follow, however busy the scheduler is with its status.
    let groups = scene.api::<PodGroup<Volcano>>();
    let busy = groups.clone();
    let scheduler = tokio::spawn(async move {
        for round in 0.. {
            let status = json!({ "status": { "phase": format!("Round{round}") } });
            let _ = busy.patch("ray-c-pg", &PatchParams::default(), &Patch::Merge(status)).await;
        }
    });
    for size in 3..8 {
        scene.patch_group("c", "replicas", json!(size)).await.unwrap();
        group_of::<Volcano>(&scene, "ray-c-pg", size + 1).await;
    }
    scene.patch_group("c", "replicas", json!(3)).await.unwrap();
    assert_eq!(resources(&group_of::<Volcano>(&scene, "ray-c-pg", 4).await), "cpu=6500m");
    scheduler.abort();
    // And so does what somebody else has changed or deleted.
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { "volcano.sh/queue-name": "other" } } })).await.unwrap();
    let moved = async || Ok((groups.get("ray-c-pg").await?.spec.queue.as_deref() == Some("other")).then_some(()));
    scene.until("the other queue", moved).await.unwrap();
    scene
        .patch::<PodGroup<Volcano>>("ray-c-pg", json!({ "spec": { "minMember": 1, "minResources": { "cpu": 9, "x": "1" } } }))
        .await
        .unwrap();
    let repaired = async || Ok((resources(&groups.get("ray-c-pg").await?) == "cpu=6500m").then_some(()));
    scene.until("its own size again", repaired).await.unwrap();
    let uid = groups.get("ray-c-pg").await.unwrap().metadata.uid;
    scene.delete::<PodGroup<Volcano>>("ray-c-pg").await.unwrap();
    scene.until("a new one", async || Ok(groups.get_opt("ray-c-pg").await?.filter(|group| group.metadata.uid != uid))).await.unwrap();

    // A restart changes nothing, and a change of the group's status wakes nobody.
    scene.has_pods("c", 1, 3).await.unwrap();
    scene.run_to_ready("c").await.unwrap();
    scene.patch::<PodGroup<Volcano>>("ray-c-pg", json!({ "status": { "phase": "Running" } })).await.unwrap();
    assert_eq!(told(&scene, "c", "FailedToUpdatePodGroup").await, 0);
    let before = at_rest(&scene).await;
    scene.kill().await.unwrap();
    scene.start_with(&["--batch-scheduler=volcano"]).await.unwrap();
    let listed = async || Ok((scene.metric("kuberay_cache_objects", &["kind=\"Pod\""]).await? >= 4.0).then_some(()));
    scene.until("the caches", listed).await.unwrap();
    let looks =
        async || Ok((scene.metric("controller_runtime_reconcile_total", &["raycluster", "requeue_after"]).await? >= 1.0).then_some(()));
    scene.until("a look", looks).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(versions(&scene).await, before);

    // Suspended, it keeps nothing free.
    scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": true } })).await.unwrap();
    assert_eq!(resources(&group_of::<Volcano>(&scene, "ray-c-pg", 0).await), "");
    scene.has_pods("c", 0, 0).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": false } })).await.unwrap();
    let again = group_of::<Volcano>(&scene, "ray-c-pg", 4).await;
    let all = scene.has_pods("c", 1, 3).await.unwrap();
    assert!(all.iter().all(|pod| version(pod) > version(&again)));
}

/// BS-17: KubeRay takes a group of this name as its own, whoever made it.
#[tokio::test]
async fn reconcile_bs_17_a_group_of_somebody_else_is_left_alone_and_shown() {
    let scene = scene("volcano", "foreign").await;
    let foreign = json!({ "metadata": { "name": "ray-c-pg" }, "spec": { "minMember": 7 } });
    let foreign: PodGroup<Volcano> = scene.create(foreign).await.unwrap();
    scene.create::<RayCluster>(cluster(json!({}), 1, json!({}))).await.unwrap();
    let shown = scene.status("c", "the conflict", |status| status.reason.starts_with("NameTaken")).await.unwrap();
    assert!(shown.status.unwrap().conditions.iter().any(|condition| condition.type_ == "NameConflict" && condition.status == "True"));
    assert!(pods(&scene).await.is_empty(), "they would start one by one");
    assert_eq!(version(&scene.api::<PodGroup<Volcano>>().get("ray-c-pg").await.unwrap()), version(&foreign));
    told_once(&scene, "c", "FailedToCreatePodGroup").await;
    // The end of the cluster is not the end of that group.
    scene.delete::<RayCluster>("c").await.unwrap();
    let gone = async || Ok(scene.api::<RayCluster>().get_opt("c").await?.is_none().then_some(()));
    scene.until("the cluster to go", gone).await.unwrap();
    assert_eq!(version(&scene.api::<PodGroup<Volcano>>().get("ray-c-pg").await.unwrap()), version(&foreign));
}

/// BS-16: what is wrong is told, keeps no Pod that is there from running, and holds no deletion.
#[tokio::test]
async fn reconcile_bs_16_a_bad_label_is_told_and_holds_no_deletion() {
    let scene = scene("volcano", "tier").await;
    let (mode, tier) = ("volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier-allowed");
    scene.create::<RayCluster>(cluster(json!({ mode: "hard", tier: "two" }), 1, json!({}))).await.unwrap();
    let shown = scene.status("c", "the label", |status| status.reason.starts_with("InvalidPodGroup") && status.reason.contains(tier)).await;
    let conditions = shown.unwrap().status.unwrap().conditions;
    let failure = conditions.iter().find(|condition| condition.type_ == "ReplicaFailure").unwrap();
    assert_eq!((failure.status.as_str(), failure.reason.as_str()), ("True", "InvalidPodGroup"));
    assert!(pods(&scene).await.is_empty());
    assert!(scene.api::<PodGroup<Volcano>>().get_opt("ray-c-pg").await.unwrap().is_none());
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { tier: "2" } } })).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { tier: "two" } } })).await.unwrap();
    let again = async || Ok((told(&scene, "c", "FailedToCreatePodGroup").await > 0).then_some(()));
    scene.until("a word about it", again).await.unwrap();
    scene.run_to_ready("c").await.unwrap();
    // Nothing comes, and nothing goes.
    scene.patch_group("c", "replicas", json!(2)).await.unwrap();
    scene.status("c", "the label again", |status| status.reason.starts_with("InvalidPodGroup")).await.unwrap();
    assert_eq!(pods(&scene).await.len(), 2);
    scene.delete::<RayCluster>("c").await.unwrap();
    scene.has_pods("c", 0, 0).await.unwrap();
}

/// Groups that KubeRay has made carry no label and, with scheduler-plugins, name no controller (BS-51).
#[tokio::test]
async fn reconcile_c_36_groups_made_by_kuberay_are_taken_over() {
    for (scheduler, name, gang) in [("volcano", "ray-c-pg", false), ("scheduler-plugins", "c", true)] {
        let mut scene = Scene::without_operator(server().await, "takeover").await.unwrap();
        let labels = if gang { json!({ "ray.io/gang-scheduling-enabled": "true" }) } else { json!({}) };
        let made: RayCluster = scene.create(cluster(labels, 1, json!({}))).await.unwrap();
        let owner = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": made.metadata.uid, "controller": !gang });
        let group = json!({ "metadata": { "name": name, "ownerReferences": [owner] }, "spec": { "minMember": 9 } });
        let uid = match gang {
            false => scene.create::<PodGroup<Volcano>>(group).await.unwrap().metadata.uid,
            true => scene.create::<PodGroup<Plugins>>(group).await.unwrap().metadata.uid,
        };
        scene.start_with(&[&format!("--batch-scheduler={scheduler}")]).await.unwrap();
        scene.has_pods("c", 1, 1).await.unwrap();
        let metadata = match gang {
            false => group_of::<Volcano>(&scene, name, 2).await.metadata,
            true => group_of::<Plugins>(&scene, name, 2).await.metadata,
        };
        assert_eq!(metadata.uid, uid, "{scheduler}");
        let owners = metadata.owner_references.unwrap();
        assert_eq!((owners.len(), owners[0].controller), (1, Some(true)), "{scheduler}");
        // From now on it is watched.
        scene.patch_group("c", "replicas", json!(2)).await.unwrap();
        match gang {
            false => drop(group_of::<Volcano>(&scene, name, 3).await),
            true => drop(group_of::<Plugins>(&scene, name, 3).await),
        }
    }
}

/// BS-50, BS-51, BS-52, BS-54.
#[tokio::test]
async fn reconcile_bs_51_scheduler_plugins_groups_the_clusters_that_ask_for_it() {
    let scene = scene("scheduler-plugins", "plugins").await;
    scene.create::<RayCluster>(cluster(json!({ "ray.io/gang-scheduling-enabled": "true" }), 2, json!({}))).await.unwrap();
    let all = scene.has_pods("c", 1, 2).await.unwrap();
    let group = group_of::<Plugins>(&scene, "c", 3).await;
    assert_eq!(resources(&group), "cpu=4500m");
    assert_eq!(group.owner_references()[0].controller, Some(true));
    for pod in &all {
        assert!(version(pod) > version(&group), "no Pod before its group");
        assert_eq!(pod.spec.as_ref().unwrap().scheduler_name.as_deref(), Some("scheduler-plugins-scheduler"));
        assert_eq!(mark(pod, "scheduling.x-k8s.io/pod-group"), Some("c"));
    }
    scene.patch_group("c", "replicas", json!(1)).await.unwrap();
    group_of::<Plugins>(&scene, "c", 2).await;
    // With an autoscaler, the workers that are always there.
    scene.patch_group("c", "minReplicas", json!(0)).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "spec": { "enableInTreeAutoscaling": true } })).await.unwrap();
    assert_eq!(resources(&group_of::<Plugins>(&scene, "c", 1).await), "cpu=500m");
    // Without the wish, no group; the kind knows no group of nobody.
    let groups = scene.api::<PodGroup<Plugins>>();
    let gone = async || Ok(groups.get_opt("c").await?.is_none().then_some(()));
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { "ray.io/gang-scheduling-enabled": "false" } } })).await.unwrap();
    scene.until("the group to go", gone).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { "ray.io/gang-scheduling-enabled": "" } } })).await.unwrap();
    group_of::<Plugins>(&scene, "c", 1).await;
    scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": true } })).await.unwrap();
    scene.until("the group to go", gone).await.unwrap();
}
