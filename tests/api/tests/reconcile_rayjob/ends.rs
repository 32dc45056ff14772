//! Deadlines, shared clusters, and what goes after the end (C-60, T-9, X-21, X-27).

use shared::api::rayjob::JobDeploymentStatus;

use super::*;

async fn shared_cluster(play: &Play) -> RayCluster {
    let cluster = play.scene.cluster("shared", spec(&[], json!({}))).await.unwrap();
    play.scene.status("shared", "a shared cluster", |status| status.state == "ready").await.unwrap();
    cluster
}

fn on_shared(more: Value) -> Value {
    let mut all = json!({ "clusterSelector": { "ray.io/cluster": "shared" } });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

#[tokio::test]
async fn reconcile_c_60_a_deadline_stops_the_job_on_a_shared_cluster() {
    let Some(play) = Play::new("c60").await else { return };
    play.job("HTTPMode", on_shared(json!({ "activeDeadlineSeconds": 15 }))).await;
    let status = play
        .is("a word about the cluster", |status| condition(status, "ReadyToSubmit").is_some_and(|(_, why)| why == "ClusterNotFound"))
        .await;
    assert!(status.message.contains("shared"));
    let cluster = shared_cluster(&play).await;
    let status = play.reaches("Running//RUNNING").await;
    assert_eq!(play.told("RayClusterNotFound").await, 1);
    // Ray is asked once more before the verdict, and then told to stop.
    let status = play.is("the deadline", |found| found.reason == "DeadlineExceeded" && found.job_id == status.job_id).await;
    assert_eq!(status.job_deployment_status, JobDeploymentStatus::Failed);
    play.reaches("Failed/DeadlineExceeded/STOPPED").await;
    assert_eq!(play.scene.api::<RayCluster>().get("shared").await.unwrap().uid(), cluster.uid());
    assert!(play.scene.api::<Service>().get_opt("j-head-svc").await.unwrap().is_none());
}

#[tokio::test]
async fn reconcile_x_27_weak_8_shared_clusters_outlive_their_jobs() {
    let Some(play) = Play::new("x27").await else { return };
    let cluster = shared_cluster(&play).await;
    play.job("HTTPMode", on_shared(json!({}))).await;
    let id = play.reaches("Running//RUNNING").await.job_id;
    play.scene.delete::<RayJob>("j").await.unwrap();
    let gone = async || Ok(play.scene.api::<RayJob>().get_opt("j").await?.is_none().then_some(()));
    play.scene.until("the RayJob to go", gone).await.unwrap();
    assert_eq!(play.dashboard.state_of(&id).as_deref(), Some("STOPPED"));
    // DeleteSelf deletes the RayJob, and it alone.
    play.dashboard.submitted("SUCCEEDED");
    let rules = json!([{ "policy": "DeleteSelf", "condition": { "jobStatus": "SUCCEEDED", "ttlSeconds": 2 } }]);
    play.job("HTTPMode", on_shared(json!({ "deletionStrategy": { "deletionRules": rules } }))).await;
    play.scene.until("the RayJob to go", gone).await.unwrap();
    assert_eq!(play.scene.api::<RayCluster>().get("shared").await.unwrap().uid(), cluster.uid());
    assert_eq!(play.scene.pods("shared", "head").await.unwrap().len(), 1);
}

#[tokio::test]
async fn reconcile_t_9_deletion_rules_in_their_order() {
    let Some(play) = Play::new("rules").await else { return };
    play.dashboard.submitted("SUCCEEDED");
    let rule = |policy: &str, seconds: i32| json!({ "policy": policy, "condition": { "jobStatus": "SUCCEEDED", "ttlSeconds": seconds } });
    let rules = json!([rule("DeleteWorkers", 3), rule("DeleteCluster", 7), rule("DeleteSelf", 11)]);
    let cluster = spec(&[api_tests::scene::group("a", 1)], json!({}));
    play.job_on("HTTPMode", cluster, json!({ "deletionStrategy": { "deletionRules": rules } })).await;
    let status = play.reaches("Complete//SUCCEEDED").await;
    let name = name_of(&status).to_owned();
    play.scene.has_pods(&name, 1, 0).await.unwrap();
    let workers = play.scene.api::<RayCluster>().get(&name).await.unwrap();
    assert_eq!(workers.spec.worker_groups()[0].suspend, Some(true));
    play.scene.until("the cluster to go", async || Ok(play.clusters().await.is_empty().then_some(()))).await.unwrap();
    assert!(play.scene.api::<RayJob>().get_opt("j").await.unwrap().is_some());
    play.is_gone().await;
    let lived = now().duration_since(status.end_time.unwrap().0).as_secs();
    assert!((11..=25).contains(&lived), "{lived} s");
    assert_eq!(play.told("UpdatedRayCluster").await, 1);
}

#[tokio::test]
async fn reconcile_x_21_ttl_and_the_switch_that_deletes_the_rayjob() {
    let Some(play) = Play::with("ttl", &[], &[("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", "true")]).await else { return };
    play.dashboard.submitted("SUCCEEDED");
    play.job("HTTPMode", json!({ "shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 4 })).await;
    let status = play.reaches("Complete//SUCCEEDED").await;
    play.is_gone().await;
    let lived = now().duration_since(status.end_time.unwrap().0).as_secs();
    assert!((4..=15).contains(&lived), "{lived} s");
}

#[tokio::test]
async fn reconcile_c_21_a_running_job_that_turns_invalid_is_followed() {
    let Some(play) = Play::new("c21").await else { return };
    play.job("HTTPMode", json!({})).await;
    let id = play.reaches("Running//RUNNING").await.job_id;
    play.scene.patch::<RayJob>("j", json!({ "spec": { "suspend": true, "backoffLimit": -1 } })).await.unwrap();
    let status = play.is("the problem", |status| condition(status, "SpecValid").is_some_and(|(holds, _)| holds == "False")).await;
    assert_eq!((status.job_deployment_status, status.job_status.as_str()), (JobDeploymentStatus::Running, "RUNNING"));
    play.stays("Running//RUNNING", Duration::from_secs(3)).await;
    play.dashboard.job(&id, "SUCCEEDED");
    play.reaches("Complete//SUCCEEDED").await;
}
