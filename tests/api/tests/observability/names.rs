//! Names and labels of metrics: an interface that dashboards of others rely on.

use std::collections::BTreeSet;

/// What the operator shows. The first block has KubeRay's names and labels (RC-261, RC-263, RJ-170..RJ-172).
const OPERATOR: &[&str] = &[
    "kuberay_cluster_info{name,namespace,owner_kind,uid}",
    "kuberay_cluster_condition_provisioned{condition,name,namespace,uid}",
    "kuberay_cluster_provisioned_duration_seconds{name,namespace,uid}",
    "kuberay_job_info{name,namespace,uid}",
    "kuberay_job_deployment_status{deployment_status,name,namespace,uid}",
    "kuberay_job_execution_duration_seconds{job_deployment_status,name,namespace,retry_count,uid}",
    "controller_runtime_reconcile_total{controller,result}",
    "controller_runtime_reconcile_errors_total{controller}",
    "controller_runtime_reconcile_panics_total{controller}",
    "controller_runtime_reconcile_time_seconds{controller}",
    "controller_runtime_max_concurrent_reconciles{controller}",
    "workqueue_depth{controller,name}",
    "workqueue_queue_duration_seconds{controller}",
    "rest_client_requests_total{code,host,method}",
    "rest_client_request_duration_seconds{host,verb}",
    "leader_election_master_status{name}",
    // Our own.
    "kuberay_build_info{program,version}",
    "kuberay_cache_objects{kind}",
    "kuberay_api_writes_total{kind,result,verb}",
    "kuberay_events_total{fate}",
    "process_cpu_seconds_total{}",
    "process_resident_memory_bytes{}",
    "process_resident_memory_peak_bytes{}",
    "process_open_fds{}",
];

/// What the webhook shows.
const WEBHOOK: &[&str] = &[
    "kuberay_build_info{program,version}",
    "kuberay_webhook_admission_decisions_total{allowed,kind,operation,path}",
    "kuberay_webhook_rule_hits_total{level,namespace,rule}",
    "kuberay_webhook_review_duration_seconds{kind,path}",
    "kuberay_webhook_reviews_in_flight{}",
    "kuberay_webhook_connections{}",
    "kuberay_webhook_panics_total{}",
    "kuberay_webhook_certificate_not_after_seconds{certificate}",
    "kuberay_webhook_configuration_valid{file}",
    "process_cpu_seconds_total{}",
    "process_resident_memory_bytes{}",
    "process_resident_memory_peak_bytes{}",
    "process_virtual_memory_bytes{}",
    "process_threads{}",
    "process_open_fds{}",
    "process_start_time_seconds{}",
];

/// Compares what both programs show after some work with what they have to show, and that with the documentation.
pub(crate) fn check(operator: &str, webhook: &str) {
    assert_eq!(shown(operator), wanted(OPERATOR), "left: shown by the operator; right: wanted");
    assert_eq!(shown(webhook), wanted(WEBHOOK), "left: shown by the webhook; right: wanted");
    for (page, names) in [("operations.md", OPERATOR), ("webhook-operations.md", WEBHOOK)] {
        let text = std::fs::read_to_string(api_tests::chart::workspace().join("docs").join(page)).unwrap();
        for name in names {
            let name = name.split('{').next().unwrap();
            assert!(
                text.contains(name) || name.starts_with("process_") && text.contains("process_*"),
                "docs/{page} does not speak of {name}"
            );
        }
    }
}

fn wanted(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// `name{label,label}` of everything in a text of OpenMetrics; a histogram counts as one.
fn shown(text: &str) -> BTreeSet<String> {
    let histograms: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" histogram")).collect();
    let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, labels) = match line.split_once('{') {
            Some((name, rest)) => (name, rest.rsplit_once('}').unwrap().0),
            None => (line.split(' ').next().unwrap(), ""),
        };
        let plain =
            ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).filter(|name| histograms.contains(name));
        let mut labels: Vec<&str> = labels_of(labels).into_iter().filter(|label| plain.is_none() || *label != "le").collect();
        labels.sort_unstable();
        format!("{}{{{}}}", plain.unwrap_or(name), labels.join(","))
    });
    samples.collect()
}

/// Names of labels in `a="x",b="y"`; values may contain anything but a bare quote.
fn labels_of(mut text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        names.push(name.trim_start_matches(','));
        let end = rest.char_indices().find(|(at, letter)| *letter == '"' && !rest[..*at].ends_with('\\')).unwrap().0;
        text = &rest[end + 1..];
    }
    names
}
