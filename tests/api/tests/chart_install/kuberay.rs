//! A RayCluster with a Pod, as KubeRay's operator leaves them.

use serde_json::{Value, json};

use super::Site;

/// A RayCluster with a head Pod, and what must not change of them.
pub(crate) async fn running_cluster(site: &Site) -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": "rayproject/ray:2.52.0", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}})
    };
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "running"}, "spec": {
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container("ray-head")]}}}}});
    site.kubectl(&["create", "--filename=-"], &cluster.to_string()).await.unwrap();
    let cluster = site.get("raycluster", "running").await;
    let owner = json!([{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "running", "uid": cluster["metadata"]["uid"], "controller": true,
        "blockOwnerDeletion": true}]);
    let labels = json!({"ray.io/cluster": "running", "ray.io/node-type": "head", "ray.io/group": "headgroup"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "running-head", "labels": labels, "ownerReferences": owner},
        "spec": {"containers": [container("ray-head")]}});
    site.kubectl(&["create", "--filename=-"], &pod.to_string()).await.unwrap();
    running_cluster_now(site).await
}

/// Identity and version of both.
pub(crate) async fn running_cluster_now(site: &Site) -> Value {
    let (cluster, pod) = (site.get("raycluster", "running").await, site.get("pod", "running-head").await);
    let of = |object: &Value| json!([object["metadata"]["uid"], object["metadata"]["resourceVersion"]]);
    json!([of(&cluster), of(&pod)])
}
