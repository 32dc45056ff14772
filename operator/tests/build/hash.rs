//! RC-156, RC-157: what makes running Pods out of date.

use operator::build::spec_hash;
use serde_json::{Value, json};

use crate::fixture::{Edit, cluster, head_group, ray, worker_group};

fn hash(edit: impl FnOnce(&mut Value)) -> String {
    spec_hash(&cluster(edit).spec)
}

#[test]
fn the_value_is_pinned() {
    // A change of this value restarts nothing by itself (the version annotation changes with it), but it must be deliberate.
    let value = hash(|_| ());
    assert_eq!(value, "ELBEV4LB55B9SEJ9KJMAE2KI846E9M82");
    assert!(value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'V').contains(&byte)));
}

#[test]
fn rc_157_what_running_pods_need_not_care_about() {
    let edits: [(&str, Edit<'_>); 22] = [
        ("replicas", &|c| worker_group(c)["replicas"] = 4.into()),
        ("minReplicas", &|c| worker_group(c)["minReplicas"] = 1.into()),
        ("maxReplicas", &|c| worker_group(c)["maxReplicas"] = 9.into()),
        ("scaleStrategy", &|c| worker_group(c)["scaleStrategy"] = json!({"workersToDelete": ["x"]})),
        ("group suspend", &|c| worker_group(c)["suspend"] = false.into()),
        ("group idle timeout", &|c| worker_group(c)["idleTimeoutSeconds"] = 9.into()),
        ("group priority", &|c| worker_group(c)["priority"] = 9.into()),
        ("head tolerations", &|c| head_group(c)["template"]["spec"]["tolerations"] = json!([{"key": "a"}])),
        ("worker gates", &|c| worker_group(c)["template"]["spec"]["schedulingGates"] = json!([{"name": "a"}])),
        ("upgradeStrategy", &|c| c["spec"]["upgradeStrategy"] = json!({"type": "Recreate"})),
        ("suspend", &|c| c["spec"]["suspend"] = false.into()),
        ("managedBy", &|c| c["spec"]["managedBy"] = "ray.io/kuberay-operator".into()),
        ("service annotations", &|c| c["spec"]["headServiceAnnotations"] = json!({"a": "b"})),
        ("service type", &|c| head_group(c)["serviceType"] = "NodePort".into()),
        ("service labels", &|c| head_group(c)["headService"] = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"type": "NodePort"}})),
        ("ingress", &|c| head_group(c)["enableIngress"] = true.into()),
        ("ingress options", &|c| head_group(c)["ingressOptions"] = json!({"path": "/x"})),
        ("network policy", &|c| c["spec"]["networkPolicy"] = json!({"mode": "DenyAll"})),
        ("idle timeout", &|c| c["spec"]["autoscalerOptions"] = json!({"idleTimeoutSeconds": 9})),
        ("upscaling", &|c| c["spec"]["autoscalerOptions"] = json!({"upscalingMode": "Conservative"})),
        ("null for empty", &|c| worker_group(c)["rayStartParams"] = Value::Null),
        ("default written out", &|c| {
            worker_group(c).as_object_mut().unwrap().remove("numOfHosts");
        }),
    ];
    for (what, edit) in edits {
        assert_eq!(hash(edit), hash(|_| ()), "{what}");
    }
}

#[test]
fn rc_157_what_they_must_care_about() {
    let edits: [(&str, Edit<'_>); 11] = [
        ("image", &|c| ray(worker_group(c))["image"] = "other".into()),
        ("resources", &|c| ray(head_group(c))["resources"]["limits"]["cpu"] = "3".into()),
        ("options", &|c| head_group(c)["rayStartParams"] = json!({"num-cpus": "0"})),
        ("version", &|c| c["spec"]["rayVersion"] = "2.53.0".into()),
        ("hosts", &|c| worker_group(c)["numOfHosts"] = 2.into()),
        ("group name", &|c| worker_group(c)["groupName"] = "other".into()),
        ("one more group", &|c| {
            let mut more = worker_group(c).clone();
            more["groupName"] = "more".into();
            c["spec"]["workerGroupSpecs"].as_array_mut().unwrap().push(more);
        }),
        ("service name", &|c| head_group(c)["headService"] = json!({"metadata": {"name": "entry"}})),
        ("autoscaling", &|c| c["spec"]["enableInTreeAutoscaling"] = true.into()),
        ("autoscaler image", &|c| c["spec"]["autoscalerOptions"] = json!({"image": "x"})),
        ("template label", &|c| worker_group(c)["template"]["metadata"]["labels"] = json!({"a": "b"})),
    ];
    let mut seen = std::collections::BTreeMap::from([(hash(|_| ()), "nothing")]);
    for (what, edit) in edits {
        if let Some(other) = seen.insert(hash(edit), what) {
            panic!("{what} and {other} have one hash");
        }
    }
}

#[test]
fn rc_157_field_order_does_not_count() {
    let one: shared::api::RayClusterSpec =
        serde_json::from_str(r#"{"headGroupSpec":{"rayStartParams":{"a":"1","b":"2"},"template":{}},"rayVersion":"2"}"#).unwrap();
    let other = serde_json::from_str(r#"{"rayVersion":"2","headGroupSpec":{"template":{},"rayStartParams":{"b":"2","a":"1"}}}"#).unwrap();
    assert_eq!(spec_hash(&one), spec_hash(&other));
}
