//! Which Pods come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use api_tests::scene::{group, spec, template};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt;
use serde_json::{Value, json};
use shared::api::RayCluster;

use super::{condition, event_reasons, scene};

fn uids(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().filter_map(kube::ResourceExt::uid).collect()
}

fn with(mut group: Value, field: &str, value: Value) -> Value {
    group[field] = value;
    group
}

fn failed() -> Value {
    let ended = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
    let status = json!({ "name": "ray-worker", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": ended });
    json!({ "phase": "Failed", "containerStatuses": [status] })
}

#[tokio::test]
async fn reconcile_scaling_and_lost_pods() {
    let scene = scene("scale").await;
    scene.cluster("c", spec(&[group("a", 2)], json!({}))).await.unwrap();
    let first = scene.has_pods("c", 1, 2).await.unwrap();
    let head = first.iter().find(|pod| pod.labels()["ray.io/node-type"] == "head").unwrap().clone();
    scene.run_to_ready("c").await.unwrap();
    for replicas in [0, 3, 1] {
        scene.patch_group("c", "replicas", json!(replicas)).await.unwrap();
        scene.has_pods("c", 1, usize::try_from(replicas).unwrap()).await.unwrap();
    }
    // the bounds hold, the lower one first.
    scene.patch_group("c", "minReplicas", json!(2)).await.unwrap();
    scene.has_pods("c", 1, 2).await.unwrap();
    scene.patch_group("c", "replicas", json!(99)).await.unwrap();
    let ten = scene.has_pods("c", 1, 10).await.unwrap();
    assert!(uids(&ten).contains(&head.uid().unwrap()), "the head stays through all of it");
    // what somebody deletes comes back, once.
    scene.delete::<Pod>(&head.name_any()).await.unwrap();
    let again = scene.has_pods("c", 1, 10).await.unwrap();
    assert_eq!(uids(&again).intersection(&uids(&ten)).count(), 10);
}

#[tokio::test]
async fn reconcile_c_24_a_quota_that_allows_the_head_alone() {
    let scene = scene("quota").await;
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "1" } } });
    scene.create::<ResourceQuota>(quota).await.unwrap();
    let counted = async || Ok(scene.api::<ResourceQuota>().get("q").await?.status.and_then(|status| status.hard));
    scene.until("the quota to be counted", counted).await.unwrap();
    scene.cluster("c", spec(&[group("a", 2)], json!({}))).await.unwrap();
    let pods = scene.has_pods("c", 1, 0).await.unwrap();
    scene.make_ready(&pods[0]).await.unwrap();
    let refused = scene
        .status("c", "the refusal in the status", |status| status.reason.contains("exceeded quota") && status.head.pod_ip == "10.0.0.1")
        .await
        .unwrap();
    assert_eq!(condition(&refused, "ReplicaFailure"), Some(("True", "FailedCreateWorkerPod")));
    assert_eq!(condition(&refused, "RayClusterProvisioned").unwrap().0, "False");
    assert_eq!(refused.status.unwrap().state, "");
    // Tried again and again, told once.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(event_reasons(&scene, "c").await["FailedToCreateWorkerPod"], 1);
    scene.patch::<ResourceQuota>("q", json!({ "spec": { "hard": { "pods": "9" } } })).await.unwrap();
    scene.has_pods("c", 1, 2).await.unwrap();
    let ready = scene.run_to_ready("c").await.unwrap();
    assert_eq!(condition(&ready, "ReplicaFailure"), None);
    assert_eq!(condition(&ready, "RayClusterProvisioned").unwrap().0, "True");
    assert_eq!(ready.status.unwrap().reason, "");
}

#[tokio::test]
async fn reconcile_c_27_a_removed_group_takes_its_pods_along() {
    let scene = scene("removed").await;
    scene.cluster("c", spec(&[group("a", 1), group("b", 2)], json!({}))).await.unwrap();
    let before = scene.has_pods("c", 1, 3).await.unwrap();
    scene.run_to_ready("c").await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "spec": { "workerGroupSpecs": [group("a", 1)] } })).await.unwrap();
    let after = scene.has_pods("c", 1, 1).await.unwrap();
    assert!(uids(&after).is_subset(&uids(&before)));
    let status = scene.status("c", "the counts to drop", |status| status.available_worker_replicas == 1).await.unwrap();
    assert_eq!(status.status.unwrap().desired_worker_replicas, 1);
}

#[tokio::test]
async fn reconcile_c_28_only_workers_of_the_group_can_be_listed() {
    let scene = scene("listed").await;
    let bare = json!({ "metadata": { "name": "payroll-db" }, "spec": template("db")["spec"] });
    scene.create::<Pod>(bare).await.unwrap();
    scene.cluster("c", spec(&[group("a", 2), group("b", 1)], json!({ "enableInTreeAutoscaling": true }))).await.unwrap();
    let before = scene.has_pods("c", 1, 3).await.unwrap();
    let of = |group: &str| {
        before.iter().filter(|pod| pod.labels()["ray.io/group"] == group).map(kube::ResourceExt::name_any).collect::<Vec<_>>()
    };
    let victim = of("a")[0].clone();
    let listed = json!(["payroll-db", of("headgroup")[0], of("b")[0], "no-such-pod", victim]);
    scene.patch_group("c", "scaleStrategy", json!({ "workersToDelete": listed })).await.unwrap();
    scene.patch_group("c", "replicas", json!(1)).await.unwrap();
    let after = scene.has_pods("c", 1, 2).await.unwrap();
    assert!(!after.iter().any(|pod| pod.name_any() == victim));
    assert_eq!(uids(&before).difference(&uids(&after)).count(), 1);
    assert!(scene.api::<Pod>().get("payroll-db").await.is_ok());
    let told = async || Ok(event_reasons(&scene, "c").await.contains_key("FailedToDeleteWorkerPod").then_some(()));
    scene.until("a warning", told).await.unwrap();
}

#[tokio::test]
async fn reconcile_c_29_failing_workers_are_replaced_ever_more_slowly_and_say_why() {
    let scene = scene("crash").await;
    scene.cluster("c", spec(&[group("a", 1)], json!({}))).await.unwrap();
    let mut made = BTreeSet::new();
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_secs(9) {
        for pod in scene.pods("c", "worker").await.unwrap() {
            if made.insert(pod.uid().unwrap()) {
                let _ = scene.set_pod(&pod, failed()).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!((3..=6).contains(&made.len()), "{} workers in 9 s", made.len());
    let shown = scene.status("c", "the cause", |status| status.reason.starts_with("OOMKilled") && status.reason.contains("137")).await;
    assert!(condition(&shown.unwrap(), "PodsBlocked").is_some());
    assert_eq!(scene.pods("c", "head").await.unwrap().len(), 1);
}

#[tokio::test]
async fn reconcile_c_41_multi_host_replicas_live_and_die_whole() {
    let scene = scene("hosts").await;
    let hosts = with(group("a", 2), "numOfHosts", json!(4));
    scene.cluster("c", spec(&[hosts], json!({ "enableInTreeAutoscaling": true }))).await.unwrap();
    let replica = |pod: &Pod| pod.labels()["ray.io/worker-group-replica-name"].clone();
    let before = scene.has_pods("c", 1, 8).await.unwrap();
    let workers: Vec<&Pod> = before.iter().filter(|pod| pod.labels()["ray.io/node-type"] == "worker").collect();
    let (victim, mine) = (workers[0], replica(workers[0]));
    scene.delete::<Pod>(&victim.name_any()).await.unwrap();
    let gone = async || {
        let now = scene.pods("c", "worker").await?;
        Ok((now.len() == 8 && !now.iter().any(|pod| replica(pod) == mine)).then_some(now))
    };
    let after = scene.until("the whole replica to be replaced", gone).await.unwrap();
    let others = workers.iter().filter(|pod| replica(pod) != mine);
    assert!(others.clone().count() == 4 && others.into_iter().all(|pod| uids(&after).contains(&pod.uid().unwrap())));
    let listed = after.iter().find(|pod| workers.iter().any(|old| old.uid() == pod.uid())).unwrap();
    scene.patch_group("c", "scaleStrategy", json!({ "workersToDelete": [listed.name_any()] })).await.unwrap();
    scene.patch_group("c", "replicas", json!(1)).await.unwrap();
    let left = scene.has_pods("c", 1, 4).await.unwrap();
    assert!(!left.iter().any(|pod| pod.labels().get("ray.io/worker-group-replica-name") == Some(&replica(listed))));
}

#[tokio::test]
async fn reconcile_suspension_and_resume_with_and_without_the_field() {
    let scene = scene("suspend").await;
    scene.cluster("c", spec(&[group("a", 1)], json!({}))).await.unwrap();
    scene.run_to_ready("c").await.unwrap();
    for resume in [json!(false), json!(null)] {
        scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": true } })).await.unwrap();
        scene.has_pods("c", 0, 0).await.unwrap();
        let suspended = scene.status("c", "suspension", |status| status.state == "suspended").await.unwrap();
        let suspended = if condition(&suspended, "RayClusterSuspended").unwrap().0 == "True" {
            suspended
        } else {
            scene
                .status("c", "the end of suspension", |status| {
                    status.conditions.iter().any(|c| c.type_ == "RayClusterSuspended" && c.status == "True")
                })
                .await
                .unwrap()
        };
        assert_eq!(condition(&suspended, "RayClusterProvisioned").unwrap().0, "False");
        assert_eq!(condition(&suspended, "RayClusterSuspending").unwrap().0, "False");
        scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": resume } })).await.unwrap();
        scene.has_pods("c", 1, 1).await.unwrap();
        let ready = scene.run_to_ready("c").await.unwrap();
        assert_eq!(condition(&ready, "RayClusterSuspended").unwrap().0, "False");
    }
}

#[tokio::test]
async fn reconcile_x_06_a_cluster_of_another_controller_is_left_alone() {
    let scene = scene("managed").await;
    let managed = json!({ "managedBy": "kueue.x-k8s.io/multikueue", "gcsFaultToleranceOptions": { "redisAddress": "redis:6379" } });
    scene.cluster("c", spec(&[group("a", 1)], managed)).await.unwrap();
    scene.cluster("twin", spec(&[], json!({}))).await.unwrap();
    scene.has_pods("twin", 1, 0).await.unwrap();
    let left = scene.api::<RayCluster>().get("c").await.unwrap();
    assert!(left.status.is_none() && left.finalizers().is_empty());
    assert!(scene.pods("c", "").await.unwrap().is_empty());
}

#[tokio::test]
async fn reconcile_x_02_a_cluster_of_the_same_name_gets_pods_of_its_own() {
    let scene = scene("again").await;
    scene.cluster("c", spec(&[group("a", 2)], json!({}))).await.unwrap();
    let old = scene.has_pods("c", 1, 2).await.unwrap();
    scene.delete::<RayCluster>("c").await.unwrap();
    let new = scene.cluster("c", spec(&[group("a", 2)], json!({}))).await.unwrap();
    let owned = |pod: &Pod| pod.owner_references().iter().any(|owner| Some(owner.uid.as_str()) == new.metadata.uid.as_deref());
    let only_new = async || {
        let pods = scene.pods("c", "").await?;
        Ok((pods.len() == 3 && pods.iter().all(owned)).then_some(pods))
    };
    let pods = scene.until("three Pods of the new cluster alone", only_new).await.unwrap();
    assert!(uids(&pods).is_disjoint(&uids(&old)));
}
