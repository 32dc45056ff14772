//! The ordinary course of things in each mode (T-1..T-6, X-20).

use shared::api::rayjob::JobDeploymentStatus;
use shared::labels::finalizer;

use super::*;

#[tokio::test]
async fn reconcile_t_1_k8s_job_mode_to_its_end() {
    let Some(play) = Play::new("k8s").await else { return };
    play.job_on("K8sJobMode", never_ready(), json!({ "shutdownAfterJobFinishes": true })).await;
    let status = play.is("a mirrored cluster", |status| status.ray_cluster_status.desired_worker_replicas == 1).await;
    assert_eq!(status.job_deployment_status, JobDeploymentStatus::Initializing);
    assert_eq!(condition(&status, "ReadyToSubmit").unwrap().0, "False");
    assert!(play.submitter().await.is_none(), "nobody submits to a cluster that is not ready");
    // The worker is not needed after all.
    play.scene.patch_group(name_of(&status), "minReplicas", json!(0)).await.unwrap();
    play.scene.patch_group(name_of(&status), "replicas", json!(0)).await.unwrap();
    let status = play.reaches("Running//").await;
    let submitter = play.submitter().await.unwrap();
    assert_eq!(submitter.spec.as_ref().unwrap().backoff_limit, Some(2));
    assert_eq!(status.dashboard_url, format!("{}-head-svc.{}.svc.cluster.local:8265", name_of(&status), play.scene.namespace));

    play.dashboard.otherwise(Some("RUNNING"));
    let status = play.reaches("Running//RUNNING").await;
    assert_eq!(condition(&status, "Running"), Some(("True".into(), "RUNNING".into())));
    let service =
        play.scene.until("the RayJob's own Service", async || Ok(play.scene.api::<Service>().get_opt("j-head-svc").await?)).await.unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["ray.io/cluster"], name_of(&status));
    play.dashboard.otherwise(Some("SUCCEEDED"));
    play.reaches("Running//SUCCEEDED").await;
    play.stays("Running//SUCCEEDED", Duration::from_secs(2)).await;
    play.finish_submitter(true).await;
    let status = play.reaches("Complete//SUCCEEDED").await;
    assert_eq!((status.succeeded, status.failed), (Some(1), Some(0)));
    assert_eq!(status.ray_job_info.start_time.as_ref().unwrap().0.as_millisecond(), api_tests::dashboard::STARTED);
    assert!(now().duration_since(status.ray_job_info.end_time.as_ref().unwrap().0).as_secs() < 30);
    assert!(status.end_time.is_some() && status.observed_generation == 1);
    assert_eq!(condition(&status, "Succeeded").unwrap().0, "True");
    play.scene.until("the cluster to go", async || Ok(play.clusters().await.is_empty().then_some(()))).await.unwrap();
    assert!(play.submitter().await.is_some(), "its logs stay");
    play.told_once(&[
        "CreatedRayCluster",
        "CreatedRayJobSubmitter",
        "CreatedService",
        "Started",
        "Running",
        "Completed",
        "DeletedRayCluster",
    ])
    .await;
    let calls = play.dashboard.calls("").len();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(play.dashboard.calls("").len(), calls, "an ended job is not asked for");
    let took = play
        .scene
        .metric("kuberay_job_execution_duration_seconds", &["job_deployment_status=\"Complete\"", "retry_count=\"0\""])
        .await
        .unwrap();
    assert!(took >= 0.0);
}

#[tokio::test]
async fn reconcile_rj_109_http_mode_posts_what_the_user_wrote() {
    let Some(play) = Play::new("http").await else { return };
    let entrypoint = "python a.py && echo \"$HOME\" | tee out; echo 'é'";
    let more = json!({
        "entrypoint": entrypoint, "metadata": { "k": "it's $5" }, "runtimeEnvYAML": "env_vars: {A: \"b`id`$(id)\"}\n",
        "entrypointResources": "{\"x\": 1}", "entrypointNumCpus": 0.5,
    });
    play.job("HTTPMode", more).await;
    let status = play.reaches("Running//RUNNING").await;
    let wanted = json!({
        "entrypoint": entrypoint, "submission_id": status.job_id, "metadata": { "k": "it's $5" },
        "runtime_env": { "env_vars": { "A": "b`id`$(id)" } }, "entrypoint_resources": { "x": 1 }, "entrypoint_num_cpus": 0.5,
    });
    assert_eq!(play.dashboard.submissions(), [wanted]);
    assert!(play.submitter().await.is_none());
    play.dashboard.job(&status.job_id, "FAILED");
    let status = play.reaches("Failed/AppFailed/FAILED").await;
    assert_eq!((status.message.as_str(), status.failed), ("it is FAILED", Some(1)));
    assert_eq!(condition(&status, "Failed"), Some(("True".into(), "AppFailed".into())));
}

#[tokio::test]
async fn reconcile_c_43_interactive_mode() {
    let Some(play) = Play::new("inter").await else { return };
    play.job("InteractiveMode", json!({ "shutdownAfterJobFinishes": true, "activeDeadlineSeconds": 600 })).await;
    play.reaches("Waiting//").await;
    play.scene.patch::<RayJob>("j", json!({ "spec": { "suspend": true } })).await.unwrap();
    play.reaches("Suspended//").await;
    assert!(play.clusters().await.is_empty());
    play.scene.patch::<RayJob>("j", json!({ "spec": { "suspend": false } })).await.unwrap();
    play.reaches("Waiting//").await;
    // A wrong id can be corrected.
    play.scene.patch::<RayJob>("j", json!({ "spec": { "jobId": "wrong" } })).await.unwrap();
    play.is("the wrong id", |status| status.job_id == "wrong").await;
    play.dashboard.job("mine", "RUNNING");
    play.scene.patch::<RayJob>("j", json!({ "spec": { "jobId": "mine" } })).await.unwrap();
    play.reaches("Running//RUNNING").await;
    play.scene.patch::<RayJob>("j", json!({ "spec": { "activeDeadlineSeconds": 1 } })).await.unwrap();
    play.reaches("Failed/DeadlineExceeded/*").await;
}

#[tokio::test]
async fn reconcile_t_2_c_20_names_and_specs_that_break_rules() {
    let Some(play) = Play::new("rules").await else { return };
    let job = |name: &str, more: Value| {
        let mut spec = json!({ "entrypoint": "e", "submissionMode": "HTTPMode", "rayClusterSpec": spec(&[], json!({})) });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name }, "spec": spec })
    };
    let (fits, too_long) = ("j".repeat(47), "j".repeat(48));
    play.scene.create::<RayJob>(job(&fits, json!({}))).await.unwrap();
    play.scene.create::<RayJob>(job(&too_long, json!({}))).await.unwrap();
    play.scene.create::<RayJob>(job("j", json!({ "runtimeEnvYAML": "just text" }))).await.unwrap();
    let state = async |name: &str| -> anyhow::Result<JobDeploymentStatus> {
        Ok(play.scene.api::<RayJob>().get(name).await?.status.unwrap_or_default().job_deployment_status)
    };
    play.scene
        .until("the long name to run", async || Ok((state(&fits).await? == JobDeploymentStatus::Running).then_some(())))
        .await
        .unwrap();
    play.scene
        .until(
            "the longer one to be refused",
            async || Ok((state(&too_long).await? == JobDeploymentStatus::ValidationFailed).then_some(())),
        )
        .await
        .unwrap();
    let status = play.reaches("ValidationFailed/ValidationFailed/").await;
    assert!(status.message.contains("runtimeEnvYAML"), "{}", status.message);
    assert_eq!(condition(&status, "SpecValid"), Some(("False".into(), "InvalidSpec".into())));
    play.scene.patch::<RayJob>("j", json!({ "spec": { "runtimeEnvYAML": "pip: [a]" } })).await.unwrap();
    let status = play.reaches("Running//RUNNING").await;
    assert_eq!(condition(&status, "SpecValid").unwrap().0, "True");
    play.scene
        .until("the refusals", async || {
            Ok((play.told("InvalidRayJobSpec").await == 1 && play.told("InvalidRayJobMetadata").await == 1).then_some(()))
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn reconcile_t_3_t_4_tries_have_clusters_and_ids_of_their_own() {
    let Some(play) = Play::new("tries").await else { return };
    play.dashboard.submitted("FAILED");
    play.job("HTTPMode", json!({ "backoffLimit": 2 })).await;
    let status = play.reaches("Failed/AppFailed/FAILED").await;
    assert_eq!((status.failed, status.succeeded), (Some(3), Some(0)));
    let ids: std::collections::BTreeSet<String> =
        play.dashboard.submissions().iter().map(|post| post["submission_id"].to_string()).collect();
    assert_eq!(ids.len(), 3);
    play.scene
        .until("the events", async || Ok((play.told("Retrying").await >= 1 && play.told("Failed").await == 1).then_some(())))
        .await
        .unwrap();
    assert_eq!(play.clusters().await.len(), 1, "the last cluster stays");
    let retried =
        play.scene.metric("kuberay_job_execution_duration_seconds", &["job_deployment_status=\"Retrying\"", "retry_count=\"1\""]).await;
    assert!(retried.is_ok());
}

#[tokio::test]
async fn reconcile_t_5_a_held_cluster_holds_the_suspension() {
    let Some(play) = Play::new("hold").await else { return };
    play.job("HTTPMode", json!({ "shutdownAfterJobFinishes": true })).await;
    let first = play.reaches("Running//RUNNING").await;
    let finalizers = |list: Value| json!({ "metadata": { "finalizers": list } });
    play.scene.patch::<RayCluster>(name_of(&first), finalizers(json!(["test/hold"]))).await.unwrap();
    play.scene.patch::<RayJob>("j", json!({ "spec": { "suspend": true } })).await.unwrap();
    play.reaches("Suspending/*/*").await;
    // Changing one's mind does not help once it has begun.
    play.scene.patch::<RayJob>("j", json!({ "spec": { "suspend": false } })).await.unwrap();
    play.scene
        .until("the stop", async || Ok((!play.dashboard.calls(&format!("POST /api/jobs/{}/stop", first.job_id)).is_empty()).then_some(())))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(play.status().await.job_deployment_status, JobDeploymentStatus::Suspending);
    play.scene.patch::<RayCluster>(name_of(&first), finalizers(Value::Null)).await.unwrap();
    let second = play.is("another try", |status| !status.job_id.is_empty() && status.job_id != first.job_id).await;
    assert_ne!(name_of(&first), name_of(&second));
    play.reaches("Running//RUNNING").await;
}

#[tokio::test]
async fn reconcile_t_6_objects_of_other_controllers_are_left_alone() {
    let Some(play) = Play::new("other").await else { return };
    play.job("HTTPMode", json!({ "managedBy": "kueue.x-k8s.io/multikueue" })).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let job = play.scene.api::<RayJob>().get("j").await.unwrap();
    assert!(job.status.is_none() && job.finalizers().is_empty() && play.clusters().await.is_empty());
    let denied = play.scene.patch::<RayJob>("j", json!({ "spec": { "managedBy": "ray.io/kuberay-operator" } })).await;
    assert!(denied.is_err(), "it cannot be changed");
}

#[tokio::test]
async fn reconcile_x_20_deletion_at_every_stage_leaves_nothing() {
    let Some(play) = Play::new("gone").await else { return };
    // Initializing.
    play.job_on("K8sJobMode", never_ready(), json!({})).await;
    play.reaches("Initializing//").await;
    assert_eq!(play.scene.api::<RayJob>().get("j").await.unwrap().finalizers(), [finalizer::RAY_JOB]);
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.is_gone().await;
    // Running, with a job in Ray.
    play.dashboard.otherwise(Some("RUNNING"));
    play.job("K8sJobMode", json!({})).await;
    let id = play.reaches("Running//RUNNING").await.job_id;
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.is_gone().await;
    assert_eq!(play.dashboard.calls(&format!("POST /api/jobs/{id}/stop")).len(), 1);
    // Ended: nothing to stop.
    play.dashboard.otherwise(Some("SUCCEEDED"));
    play.job("HTTPMode", json!({})).await;
    let id = play.reaches("Complete//SUCCEEDED").await.job_id;
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.is_gone().await;
    assert_eq!(play.dashboard.calls(&format!("POST /api/jobs/{id}/stop")).len(), 0);
    // Suspended.
    play.job("HTTPMode", json!({ "suspend": true, "shutdownAfterJobFinishes": true })).await;
    play.reaches("Suspended//").await;
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.is_gone().await;
    // Between tries.
    play.dashboard.otherwise(Some("FAILED"));
    play.job("HTTPMode", json!({ "backoffLimit": 50 })).await;
    play.is("a second try", |status| status.failed >= Some(1)).await;
    play.scene.delete::<RayJob>("j").await.unwrap();
    play.is_gone().await;
}
