use std::time::Duration;

use super::*;

#[test]
fn names_and_labels_are_kuberays() {
    let metrics = Metrics::default();
    metrics.enable_kuberay();
    metrics.concurrency("raycluster", 12);
    metrics.concurrency("rayjob", 12);
    metrics.reconciled("raycluster", Outcome::Success, Duration::from_millis(3));
    metrics.reconciled("raycluster", Outcome::Panic, Duration::from_millis(3));
    metrics.queue_wait("raycluster", Duration::from_millis(1));
    metrics.api_write("Pod", "create", None);
    metrics.api_write("Pod", "create", Some(403));
    metrics.request("POST", "host:1", Some(201), Duration::from_millis(2));
    metrics.leader("ray-operator-leader", true);
    metrics.events("sent", 2);
    metrics.cluster_provisioned("ns", "c", "u", Duration::from_secs(7));
    metrics.job_ran("ns", "j", "u", "Complete", 1, Duration::from_secs(9));
    let text = metrics.render();
    for line in [
        concat!(r#"kuberay_build_info{program="operator",version="rs-v"#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        r#"controller_runtime_reconcile_errors_total{controller="rayjob"} 0"#,
        r#"controller_runtime_reconcile_total{controller="rayjob",result="requeue_after"} 0"#,
        r#"controller_runtime_reconcile_total{controller="raycluster",result="success"} 1"#,
        r#"controller_runtime_reconcile_total{controller="raycluster",result="error"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="raycluster"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="raycluster"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="raycluster"} 2"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="raycluster"} 12"#,
        r#"workqueue_queue_duration_seconds_count{controller="raycluster"} 1"#,
        r#"kuberay_api_writes_total{kind="Pod",verb="create",result="ok"} 1"#,
        r#"kuberay_api_writes_total{kind="Pod",verb="create",result="403"} 1"#,
        r#"rest_client_requests_total{code="201",method="POST",host="host:1"} 1"#,
        r#"leader_election_master_status{name="ray-operator-leader"} 1"#,
        r#"kuberay_events_total{fate="sent"} 2"#,
        r#"kuberay_cluster_provisioned_duration_seconds{name="c",namespace="ns",uid="u"} 7.0"#,
        r#"kuberay_job_execution_duration_seconds{name="j",namespace="ns",uid="u",job_deployment_status="Complete",retry_count="1"} 9.0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn series_go_with_their_object() {
    let metrics = Metrics::default();
    metrics.enable_kuberay();
    for uid in ["u", "v"] {
        metrics.cluster_provisioned("ns", "c", uid, Duration::from_secs(7));
    }
    metrics.cluster_provisioned("ns", "other", "w", Duration::from_secs(7));
    metrics.cluster_gone("ns", "c");
    metrics.job_ran("ns", "j", "u", "Failed", 0, Duration::from_secs(9));
    metrics.job_gone("ns", "j");
    let text = metrics.render();
    assert_eq!(text.matches("kuberay_cluster_provisioned_duration_seconds{").count(), 1, "{text}");
    assert_eq!(text.matches("kuberay_job_execution_duration_seconds{").count(), 0, "{text}");
}

#[test]
fn ray_metrics_are_there_only_if_asked_for() {
    let metrics = Metrics::default();
    metrics.cluster_provisioned("ns", "c", "u", Duration::from_secs(7));
    assert!(!metrics.render().contains("kuberay_cluster"), "{}", metrics.render());
}
