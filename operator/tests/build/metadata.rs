//! RC-12..RC-25, RC-30, RC-32: names, labels, annotations, owner.

use operator::build::BuildError;
use operator::build::pod::{self, Replica};
use operator::settings::{Settings, VERSION};
use serde_json::json;

use crate::fixture::{PodExt, cluster, head, head_group, head_with, settings, worker, worker_group, worker_with};

#[test]
fn rc_15_names() {
    let pod = head(|c| head_group(c)["template"]["metadata"]["namespace"] = "elsewhere".into());
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("demo-head-"));
    assert_eq!(pod.metadata.name, None);
    assert_eq!(pod.metadata.namespace.as_deref(), Some("ml"));
    let named = |c: &mut serde_json::Value| head_group(c)["template"]["metadata"]["name"] = "mine".into();
    assert_eq!(head(named).metadata.name.as_deref(), Some("mine"), "RC-30");

    let fixed = settings(|s| s.switches.deterministic_head_pod_name = true);
    let pod = head_with(named, &fixed);
    assert_eq!((pod.metadata.name.as_deref(), pod.metadata.generate_name), (Some("demo-head"), None));
    let long = |last: char| head_with(|c| c["metadata"]["name"] = format!("{}{last}", "c".repeat(52)).into(), &fixed).metadata.name;
    assert_ne!(long('a'), long('b'));

    let pod = worker(|c| worker_group(c)["template"]["metadata"]["name"] = "mine".into());
    assert_eq!((pod.metadata.name, pod.metadata.generate_name.as_deref()), (None, Some("demo-cpu-worker-")));
}

/// RC-300.
#[test]
fn rc_300_prefixes_of_long_names() {
    let name = "ray-cluster-0000000000000000000000011111111122222233333333333333";
    let pod = worker(|c| {
        c["metadata"]["name"] = name.into();
        worker_group(c)["groupName"] = "group-name".into();
    });
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("ray-cluster-00000000000000000000000111111111222222-worker-"));
    let pod = head(|c| c["metadata"]["name"] = name.into());
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("ray-cluster-00000000000000000000000111111111222222-head-"));
}

#[test]
fn rc_17_labels() {
    assert_eq!(
        head(|_| ()).labels(),
        json!({
            "app.kubernetes.io/created-by": "kuberay-operator", "app.kubernetes.io/name": "kuberay", "ray.io/cluster": "demo",
            "ray.io/group": "headgroup", "ray.io/identifier": "demo-head", "ray.io/is-ray-node": "yes", "ray.io/node-type": "head",
        })
    );
    let pod = worker(|c| {
        worker_group(c)["template"]["metadata"]["labels"] = json!({
            "app.kubernetes.io/name": "mine", "team": "template", "zone": "template",
            "ray.io/cluster": "other", "ray.io/group": "other", "ray.io/node-type": "head", "ray.io/is-ray-node": "no",
        });
        worker_group(c)["labels"] = json!({"zone": "group", "ray.io/group": "other"});
    });
    assert_eq!(
        pod.labels(),
        json!({
            "app.kubernetes.io/created-by": "kuberay-operator", "app.kubernetes.io/name": "mine", "ray.io/cluster": "demo",
            "ray.io/group": "cpu", "ray.io/identifier": "demo-worker", "ray.io/is-ray-node": "no", "ray.io/node-type": "worker",
            "ray.io/worker-group-replica-index": "0", "team": "template", "zone": "group",
        })
    );
}

#[test]
fn rc_18_places_in_a_group() {
    let build = |hosts: i32, replica: Option<&Replica>| {
        let cluster = cluster(|c| {
            worker_group(c)["numOfHosts"] = hosts.into();
            worker_group(c)["template"]["metadata"]["labels"] = json!({"ray.io/worker-group-replica-index": "user"});
        });
        pod::worker(&cluster, &cluster.spec.worker_groups()[0], replica, &Settings::default()).unwrap().labels()
    };
    let replica = Replica { index: 3, name: Replica::generate_name("cpu", [0, 1, 2, 3, 4]), host_index: 2 };
    assert_eq!(replica.name, "cpu-bcdfg");
    let many = build(4, Some(&replica));
    assert_eq!(many["ray.io/worker-group-replica-index"], "3");
    assert_eq!(many["ray.io/worker-group-replica-name"], "cpu-bcdfg");
    assert_eq!(many["ray.io/replica-host-index"], "2");
    let one = build(1, Some(&replica));
    assert_eq!(one["ray.io/worker-group-replica-index"], "3");
    assert!(one.get("ray.io/worker-group-replica-name").is_none() && one.get("ray.io/replica-host-index").is_none());
    let gate_off = build(4, None);
    assert_eq!(gate_off["ray.io/worker-group-replica-index"], "user");
    assert!(gate_off.get("ray.io/worker-group-replica-name").is_none());
}

#[test]
fn rc_19_20_serving_and_configured_labels() {
    let configured = settings(|s| {
        s.pods.labels = [("team", "configured"), ("ray.io/cluster", "configured"), ("ray.io/serve", "configured")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        s.pods.annotations = [("note", "configured"), ("ray.io/ft-enabled", "configured"), ("mine", "configured")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    });
    let edit = |c: &mut serde_json::Value| {
        c["metadata"]["labels"] = json!({"ray.io/originated-from-crd": "RayService"});
        head_group(c)["template"]["metadata"]["annotations"] = json!({"mine": "mine"});
    };
    let pod = head_with(edit, &configured);
    assert_eq!(pod.labels()["team"], "configured");
    assert_eq!(pod.labels()["ray.io/cluster"], "demo");
    assert_eq!(pod.labels()["ray.io/serve"], "false");
    assert_eq!(pod.annotations()["note"], "configured");
    assert_eq!(pod.annotations()["ray.io/ft-enabled"], "false");
    assert_eq!(pod.annotations()["mine"], "mine");
    let pod = worker_with(edit, &configured);
    assert_eq!(pod.labels()["ray.io/serve"], "true");
    assert_eq!(pod.annotations()["ray.io/ft-enabled"], "configured");
    assert!(head(|_| ()).labels().get("ray.io/serve").is_none());
}

#[test]
fn rc_21_annotations() {
    let cluster = cluster(|_| ());
    let pod = head(|_| ());
    assert_eq!(
        pod.annotations(),
        json!({
            "ray.io/ft-enabled": "false",
            "ray.io/kuberay-version": VERSION,
            "ray.io/upgrade-strategy-recreate-hash": operator::build::spec_hash(&cluster.spec),
        })
    );
    assert_eq!(worker(|_| ()).annotations(), json!(null));
    let pod = worker(|c| c["metadata"]["annotations"] = json!({"ray.io/overwrite-container-cmd": "TRUE", "other": "x"}));
    assert_eq!(pod.annotations(), json!({"ray.io/overwrite-container-cmd": "true"}));
}

#[test]
fn rc_25_owner() {
    let wanted = json!([{
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "5f3c9e1a-0000-4000-8000-000000000001",
        "controller": true, "blockOwnerDeletion": true,
    }]);
    for pod in [head(|_| ()), worker(|_| ())] {
        assert_eq!(json!(pod.metadata.owner_references), wanted);
    }
}

/// RC-202: a template without containers is an error, whatever way it is empty, and says where.
#[test]
fn templates_without_containers_are_errors() {
    for empty in [json!({"spec": {"containers": []}}), json!({})] {
        let cluster = cluster(|c| {
            head_group(c)["template"] = empty.clone();
            worker_group(c)["template"] = empty.clone();
        });
        let error = |path: &str| BuildError::NoContainers { path: path.to_owned() };
        assert_eq!(pod::head(&cluster, &Settings::default()).unwrap_err(), error("spec.headGroupSpec.template.spec.containers"));
        let group = &cluster.spec.worker_groups()[0];
        let found = pod::worker(&cluster, group, None, &Settings::default()).unwrap_err();
        assert_eq!(found, error("spec.workerGroupSpecs[0].template.spec.containers"));
        assert!(operator::build::redis_cleanup::job(&cluster, &Settings::default()).is_err());
        // What does not need the container is still built.
        assert_eq!(operator::build::service::head(&cluster, &Settings::default()).spec.unwrap().ports.unwrap().len(), 5);
    }
}

#[test]
fn rc_34_order_of_containers() {
    let configured = settings(|s| {
        let sidecar = |name: &str| vec![k8s_openapi::api::core::v1::Container { name: name.to_owned(), ..Default::default() }];
        s.pods.head_sidecars = sidecar("head-sidecar");
        s.pods.worker_sidecars = sidecar("worker-sidecar");
        s.features = s.features.with(shared::features::Feature::RayClusterHistoryServer, true);
    });
    let edit = |c: &mut serde_json::Value| {
        c["spec"]["enableInTreeAutoscaling"] = true.into();
        c["spec"]["historyServerOptions"] = json!({"collectorOptions": {"image": "collector"}});
        head_group(c)["template"]["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "users"}));
    };
    let names =
        |pod: &k8s_openapi::api::core::v1::Pod| pod.spec.as_ref().unwrap().containers.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&head_with(edit, &configured)), ["ray-head", "users", "autoscaler", "ray-history-collector", "head-sidecar"]);
    assert_eq!(names(&worker_with(edit, &configured)), ["ray-worker", "ray-history-collector", "worker-sidecar"]);
}

#[test]
fn rc_36_metrics_port() {
    let ports = |pod: &k8s_openapi::api::core::v1::Pod| json!(pod.ray().ports);
    assert_eq!(ports(&worker(|_| ())), json!([{"name": "metrics", "containerPort": 8080}]));
    let own = json!([{"name": "metrics", "containerPort": 9999}]);
    assert_eq!(ports(&worker(|c| crate::fixture::ray(worker_group(c))["ports"] = own.clone())), own);
}
