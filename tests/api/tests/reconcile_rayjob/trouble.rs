//! Dashboards, submitters and clusters that fail (C-44, C-50, X-25, X-26, X-30; T-7, T-8, T-11).

use k8s_openapi::api::core::v1::{ResourceQuota, Secret};

use super::*;

#[tokio::test]
async fn reconcile_x_30_no_trouble_with_the_dashboard_is_a_verdict() {
    let Some(play) = Play::new("moods").await else { return };
    play.dashboard.set(Mood::Refused);
    play.job("HTTPMode", json!({})).await;
    play.is("an outage", |status| status.job_status_check_failure_start_time.is_some()).await;
    play.dashboard.set(Mood::Fine);
    let status = play.reaches("Running//RUNNING").await;
    assert!(status.job_status_check_failure_start_time.is_none());
    for mood in [Mood::Fails(500), Mood::Fails(404), Mood::Fails(401), Mood::Html, Mood::Stuck, Mood::Refused, Mood::Fails(503)] {
        play.dashboard.set(mood);
        let status = play.is(&format!("an outage: {mood:?}"), |status| status.job_status_check_failure_start_time.is_some()).await;
        assert_eq!(condition(&status, "DashboardReachable"), Some(("False".into(), "NoAnswer".into())), "{mood:?}");
        assert_eq!(format!("{}/{}", status.job_deployment_status.as_str(), status.job_status), "Running/RUNNING", "{mood:?}");
        play.dashboard.set(Mood::Fine);
        play.is("the end of the outage", |status| status.job_status_check_failure_start_time.is_none()).await;
    }
    // Slow is not silent.
    play.dashboard.set(Mood::Late(1500));
    play.dashboard.job(&status.job_id, "SUCCEEDED");
    play.reaches("Complete//SUCCEEDED").await;
    assert_eq!(play.dashboard.submissions().len(), 1, "submitted once");
}

#[tokio::test]
async fn reconcile_t_11_an_outage_has_an_end_of_its_own() {
    let Some(play) = Play::with("timeout", &[], &[("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "6")]).await else { return };
    play.job("HTTPMode", json!({ "backoffLimit": 2 })).await;
    play.reaches("Running//RUNNING").await;
    play.dashboard.set(Mood::Fails(500));
    let status = play.is("an outage", |status| status.job_status_check_failure_start_time.is_some()).await;
    let since = status.job_status_check_failure_start_time;
    let status = play.reaches("Failed/JobStatusCheckTimeoutExceeded/RUNNING").await;
    assert_eq!((status.failed, &status.job_status_check_failure_start_time), (Some(1), &since), "and is not tried again");
    let took = status.end_time.unwrap().0.duration_since(since.unwrap().0).as_secs();
    assert!((6..=9).contains(&took), "{took} s");
}

#[tokio::test]
async fn reconcile_c_44_ray_decides_and_not_the_submitter() {
    let Some(play) = Play::new("c44").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("K8sJobMode", json!({ "submitterConfig": { "backoffLimit": 0 } })).await;
    play.reaches("Running//RUNNING").await;
    play.finish_submitter(false).await;
    let status =
        play.is("a word about the logs", |status| condition(status, "LogsFollowed").is_some_and(|(holds, _)| holds == "False")).await;
    assert_eq!(condition(&status, "LogsFollowed").unwrap().1, "SubmitterEnded");
    play.stays("Running//RUNNING", Duration::from_secs(5)).await;
    play.dashboard.otherwise(Some("SUCCEEDED"));
    play.reaches("Complete//SUCCEEDED").await;
    play.scene.until("the event", async || Ok((play.told("SubmitterEnded").await == 1).then_some(()))).await.unwrap();
}

#[tokio::test]
async fn reconcile_t_7_a_complete_submitter_is_no_verdict_either() {
    let Some(play) = Play::new("t7").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("K8sJobMode", json!({})).await;
    play.reaches("Running//RUNNING").await;
    play.finish_submitter(true).await;
    play.stays("Running//RUNNING", Duration::from_secs(33)).await;
    play.dashboard.otherwise(Some("FAILED"));
    play.reaches("Failed/AppFailed/FAILED").await;
}

#[tokio::test]
async fn reconcile_c_44_a_submitter_that_failed_before_ray_got_the_job() {
    let Some(play) = Play::new("submission").await else { return };
    play.job("K8sJobMode", json!({ "submitterConfig": { "backoffLimit": 0 }, "backoffLimit": 1 })).await;
    play.reaches("Running//").await;
    play.finish_submitter(false).await;
    // A second try, with a Job of its own under the same name.
    play.is("the second try", |status| status.failed == Some(1) && status.job_deployment_status.as_str() == "Running").await;
    play.finish_submitter(false).await;
    let status = play.reaches("Failed/SubmissionFailed/").await;
    assert_eq!(status.failed, Some(2));
    assert!(status.message.contains(&status.job_id), "{}", status.message);
}

#[tokio::test]
async fn reconcile_weak_10_the_name_of_the_submitter_is_taken() {
    let Some(play) = Play::new("taken").await else { return };
    let foreign = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" },
        "spec": { "suspend": true, "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } } },
    });
    let foreign: Job = play.scene.create(foreign).await.unwrap();
    play.job("K8sJobMode", json!({})).await;
    let status = play
        .is("a word about the name", |status| condition(status, "ReadyToSubmit").is_some_and(|(_, why)| why == "SubmitterNameTaken"))
        .await;
    assert!(status.message.contains("Job called j"), "{}", status.message);
    play.stays("Initializing//", Duration::from_secs(3)).await;
    assert_eq!(play.submitter().await.unwrap().uid(), foreign.uid(), "it is neither adopted nor deleted");
    play.scene.delete::<Job>("j").await.unwrap();
    play.reaches("Running//").await;
    assert_ne!(play.submitter().await.unwrap().uid(), foreign.uid());
    // One that is deleted before Ray got the job is made again.
    let second = play.submitter().await.unwrap().uid();
    play.scene.delete::<Job>("j").await.unwrap();
    play.scene.until("another submitter", async || Ok(play.submitter().await.filter(|job| job.uid() != second))).await.unwrap();
}

#[tokio::test]
async fn reconcile_x_25_a_deleted_submitter_is_not_missed_once_ray_has_the_job() {
    let Some(play) = Play::new("x25").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("K8sJobMode", json!({})).await;
    play.reaches("Running//RUNNING").await;
    play.scene.delete::<Job>("j").await.unwrap();
    play.is("a word about the logs", |status| condition(status, "LogsFollowed").is_some_and(|(holds, _)| holds == "False")).await;
    play.dashboard.otherwise(Some("SUCCEEDED"));
    play.reaches("Complete//SUCCEEDED").await;
    assert!(play.submitter().await.is_none());
}

#[tokio::test]
async fn reconcile_weak_28_c_59_a_job_whose_cluster_is_gone_or_new_is_lost() {
    let Some(play) = Play::new("lost").await else { return };
    play.job("HTTPMode", json!({ "backoffLimit": 1 })).await;
    let first = play.reaches("Running//RUNNING").await;
    play.scene.delete::<RayCluster>(name_of(&first)).await.unwrap();
    play.is("another try", |status| {
        status.failed == Some(1) && status.job_status == "RUNNING" && status.ray_cluster_name != first.ray_cluster_name
    })
    .await;
    // A new head knows nothing of the job.
    play.dashboard.set(Mood::Refused);
    play.is("an outage", |status| status.job_status_check_failure_start_time.is_some()).await;
    let head = play.head().await.name_any();
    play.scene.delete::<Pod>(&head).await.unwrap();
    let status = play.reaches("Failed/AppFailed/FAILED").await;
    assert!(status.message.contains("head Pod"), "{}", status.message);
}

#[tokio::test]
async fn reconcile_c_50_what_holds_it_up_is_shown() {
    let Some(play) = Play::new("quota").await else { return };
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q" }, "spec": { "hard": { "count/rayclusters.ray.io": "0" } } });
    play.scene.create::<ResourceQuota>(quota).await.unwrap();
    play.scene
        .until("the quota", async || Ok(play.scene.api::<ResourceQuota>().get("q").await?.status.and_then(|status| status.hard)))
        .await
        .unwrap();
    play.job_on("HTTPMode", never_ready(), json!({ "preRunningDeadlineSeconds": 20 })).await;
    let status = play.is("the refusal", |status| status.message.contains("quota")).await;
    assert_eq!(condition(&status, "ReadyToSubmit"), Some(("False".into(), "FailedToCreateRayCluster".into())));
    play.scene.until("the event", async || Ok((play.told("FailedToCreateRayCluster").await >= 1).then_some(()))).await.unwrap();
    play.scene.delete::<ResourceQuota>("q").await.unwrap();
    let cluster = play.scene.until("the cluster", async || Ok(play.clusters().await.pop())).await.unwrap();
    // A worker's trouble reaches the RayJob.
    let worker = play.scene.until("the worker", async || Ok(play.scene.pods(&cluster.name_any(), "worker").await?.pop())).await.unwrap();
    let waiting = json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } });
    let status = json!({ "containerStatuses": containers(&worker, &[("ray-worker", 0, waiting)]) });
    play.scene.set_pod(&worker, status).await.unwrap();
    let status = play.is("the worker's trouble", |status| status.message.contains("no such image")).await;
    assert_eq!(condition(&status, "ReadyToSubmit"), Some(("False".into(), "ErrImagePull".into())));
    let status = play.reaches("Failed/PreRunningDeadlineExceeded/").await;
    assert!(status.message.contains("no such image"), "the deadline says what it waited for: {}", status.message);
}

#[tokio::test]
async fn reconcile_rj_133_weak_1_tokens() {
    let Some(play) = Play::new("token").await else { return };
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "auth_token": "open sesame" } });
    play.scene.create::<Secret>(secret).await.unwrap();
    let cluster = spec(&[], json!({ "authOptions": { "mode": "token", "secretName": "s" } }));
    play.job_on("HTTPMode", cluster, json!({})).await;
    play.reaches("Running//RUNNING").await;
    assert!(play.dashboard.calls("").iter().all(|call| call.token == "Bearer open sesame"));
    // A token that is no longer accepted is read anew.
    play.scene.patch::<Secret>("s", json!({ "stringData": { "auth_token": "abracadabra" } })).await.unwrap();
    play.dashboard.set(Mood::Fails(401));
    play.is("an outage", |status| status.job_status_check_failure_start_time.is_some()).await;
    play.dashboard.set(Mood::Fine);
    play.is("its end", |status| status.job_status_check_failure_start_time.is_none()).await;
    assert_eq!(play.dashboard.calls("GET").last().unwrap().token, "Bearer abracadabra");
    // The Secret is gone: nothing of that holds the deletion.
    play.scene.delete::<Secret>("s").await.unwrap();
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.is_gone().await;
    assert!(!play.scene.operator().log().contains("sesame") && !play.scene.operator().log().contains("abracadabra"));
}
