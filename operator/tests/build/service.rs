//! RC-23, RC-24, RC-130..RC-135, RJ-90, RS-70..RS-72.

use operator::build::{BuildError, service};
use operator::settings::Settings;
use serde_json::{Value, json};
use shared::api::{RayJob, RayService};

use crate::fixture::{cluster, head_group, ray, settings, worker_group};

fn head(edit: impl FnOnce(&mut Value)) -> Value {
    json!(service::head(&cluster(edit), &Settings::default()))
}

fn ports(service: &Value) -> Vec<String> {
    let text = |port: &Value| format!("{}:{}", port["name"].as_str().unwrap_or_default(), port["port"]);
    service["spec"]["ports"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn rc_131_132_the_default() {
    let labels = json!({
        "app.kubernetes.io/created-by": "kuberay-operator", "app.kubernetes.io/name": "kuberay", "ray.io/cluster": "demo",
        "ray.io/identifier": "demo-head", "ray.io/node-type": "head",
    });
    let port = |name: &str, port: i32| json!({"name": name, "port": port, "appProtocol": "tcp"});
    let service = head(|c| c["spec"]["headServiceAnnotations"] = json!({"a": "b"}));
    assert_eq!(service["metadata"]["name"], "demo-head-svc");
    assert_eq!(service["metadata"]["namespace"], "ml");
    assert_eq!(service["metadata"]["labels"], labels);
    assert_eq!(service["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(
        service["spec"],
        json!({
            "clusterIP": "None", "publishNotReadyAddresses": true, "selector": labels,
            "ports": [port("client", 10001), port("dashboard", 8265), port("gcs-server", 6379), port("metrics", 8080), port("serve", 8000)],
        })
    );
}

#[test]
fn rc_132_who_gets_an_address() {
    let table = [
        (json!(null), false, Some("None")),
        (json!(""), false, Some("None")),
        (json!("ClusterIP"), false, Some("None")),
        (json!("ClusterIP"), true, None),
        (json!("NodePort"), false, None),
        (json!("LoadBalancer"), false, None),
    ];
    for (kind, switch, wanted) in table {
        let settings = settings(|s| s.switches.head_cluster_ip_service = switch);
        let service = service::head(&cluster(|c| head_group(c)["serviceType"] = kind.clone()), &settings).spec.unwrap();
        assert_eq!(service.cluster_ip.as_deref(), wanted, "{kind}");
        assert_eq!(service.publish_not_ready_addresses, wanted.map(|_| true), "{kind}");
        assert_eq!(service.type_.as_deref(), kind.as_str().filter(|kind| !kind.is_empty()), "{kind}");
    }
}

#[test]
fn rc_131_ports_of_the_container() {
    let table = [
        (json!([{"containerPort": 6379, "name": "gcs"}]), vec!["gcs:6379", "metrics:8080"]),
        (json!([{"containerPort": 9001}]), vec!["9001-port:9001", "metrics:8080"]),
        (json!([{"containerPort": 9000, "name": "metrics"}]), vec!["metrics:9000"]),
        // A Service with two ports of one number or name is refused as a whole.
        (json!([{"containerPort": 8080, "name": "http"}]), vec!["http:8080"]),
        (
            json!([{"containerPort": 1, "name": "a"}, {"containerPort": 1, "name": "b"}, {"containerPort": 2, "name": "a"}]),
            vec!["a:1", "metrics:8080"],
        ),
        (json!([]), vec!["client:10001", "dashboard:8265", "gcs-server:6379", "metrics:8080", "serve:8000"]),
    ];
    for (declared, wanted) in table {
        assert_eq!(ports(&head(|c| ray(head_group(c))["ports"] = declared.clone())), wanted, "{declared}");
    }
}

#[test]
fn rc_133_a_service_of_the_user() {
    let service = head(|c| {
        head_group(c)["serviceType"] = "NodePort".into();
        c["spec"]["headServiceAnnotations"] = json!({"shared": "ours", "b": "2"});
        head_group(c)["headService"] = json!({
            "metadata": {"name": "entry", "namespace": "elsewhere", "labels": {"team": "x", "ray.io/cluster": "other"}, "annotations": {"shared": "theirs", "a": "1"}},
            "spec": {"selector": {"mine": "yes"}, "ports": [{"name": "extra", "port": 12345, "targetPort": 1}], "sessionAffinity": "ClientIP"},
        });
    });
    assert_eq!((&service["metadata"]["name"], &service["metadata"]["namespace"]), (&json!("entry"), &json!("ml")));
    assert_eq!(service["metadata"]["labels"]["team"], "x");
    assert_eq!(service["metadata"]["labels"]["ray.io/cluster"], "demo");
    assert_eq!(service["metadata"]["annotations"], json!({"shared": "ours", "a": "1", "b": "2"}));
    assert!(service["spec"]["selector"].get("mine").is_none());
    assert_eq!(service["spec"]["selector"]["ray.io/node-type"], "head");
    assert_eq!((&service["spec"]["type"], &service["spec"]["sessionAffinity"]), (&json!("NodePort"), &json!("ClientIP")));
    assert!(service["spec"].get("clusterIP").is_none());
    assert_eq!(ports(&service), ["extra:12345", "client:10001", "dashboard:8265", "gcs-server:6379", "metrics:8080", "serve:8000"]);
    let typed = head(|c| {
        head_group(c)["serviceType"] = "NodePort".into();
        head_group(c)["headService"] = json!({"spec": {"type": "LoadBalancer"}});
    });
    assert_eq!((&typed["spec"]["type"], &typed["metadata"]["name"]), (&json!("LoadBalancer"), &json!("demo-head-svc")));
}

/// Ports of the user win over default ones of the same name or number; together the Service would be refused.
#[test]
fn ports_of_the_user_that_clash() {
    let table = [
        (
            json!([{"name": "dashboard", "port": 80, "targetPort": 8265}]),
            "dashboard:80 client:10001 gcs-server:6379 metrics:8080 serve:8000",
            80,
        ),
        (json!([{"name": "http", "port": 8265}]), "http:8265 client:10001 gcs-server:6379 metrics:8080 serve:8000", 8265),
        (json!([{"port": 443}]), "443-port:443 client:10001 dashboard:8265 gcs-server:6379 metrics:8080 serve:8000", 8265),
        (
            json!([{"name": "dns", "port": 8265, "protocol": "UDP"}]),
            "dns:8265 client:10001 dashboard:8265 gcs-server:6379 metrics:8080 serve:8000",
            8265,
        ),
    ];
    for (of_user, wanted, dashboard) in table {
        let edit = |c: &mut Value| head_group(c)["headService"] = json!({"spec": {"ports": of_user}});
        assert_eq!(ports(&head(edit)).join(" "), wanted, "{of_user}");
        assert_eq!(service::dashboard_port(&cluster(edit)), dashboard);
        assert_eq!(service::dashboard_container_port(&cluster(edit)), 8265);
    }
}

/// The selector follows labels that the user changed on the head, so that the Service keeps finding it.
#[test]
fn rc_23_selector_and_changed_labels() {
    let edit = |c: &mut Value| {
        head_group(c)["template"]["metadata"]["labels"] =
            json!({"app.kubernetes.io/name": "app", "ray.io/identifier": "id", "ray.io/cluster": "x"});
        head_group(c)["labels"] = json!({"app.kubernetes.io/created-by": "me"});
    };
    let service = head(edit);
    let pod = json!(crate::fixture::head(edit).metadata.labels);
    for (key, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(&pod[key], value, "{key}");
    }
    assert_eq!(service["metadata"]["labels"]["app.kubernetes.io/name"], "app");
    assert_eq!(service["metadata"]["labels"]["ray.io/identifier"], "demo-head", "the operator finds the Service by this label");
}

#[test]
fn rj_90_rs_70_the_services_that_outlive_clusters() {
    let cluster = cluster(|c| {
        c["spec"]["headServiceAnnotations"] = json!({"a": "b"});
        head_group(c)["headService"] = json!({
            "metadata": {"name": "entry", "labels": {"team": "x"}},
            "spec": {"type": "NodePort", "clusterIP": "10.0.0.9", "ports": [{"name": "extra", "port": 1, "nodePort": 31000}]},
        });
    });
    let mut job = RayJob::new("job", Default::default());
    (job.metadata.namespace, job.metadata.uid) = (Some("ml".to_owned()), Some("u".to_owned()));
    let service = json!(service::head_for_owner(&job, &cluster, &Settings::default()));
    assert_eq!(
        service["metadata"],
        json!({
            "name": "job-head-svc", "namespace": "ml", "annotations": {"a": "b"},
            "labels": {
                "ray.io/originated-from-cr-name": "job", "ray.io/originated-from-crd": "RayJob",
                "ray.io/node-type": "head", "ray.io/identifier": "job-head",
            },
            "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "job", "uid": "u", "controller": true, "blockOwnerDeletion": true}],
        })
    );
    assert_eq!(service["spec"]["selector"]["ray.io/identifier"], "demo-head");
    // Only one Service can have an address or a node port, and the cluster's own does.
    assert!(service["spec"].get("clusterIP").is_none() && service["spec"]["ports"][0].get("nodePort").is_none());
    let own = json!(service::head(&cluster, &Settings::default()));
    assert_eq!((&own["spec"]["clusterIP"], &own["spec"]["ports"][0]["nodePort"]), (&json!("10.0.0.9"), &json!(31000)));

    let mut owner = RayService::new("svc", Default::default());
    owner.metadata.namespace = Some("ml".to_owned());
    let headless = crate::fixture::cluster(|_| ());
    let service = json!(service::head_for_owner(&owner, &headless, &Settings::default()));
    assert_eq!(service["metadata"]["labels"]["ray.io/originated-from-crd"], "RayService");
    assert_eq!(service["spec"]["clusterIP"], "None");
}

#[test]
fn rc_134_multi_host_workers() {
    let many = cluster(|c| worker_group(c)["numOfHosts"] = 2.into());
    assert!(service::needs_headless_workers(&many) && !service::needs_headless_workers(&cluster(|_| ())));
    let service = json!(service::headless_workers(&many, &Settings::default()));
    assert_eq!(service["metadata"]["name"], "demo-headless");
    assert_eq!(service["metadata"]["labels"], json!({"ray.io/cluster": "demo", "ray.io/headless-worker-svc": "demo"}));
    assert_eq!(
        service["spec"],
        json!({
            "type": "ClusterIP", "clusterIP": "None", "publishNotReadyAddresses": true,
            "selector": {"ray.io/cluster": "demo", "ray.io/node-type": "worker"},
        })
    );
}

#[test]
fn rc_135_serve() {
    let asks =
        |value: &str| service::needs_serve(&cluster(|c| c["metadata"]["annotations"] = json!({"ray.io/enable-serve-service": value})));
    assert!(asks("true") && !asks("True") && !service::needs_serve(&cluster(|_| ())));
    let service = json!(service::serve(&cluster(|c| head_group(c)["serviceType"] = "NodePort".into()), &Settings::default()).unwrap());
    assert_eq!(service["metadata"]["name"], "demo-serve-svc");
    assert_eq!(
        service["metadata"]["labels"],
        json!({
            "ray.io/cluster": "demo", "ray.io/originated-from-cr-name": "demo", "ray.io/originated-from-crd": "RayCluster", "ray.io/serve": "demo-serve",
        })
    );
    assert_eq!(
        service["spec"],
        json!({"type": "NodePort", "selector": {"ray.io/cluster": "demo"}, "ports": [{"name": "serve", "port": 8000}]})
    );
    let with = |declared: Value| cluster(|c| ray(head_group(c))["ports"] = declared);
    let several = with(
        json!([{"containerPort": 3, "name": "serve-b"}, {"containerPort": 2, "name": "serve"}, {"containerPort": 4, "name": "server"}]),
    );
    assert_eq!(ports(&json!(service::serve(&several, &Settings::default()).unwrap())), ["serve:2", "serve-b:3"]);
    let none = with(json!([{"containerPort": 1, "name": "gcs"}]));
    assert_eq!(service::serve(&none, &Settings::default()).unwrap_err(), BuildError::NoServePort);
}
