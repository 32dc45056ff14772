//! SidecarMode with restarts: every way in which the submitter or the head may end (WEAK-15..WEAK-18, RJ-148, RJ-149).

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};

use super::*;

fn dead(code: i32) -> Value {
    json!({ "terminated": { "exitCode": code, "reason": "Ended", "finishedAt": "2026-01-01T00:00:00Z" } })
}

#[tokio::test]
async fn reconcile_rj_148_a_restarted_submitter_changes_nothing() {
    let Some(play) = Play::new("restart").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job_on("SidecarMode", on_node("fake2", &[]), json!({})).await;
    let status = play.reaches("Running//RUNNING").await;
    let head = play.head().await;
    let names: Vec<&str> = head.spec.as_ref().unwrap().containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, ["ray-head", "ray-job-submitter"]);
    assert_eq!(head.spec.as_ref().unwrap().containers[1].restart_policy.as_deref(), Some("OnFailure"));
    assert!(play.submitter().await.is_none());
    for (restarts, state) in [(0, dead(137)), (1, json!({ "running": {} })), (1, dead(1)), (5, dead(1))] {
        play.set_sidecar(restarts, state).await;
        play.stays("Running//RUNNING", Duration::from_secs(3)).await;
    }
    assert_eq!(play.status().await.job_id, status.job_id);
    play.dashboard.otherwise(Some("SUCCEEDED"));
    play.reaches("Complete//SUCCEEDED").await;
}

#[tokio::test]
async fn reconcile_weak_17_the_submitter_ends_before_the_cluster_is_ready() {
    let Some(play) = Play::new("early").await else { return };
    let restart = async |dashboard: Option<&str>| {
        if play.scene.api::<RayJob>().get_opt("j").await.unwrap().is_some() {
            play.scene.delete::<RayJob>("j").await.unwrap();
            play.is_gone().await;
        }
        play.dashboard.otherwise(dashboard);
        play.job_on("SidecarMode", never_ready(), json!({})).await;
        play.reaches("Initializing//*").await;
    };
    // Over the limit, and Ray does not know the job.
    restart(None).await;
    play.set_sidecar(3, dead(1)).await;
    play.reaches("Failed/SubmissionFailed/").await;
    // Below the limit it will be started again.
    restart(None).await;
    play.set_sidecar(1, dead(1)).await;
    play.stays("Initializing//", Duration::from_secs(6)).await;
    // It ended well, and so did the job.
    restart(Some("SUCCEEDED")).await;
    play.set_sidecar(0, dead(0)).await;
    play.reaches("Complete//SUCCEEDED").await;
    // The job goes on: the RayJob follows it although the cluster is not ready.
    restart(Some("RUNNING")).await;
    play.set_sidecar(4, dead(1)).await;
    play.reaches("Running//RUNNING").await;
    play.dashboard.otherwise(Some("FAILED"));
    play.reaches("Failed/AppFailed/FAILED").await;
}

#[tokio::test]
async fn reconcile_rj_149_a_lost_head_is_a_lost_job() {
    let Some(play) = Play::new("head").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("SidecarMode", json!({})).await;
    let status = play.reaches("Running//RUNNING").await;
    play.dashboard.set(Mood::Refused);
    let head = play.head().await.name_any();
    play.scene.delete::<Pod>(&head).await.unwrap();
    play.reaches("Failed/AppFailed/FAILED").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(play.scene.pods(name_of(&status), "head").await.unwrap().is_empty(), "nothing replaces it");
}

#[tokio::test]
async fn reconcile_weak_16_an_old_kubelet_is_named() {
    let Some(play) = Play::new("kubelet").await else { return };
    let nodes: Api<Node> = Api::all(play.scene.client.clone());
    let version = json!({ "status": { "nodeInfo": { "kubeletVersion": "v1.34.2+k3s1" } } });
    nodes.patch_status("fake1", &PatchParams::default(), &Patch::Merge(version)).await.unwrap();
    play.dashboard.otherwise(Some("RUNNING"));
    play.job_on("SidecarMode", on_node("fake1", &[]), json!({})).await;
    play.reaches("Running//RUNNING").await;
    play.set_sidecar(0, dead(1)).await;
    let status = play
        .is("a word about the kubelet", |status| condition(status, "LogsFollowed").is_some_and(|(_, why)| why == "KubeletTooOld"))
        .await;
    let told = status.conditions.iter().find(|condition| condition.type_ == "LogsFollowed").unwrap();
    assert!(told.message.contains("v1.34.2"), "{}", told.message);
    play.stays("Running//RUNNING", Duration::from_secs(4)).await;
    play.dashboard.otherwise(Some("SUCCEEDED"));
    play.reaches("Complete//SUCCEEDED").await;
}

#[tokio::test]
async fn reconcile_weak_18_without_restarts_ray_decides_as_well() {
    let Some(play) = Play::with("alone", &["--feature-gates=SidecarSubmitterRestart=false"], &[]).await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("SidecarMode", json!({})).await;
    play.reaches("Running//RUNNING").await;
    let head = play.head().await;
    assert_eq!(head.spec.as_ref().unwrap().containers[1].restart_policy, None);
    play.set_sidecar(0, dead(1)).await;
    play.stays("Running//RUNNING", Duration::from_secs(5)).await;
    play.dashboard.otherwise(Some("FAILED"));
    play.reaches("Failed/AppFailed/FAILED").await;
}

#[tokio::test]
async fn reconcile_weak_6_the_operator_is_away_while_the_job_ends() {
    let Some(mut play) = Play::new("away").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("SidecarMode", json!({ "activeDeadlineSeconds": 20 })).await;
    play.reaches("Running//RUNNING").await;
    play.scene.kill().await.unwrap();
    play.dashboard.otherwise(Some("SUCCEEDED"));
    let ended = now();
    play.set_sidecar(0, dead(0)).await;
    tokio::time::sleep(Duration::from_secs(22)).await;
    play.scene.start_in(&flags(&[]), &[]).await.unwrap();
    let status = play.reaches("Complete//SUCCEEDED").await;
    assert!((status.ray_job_info.end_time.unwrap().0.as_second() - ended.as_second()).abs() <= 1, "the time is Ray's");
}

#[tokio::test]
async fn reconcile_kill_minus_nine_at_any_moment_changes_nothing() {
    let Some(mut play) = Play::new("kill9").await else { return };
    play.job("HTTPMode", json!({ "backoffLimit": 1 })).await;
    // In the middle of everything, again and again.
    for pause in [50, 120, 300, 700, 1500] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        play.scene.kill().await.unwrap();
        play.scene.start_in(&flags(&[]), &[]).await.unwrap();
    }
    let first = play.reaches("Running//RUNNING").await;
    assert_eq!((play.clusters().await.len(), play.dashboard.submissions().len()), (1, 1));
    play.dashboard.job(&first.job_id, "FAILED");
    play.dashboard.submitted("SUCCEEDED");
    for pause in [400, 900, 1300] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        play.scene.kill().await.unwrap();
        play.scene.start_in(&flags(&[]), &[]).await.unwrap();
    }
    let status = play.reaches("Complete//SUCCEEDED").await;
    assert_eq!((status.failed, status.succeeded), (Some(1), Some(1)));
    assert_eq!(play.dashboard.submissions().len(), 2);
}
