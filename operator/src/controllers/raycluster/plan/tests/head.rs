//! The head.

use serde_json::json;
use shared::labels::annotation;

use crate::controllers::raycluster::plan::{Why, plan};
use crate::controllers::raycluster::testing::*;
use crate::settings::Settings;

#[test]
fn rc_170_which_pods_are_replaced() {
    let terminated = json!({ "name": "ray", "state": { "terminated": { "exitCode": 1 } } });
    let running = |status: serde_json::Value| json!({ "phase": "Running", "containerStatuses": [status] });
    let sidecar = json!({ "name": "side", "state": { "terminated": { "exitCode": 1 } } });
    let table = [
        ("Always", json!({ "phase": "Failed", "reason": "Evicted" }), true),
        ("Never", json!({ "phase": "Succeeded" }), true),
        ("Never", running(terminated.clone()), true),
        ("Always", running(terminated.clone()), false),
        ("OnFailure", running(terminated), false),
        ("Never", running(sidecar), false),
        ("Never", json!({ "phase": "Running" }), false),
        ("Never", json!({ "phase": "Pending" }), false),
        ("Never", json!({ "phase": "Unknown" }), false),
        ("Never", json!({}), false),
    ];
    for (policy, status, replaced) in table {
        let mut world = World::new(cluster(&[], json!({})));
        world.pods.insert("h".to_owned(), P::head("h").set("/spec/restartPolicy", json!(policy)).status(status.clone()));
        world.run(2);
        assert_eq!(world.deleted == ["h"], replaced, "{policy} {status}");
        assert_eq!(world.heads(), 1);
    }
}

#[test]
fn rc_161_a_head_that_goes_has_no_successor_before_it_is_gone() {
    let plan = plan_once(cluster(&[], json!({})), &[P::head("h").terminating(at(-900))]);
    assert_eq!(plan.pods.create_head, None);
}

#[test]
fn rc_162_a_provisioned_cluster_may_be_left_without_its_head() {
    let workers = [group("a", 1)];
    let table = [("true", true, true), ("true", false, false), ("True", true, false), ("false", true, false)];
    for (value, provisioned, left) in table {
        let provisioned = if provisioned { "True" } else { "False" };
        let cluster = saying(cluster(&workers, json!({})), &[("RayClusterProvisioned", provisioned)]);
        let plan = plan_once(annotated(cluster, annotation::DISABLE_PROVISIONED_HEAD_RESTART, value), &[]);
        assert_eq!(plan.pods.create_head.is_none(), left, "{value} {provisioned}");
        assert_eq!(coming(&plan).is_empty(), left);
    }
}

#[test]
fn rc_163_of_two_heads_the_better_one_stays() {
    let table = [
        (P::head("h1").created(at(-9)), P::head("h2").created(at(-5)), "h2"),
        (P::head("h1").created(at(-9)).pending(), P::head("h2").created(at(-5)), "h1"),
        (P::head("h1").created(at(-9)).pending(), P::head("h2").created(at(-9)).pending(), "h2"),
    ];
    for (first, second, goes) in table {
        let plan = plan_once(cluster(&[], json!({})), &[first, second]);
        assert_eq!(going(&plan), [(goes.to_owned(), Why::Double)]);
        assert!(plan.pods.needs_live_view());
    }
}

#[test]
fn rc_15_names_of_heads() {
    let head = |cluster, settings: &Settings| {
        plan(&observed(cluster, &[]), &mut Default::default(), settings, at(0)).pods.create_head.unwrap().name
    };
    let drawn = head(cluster(&[], json!({})), &Settings::default()).unwrap();
    assert!(drawn.starts_with("c-head-") && drawn.len() == "c-head-".len() + 5);
    let mut settings = Settings::default();
    settings.switches.deterministic_head_pod_name = true;
    assert_eq!(head(cluster(&[], json!({})), &settings), None);
    let mut named = cluster(&[], json!({}));
    named.spec.head_group_spec.template.metadata.get_or_insert_default().name = Some("mine".to_owned());
    assert_eq!(head(named, &Settings::default()), None);
}

#[test]
fn while_the_head_is_refused_no_worker_is_made() {
    let mut world = World::new(cluster(&[group("a", 2)], json!({})));
    world.memory.head.refusal =
        Some(crate::controllers::raycluster::memory::Refusal::after(None, "FailedCreateHeadPod", "quota".to_owned(), at(0)));
    world.step();
    assert!(world.pods.is_empty());
    world.now = at(2);
    world.settle();
    assert_eq!((world.heads(), world.workers("a").len()), (1, 2));
    assert_eq!(world.memory.refusal(), None);
}

#[test]
fn a_head_that_fails_again_and_again_is_replaced_ever_more_slowly() {
    let mut world = World::new(cluster(&[], json!({})));
    world.kubelet = Kubelet::HeadFails;
    world.run(40);
    assert!((5..=10).contains(&world.deleted.len()), "{} in 40 s", world.deleted.len());
    assert_eq!(world.heads(), 1);
}

#[test]
fn pods_of_an_earlier_cluster_of_this_name_do_not_count() {
    let other = P::head("old").set("/metadata/ownerReferences/0/uid", json!("other-uid"));
    assert!(crate::controllers::raycluster::pods::ClusterPod::of(std::sync::Arc::new(other.view()), UID).is_none());
    let no_controller = P::head("old").set("/metadata/ownerReferences/0/controller", json!(false));
    assert!(crate::controllers::raycluster::pods::ClusterPod::of(std::sync::Arc::new(no_controller.view()), UID).is_none());
    let cleanup = P::worker("job", "a").label("ray.io/node-type", "redis-cleanup");
    assert!(crate::controllers::raycluster::pods::ClusterPod::of(std::sync::Arc::new(cleanup.view()), UID).is_none());
}
