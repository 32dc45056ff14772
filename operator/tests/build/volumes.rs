//! RC-33, RC-35, RC-74, RC-99c: shared memory and logs.

use serde_json::json;
use shared::features::Feature;

use crate::fixture::{ContainerExt, PodExt, gates, head, head_group, ray, worker, worker_group, worker_with};

#[test]
fn rc_35_shared_memory_is_as_large_as_the_memory() {
    let table = [
        (json!({"limits": {"memory": "4Gi"}, "requests": {"memory": "2Gi"}}), json!({"medium": "Memory", "sizeLimit": "4Gi"})),
        (json!({"requests": {"memory": "2Gi"}}), json!({"medium": "Memory", "sizeLimit": "2Gi"})),
        (json!({}), json!({"medium": "Memory"})),
    ];
    for (resources, wanted) in table {
        let pod = worker(|c| ray(worker_group(c))["resources"] = resources.clone());
        assert_eq!(pod.volume("shared-mem")["emptyDir"], wanted, "{resources}");
        assert_eq!(pod.ray().mounted(), ["shared-mem:/dev/shm"]);
    }
}

#[test]
fn rc_35_shared_memory_of_the_user() {
    for path in ["/dev/shm", "/dev/shm/"] {
        let pod = worker(|c| ray(worker_group(c))["volumeMounts"] = json!([{"name": "mine", "mountPath": path}]));
        assert_eq!(pod.ray().mounted(), [format!("mine:{path}")]);
        assert!(pod.volume("shared-mem").is_null());
    }
    let pod = worker(|c| worker_group(c)["template"]["spec"]["volumes"] = json!([{"name": "shared-mem", "hostPath": {"path": "/x"}}]));
    assert_eq!(pod.volume("shared-mem"), json!({"name": "shared-mem", "hostPath": {"path": "/x"}}));
    assert_eq!(pod.ray().mounted(), ["shared-mem:/dev/shm"]);
    let pod = worker(|c| worker_group(c)["rayStartParams"] = json!({"plasma-directory": ""}));
    assert!(pod.volume("shared-mem").is_null() && pod.ray().mounted().is_empty());
}

#[test]
fn rc_74_the_autoscaler_shares_the_logs() {
    let pod = head(|c| c["spec"]["enableInTreeAutoscaling"] = true.into());
    assert_eq!(pod.ray().mounted(), ["shared-mem:/dev/shm", "ray-logs:/tmp/ray"]);
    assert_eq!(pod.container("autoscaler").mounted(), ["ray-logs:/tmp/ray"]);
    assert_eq!(pod.volume("ray-logs")["emptyDir"], json!({}));
}

/// A volume of the user's own at Ray's folder is the one that is shared: logs in two places would be of no use.
#[test]
fn logs_in_a_volume_of_the_user() {
    let pod = head(|c| {
        c["spec"]["enableInTreeAutoscaling"] = true.into();
        ray(head_group(c))["volumeMounts"] = json!([{"name": "mine", "mountPath": "/tmp/ray/", "subPath": "logs"}]);
    });
    assert_eq!(pod.ray().mounted(), ["mine:/tmp/ray/", "shared-mem:/dev/shm"]);
    assert_eq!(json!(pod.container("autoscaler").volume_mounts), json!([{"name": "mine", "mountPath": "/tmp/ray", "subPath": "logs"}]));
    assert!(pod.volume("ray-logs").is_null());

    let pod = head(|c| {
        c["spec"]["enableInTreeAutoscaling"] = true.into();
        c["spec"]["autoscalerOptions"] = json!({"volumeMounts": [{"name": "other", "mountPath": "/tmp/ray"}]});
    });
    assert_eq!(pod.container("autoscaler").mounted(), ["other:/tmp/ray"]);
}

#[test]
fn rc_99c_the_collector_shares_the_logs() {
    let edit = |c: &mut serde_json::Value| c["spec"]["historyServerOptions"] = json!({"collectorOptions": {"image": "collector"}});
    let pod = worker_with(edit, &gates(&[Feature::RayClusterHistoryServer]));
    assert_eq!(pod.ray().mounted(), ["shared-mem:/dev/shm", "ray-logs:/tmp/ray"]);
    assert_eq!(pod.container("ray-history-collector").mounted(), ["ray-logs:/tmp/ray"]);
    assert!(worker(edit).volume("ray-logs").is_null(), "nothing without the gate");
}
