//! C-37: containers beside Ray meet Pod Security's level `restricted` where Ray does.

use k8s_openapi::api::core::v1::{Container, Pod};
use operator::build::security::meets_restricted;
use serde_json::{Value, json};
use shared::features::Feature;

use crate::fixture::{PodExt, gates, head, head_group, head_with, ray, worker_group, worker_with};

fn strict() -> Value {
    json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    })
}

fn everything(c: &mut Value) {
    c["spec"]["enableInTreeAutoscaling"] = true.into();
    c["spec"]["historyServerOptions"] = json!({"collectorOptions": {"image": "collector"}});
    c["spec"]["tlsOptions"] = json!({"enabled": true});
    c["spec"]["authOptions"] = json!({"mode": "token"});
    c["spec"]["gcsFaultToleranceOptions"] = json!({"redisAddress": "redis:6379"});
}

fn all(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref().unwrap();
    spec.containers.iter().chain(spec.init_containers.iter().flatten())
}

#[test]
fn every_container_is_restricted_where_ray_is() {
    let gates = gates(&[Feature::RayClusterHistoryServer, Feature::RayClusterMTLS]);
    let own = |group: &mut Value| ray(group)["securityContext"] = strict();
    let split = |group: &mut Value| {
        group["template"]["spec"]["securityContext"] = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        ray(group)["securityContext"] = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    };
    for restrict in [&own as &dyn Fn(&mut Value), &split] {
        let edit = |c: &mut Value| {
            everything(c);
            restrict(head_group(c));
            restrict(worker_group(c));
        };
        let (head, worker) = (head_with(edit, &gates), worker_with(edit, &gates));
        assert_eq!((all(&head).count(), all(&worker).count()), (4, 4));
        for pod in [&head, &worker] {
            for container in all(pod) {
                assert!(meets_restricted(pod.spec.as_ref().unwrap(), container), "{}", container.name);
            }
        }
        let cleanup = operator::build::redis_cleanup::job(&crate::fixture::cluster(edit), &gates).unwrap();
        let spec = cleanup.spec.unwrap().template.spec.unwrap();
        assert!(spec.containers.iter().all(|container| meets_restricted(&spec, container)));
    }
}

#[test]
fn restrictions_are_copied_and_rights_are_not() {
    let table = [
        (json!(null), json!(null)),
        (json!({}), json!(null)),
        (json!({"privileged": true}), json!(null)),
        (json!({"capabilities": {"add": ["SYS_PTRACE"]}}), json!(null)),
        (json!({"allowPrivilegeEscalation": true, "readOnlyRootFilesystem": true, "procMount": "Unmasked"}), json!(null)),
        (
            json!({"runAsUser": 1000, "capabilities": {"add": ["SYS_PTRACE"], "drop": ["ALL"]}}),
            json!({"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}),
        ),
        (strict(), strict()),
    ];
    for (of_ray, wanted) in table {
        let pod = head(|c| {
            c["spec"]["enableInTreeAutoscaling"] = true.into();
            ray(head_group(c))["securityContext"] = of_ray.clone();
        });
        assert_eq!(json!(pod.container("autoscaler").security_context), wanted, "{of_ray}");
    }
}

#[test]
fn the_users_choice_for_the_autoscaler_wins_unless_it_says_nothing() {
    for (chosen, wanted) in [(json!({}), strict()), (json!({"runAsUser": 7}), json!({"runAsUser": 7}))] {
        let pod = head(|c| {
            c["spec"]["enableInTreeAutoscaling"] = true.into();
            c["spec"]["autoscalerOptions"] = json!({"securityContext": chosen});
            ray(head_group(c))["securityContext"] = strict();
        });
        assert_eq!(json!(pod.container("autoscaler").security_context), wanted, "{chosen}");
    }
}

/// The collector has an image of its own, which may not know Ray's user.
#[test]
fn the_collector_follows_only_where_it_must() {
    let context = |of_ray: Value| {
        let edit = |c: &mut Value| {
            everything(c);
            ray(worker_group(c))["securityContext"] = of_ray;
        };
        json!(worker_with(edit, &gates(&[Feature::RayClusterHistoryServer])).container("ray-history-collector").security_context)
    };
    assert_eq!(context(json!({"runAsUser": 1000})), Value::Null);
    assert_eq!(context(strict()), strict());
}

#[test]
fn what_restricted_means() {
    let table = [
        (strict(), true),
        (json!({}), false),
        (json!({"runAsUser": 0}), false),
        (json!({"allowPrivilegeEscalation": true}), false),
        (json!({"capabilities": {"drop": ["NET_RAW"]}}), false),
        (json!({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}), true),
        (json!({"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}), false),
        (json!({"seccompProfile": {"type": "Unconfined"}}), false),
        (json!({"privileged": true}), false),
        (json!({"runAsNonRoot": false}), false),
    ];
    for (change, wanted) in table {
        let mut context = if change == json!({}) { json!({}) } else { strict() };
        context.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let container: Container = serde_json::from_value(json!({"name": "x", "securityContext": context})).unwrap();
        assert_eq!(meets_restricted(&Default::default(), &container), wanted, "{change}");
    }
}
