//! Heads that are replaced under a job (C-59), and an operator that was away when a job ended (RJ-71).

use super::*;

#[tokio::test]
async fn reconcile_c_59_a_new_head_that_does_not_know_the_job() {
    let Some(play) = Play::new("newhead").await else { return };
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("K8sJobMode", json!({ "backoffLimit": 1 })).await;
    let first = play.reaches("Running//RUNNING").await;
    let (head, submitter) = (play.head().await, play.submitter().await.unwrap());
    play.dashboard.otherwise(None);
    play.scene.delete::<Pod>(&head.name_any()).await.unwrap();
    // Another try: with a cluster, an id and a submitter of its own.
    let second = play
        .is("another try", |status| {
            status.failed == Some(1) && status.job_deployment_status.as_str() == "Running" && status.job_id != first.job_id
        })
        .await;
    assert_ne!(name_of(&first), name_of(&second));
    assert_ne!(play.submitter().await.unwrap().uid(), submitter.uid());
    assert!(play.dashboard.calls(&format!("POST /api/jobs/{}/stop", first.job_id)).is_empty(), "there was nothing to stop");
    play.dashboard.job(&second.job_id, "RUNNING");
    play.reaches("Running//RUNNING").await;

    // The last try: lost as well, so the RayJob has failed, and the submitter stays for its logs.
    play.dashboard.set(Mood::Fails(503));
    let head = play.scene.pods(name_of(&second), "head").await.unwrap().pop().unwrap();
    play.scene.delete::<Pod>(&head.name_any()).await.unwrap();
    let status = play.reaches("Failed/AppFailed/FAILED").await;
    assert_eq!((status.failed, status.succeeded), (Some(2), Some(0)));
    assert!(status.message.contains("head"), "{}", status.message);
    assert_eq!(condition(&status, "Failed"), Some(("True".into(), "AppFailed".into())));
    let submitter = play.submitter().await.unwrap();
    assert_eq!(submitter.metadata.deletion_timestamp, None);
    // A submitter that hands the job to the new head is too late.
    play.dashboard.set(Mood::Fine);
    let is_stopped = async || Ok((play.dashboard.state_of(&second.job_id).as_deref() == Some("STOPPED")).then_some(()));
    play.scene.until("the job to be stopped", is_stopped).await.unwrap();
    play.stays("Failed/AppFailed/FAILED", Duration::from_secs(2)).await;
    assert_eq!(play.submitter().await.unwrap().uid(), submitter.uid());
}

#[tokio::test]
async fn reconcile_rj_71_a_job_that_ended_while_the_operator_was_away() {
    let Some(mut play) = Play::new("away").await else { return };
    play.job("HTTPMode", json!({})).await;
    let id = play.reaches("Running//RUNNING").await.job_id;
    play.scene.kill().await.unwrap();
    play.dashboard.job(&id, "SUCCEEDED");
    let ended = now();
    tokio::time::sleep(Duration::from_secs(5)).await;
    play.scene.start_in(&flags(&[]), &[]).await.unwrap();
    let status = play.reaches("Complete//SUCCEEDED").await;
    let by_ray = status.ray_job_info.end_time.unwrap().0;
    assert_eq!(status.end_time.unwrap().0, by_ray, "nobody saw it, and yet it ended then");
    assert!(by_ray.duration_since(ended).as_secs().abs() <= 1, "{by_ray} instead of {ended}");
}
