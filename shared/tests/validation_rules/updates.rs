use serde_json::{Value, json};
use shared::validation::Kind::{RayCluster, RayCronJob, RayJob, RayService};

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    [old_problems(), immutable(), jobs(), clusters()].concat()
}

/// An UPDATE of a cluster from one spec patch to another.
fn cluster_from(old: &Value, new: &Value) -> Case {
    cluster(new).replaces(cluster_object(old))
}

fn twins(patch: &Value) -> Value {
    json!({"workerGroupSpecs": [group("a", patch), group("a", &json!({}))]})
}

fn old_problems() -> Vec<Case> {
    let bad = || cluster_object(&twins(&json!({})));
    let long = |patch: &Value| merged(cluster_object(patch), &json!({"metadata": {"name": "a".repeat(60)}}));
    let deleted = merged(bad(), &json!({"metadata": {"deletionTimestamp": "2031-01-01T00:00:00Z"}}));
    let auto = |replicas: i32, victims: Value| {
        merged(
            twins(&json!({"replicas": replicas, "scaleStrategy": {"workersToDelete": victims}})),
            &json!({"enableInTreeAutoscaling": true}),
        )
    };
    let duplicate = "spec.workerGroupSpecs[1].groupName";
    let annotation = |object: Value, value: &str| merged(object, &json!({"metadata": {"annotations": {"ray.io/ft-enabled": value}}}));
    let options = json!({"gcsFaultToleranceOptions": {"redisAddress": "r"}});
    vec![
        // (i) on its way out, (ii) a label, (iv) healed, (v) edited and still wrong.
        Case::of(RayCluster, deleted).replaces(bad()),
        Case::of(RayCluster, merged(bad(), &json!({"metadata": {"labels": {"a": "b"}}}))).replaces(bad()),
        Case::of(RayCluster, merged(bad(), &json!({"metadata": {"finalizers": ["a/b"]}, "status": {"state": "x"}}))).replaces(bad()),
        cluster(&json!({})).replaces(bad()),
        cluster_from(&twins(&json!({})), &twins(&json!({"replicas": 2}))).denied("V-C-70", duplicate),
        // A name cannot be changed, so a stored one is never held against an edit of the spec.
        Case::of(RayCluster, long(&json!({"suspend": true, "rayVersion": "2.53.1"})))
            .replaces(long(&json!({})))
            .warned("V-C-1", "metadata.name"),
        Case::of(RayCluster, long(&json!({"workerGroupSpecs": [group("headgroup", &json!({}))]})))
            .replaces(long(&json!({})))
            .denied("C-02", "spec.workerGroupSpecs[0].groupName"),
        // What a machine edits on a running system is not refused for what it did not do...
        cluster_from(&auto(1, json!([])), &auto(2, json!(["p"]))),
        cluster_from(&twins(&json!({})), &merged(twins(&json!({})), &json!({"suspend": true}))).warned("V-C-70", duplicate),
        Case::of(RayCronJob, cron_object(&json!({"schedule": "x", "suspend": true}))).replaces(cron_object(&json!({"schedule": "x"}))),
        // ... but for what it does.
        job(&json!({"suspend": true})).replaces(job_object(&json!({}))).denied("V-J-3", "spec.suspend"),
        cluster_from(&auto(1, json!([])), &merged(auto(2, json!([])), &json!({"enableInTreeAutoscaling": false})))
            .denied("V-C-70", duplicate),
        // An annotation that the rules read is part of what an update may break.
        Case::of(RayCluster, annotation(cluster_object(&options), "true"))
            .replaces(cluster_object(&options))
            .denied("V-C-24", "spec.gcsFaultToleranceOptions"),
        Case::of(RayCluster, annotation(cluster_object(&options), "true")).replaces(annotation(cluster_object(&options), "false")),
        Case::of(RayCluster, annotation(cluster_object(&options), "true"))
            .replaces(annotation(cluster_object(&json!({})), "true"))
            .denied("V-C-24", "spec.gcsFaultToleranceOptions"),
        Case::of(
            RayService,
            merged(service_object(&json!({})), &json!({"metadata": {"annotations": {"ray.io/initializing-timeout": "0"}}})),
        )
        .replaces(service_object(&json!({})))
        .denied("V-S-3", "metadata.annotations[ray.io/initializing-timeout]"),
        Case::of(
            RayService,
            merged(service_object(&json!({"suspend": true})), &json!({"metadata": {"annotations": {"ray.io/initializing-timeout": "0"}}})),
        )
        .replaces(merged(service_object(&json!({})), &json!({"metadata": {"annotations": {"ray.io/initializing-timeout": "0"}}}))),
    ]
}

fn immutable() -> Vec<Case> {
    let by = |manager: Value| json!({"managedBy": manager});
    let (own, kueue) = (json!("ray.io/kuberay-operator"), json!("kueue.x-k8s.io/multikueue"));
    let options = |backend: Value| json!({"gcsFaultToleranceOptions": {"backend": backend}});
    let on = "GCSFaultToleranceEmbeddedStorage=true";
    let backend_at = "spec.gcsFaultToleranceOptions.backend";
    vec![
        cluster_from(&json!({}), &by(own.clone())),
        cluster_from(&by(own.clone()), &by(json!(null))),
        cluster_from(&json!({}), &by(kueue.clone())).denied("V-X-1", "spec.managedBy"),
        cluster_from(&by(kueue.clone()), &by(json!(null))).denied("V-X-1", "spec.managedBy"),
        job(&by(kueue.clone())).replaces(job_object(&json!({}))).denied("V-X-1", "spec.managedBy"),
        service(&by(kueue.clone())).replaces(service_object(&by(kueue))),
        cluster_from(&options(json!(null)), &options(json!("redis"))),
        cluster_from(&options(json!("redis")), &options(json!(null))).gates(on),
        cluster_from(&options(json!(null)), &options(json!("rocksdb"))).gates(on).denied("V-X-1", backend_at),
        cluster_from(&options(json!("rocksdb")), &options(json!(null))).gates(on).denied("V-X-1", backend_at),
        cluster_from(&json!({}), &options(json!("rocksdb"))).gates(on),
        job(&json!({"rayClusterSpec": options(json!("rocksdb"))}))
            .replaces(job_object(&json!({"rayClusterSpec": options(json!("redis"))})))
            .gates(on)
            .denied("V-X-1", "spec.rayClusterSpec.gcsFaultToleranceOptions.backend"),
        service(&json!({"rayClusterConfig": options(json!("rocksdb"))}))
            .replaces(service_object(&json!({"rayClusterConfig": options(json!("redis"))})))
            .gates(on)
            .denied("V-X-1", "spec.rayClusterConfig.gcsFaultToleranceOptions.backend"),
    ]
}

/// An UPDATE of a job in a state.
fn job_in(state: &str, old: &Value, new: &Value) -> Case {
    let status = json!({"status": {"jobDeploymentStatus": state}});
    Case::of(RayJob, merged(job_object(new), &status)).replaces(merged(job_object(old), &status))
}

fn jobs() -> Vec<Case> {
    let mode = |mode: &str| json!({"submissionMode": mode});
    let (k8s, http, interactive, sidecar) = (mode("K8sJobMode"), mode("HTTPMode"), mode("InteractiveMode"), mode("SidecarMode"));
    let at = "spec.submissionMode";
    let selector = |name: Value| json!({"clusterSelector": {"ray.io/cluster": name}});
    let entry = json!({"entrypoint": "python other.py"});
    let cluster = json!({"rayClusterSpec": {"rayVersion": "2.53.1"}});
    let suspend = json!({"suspend": true, "shutdownAfterJobFinishes": true});
    let kept = json!({"shutdownAfterJobFinishes": true});
    vec![
        job_in("Running", &k8s, &http).denied("N-J-6", at),
        job_in("Running", &json!({}), &k8s),
        job_in("Initializing", &k8s, &http),
        job_in("Initializing", &k8s, &sidecar).denied("N-J-6", at),
        job_in("Initializing", &sidecar, &http).denied("N-J-6", at),
        job_in("Suspended", &k8s, &sidecar),
        job_in("", &k8s, &sidecar),
        job_in("Complete", &k8s, &http),
        job_in("Waiting", &interactive, &k8s).denied("V-J-37", at),
        job_in("Waiting", &interactive, &merged(interactive.clone(), &json!({"jobId": "x"}))),
        // The status may be missing in the new document of a file.
        job(&http).replaces(merged(job_object(&k8s), &json!({"status": {"jobDeploymentStatus": "Running"}}))).denied("N-J-6", at),
        job_in("Running", &json!({}), &selector(json!("x"))).denied("N-J-7", "spec.clusterSelector"),
        job_in("Initializing", &selector(json!("x")), &selector(json!("y"))).denied("N-J-7", "spec.clusterSelector"),
        job_in("Suspended", &json!({}), &selector(json!("x"))),
        job_in("Running", &json!({}), &entry).warned("W-U-2", "spec.entrypoint"),
        job_in("Initializing", &json!({}), &entry).not_warned("W-U-2"),
        job_in("Running", &json!({}), &cluster).warned("W-U-1", "spec.rayClusterSpec"),
        job_in("Suspended", &json!({}), &cluster).not_warned("W-U-1"),
        job_in("Complete", &kept, &suspend).warned("W-U-3", "spec.suspend"),
        job_in("Running", &kept, &suspend).not_warned("W-U-3"),
    ]
}

fn clusters() -> Vec<Case> {
    let named = |names: &[&str]| json!({"workerGroupSpecs": names.iter().map(|name| group(name, &json!({}))).collect::<Vec<_>>()});
    let image = |image: &str| json!({"workerGroupSpecs": [group("a", &json!({"template": template(&json!({"image": image}))}))]});
    let head_image = |image: &str| json!({"headGroupSpec": {"template": template(&json!({"image": image}))}});
    let recreate = |spec: Value| merged(spec, &json!({"upgradeStrategy": {"type": "Recreate"}}));
    let (one, other) = ("rayproject/ray:2.53.0", "rayproject/ray:2.53.0-gpu");
    let none = |version: &str| json!({"upgradeStrategy": {"type": "None"}, "rayClusterConfig": {"rayVersion": version}});
    vec![
        cluster_from(&named(&["a", "b"]), &named(&["a"])).warned("C-05", "spec.workerGroupSpecs"),
        cluster_from(&named(&["a", "b"]), &named(&["a", "b2"])).warned("C-05", "spec.workerGroupSpecs"),
        cluster_from(&named(&["a", "b"]), &named(&["b", "a"])).not_warned("C-05"),
        cluster_from(&named(&["a"]), &named(&["a", "b"])).not_warned("C-05"),
        cluster_from(&image(one), &image(other)).warned("W-U-4", "spec.workerGroupSpecs[0].template"),
        cluster_from(&head_image(one), &head_image(other)).warned("W-U-4", "spec.headGroupSpec.template"),
        cluster_from(&recreate(image(one)), &recreate(image(other))).not_warned("W-U-4"),
        cluster_from(&json!({}), &json!({"rayVersion": "2.53.1"})).not_warned("W-U-4"),
        service(&none("2.53.1")).replaces(service_object(&none("2.53.0"))).warned("W-U-5", "spec.rayClusterConfig"),
        service(&json!({"rayClusterConfig": {"rayVersion": "2.53.1"}})).replaces(service_object(&json!({}))).not_warned("W-U-5"),
    ]
}
