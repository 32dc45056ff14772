//! The cluster as a whole: rules, suspension, Recreate, children.

use serde_json::json;
use shared::labels::annotation;

use crate::build::spec_hash;
use crate::controllers::raycluster::plan::{DesiredChildren, Observed, Phase, Plan, Stage, Verdict, Wanted, Why, plan};
use crate::controllers::raycluster::testing::*;
use crate::settings::{Settings, VERSION};

fn no_pods_change(plan: &Plan) -> bool {
    plan.pods.delete.is_empty() && plan.pods.create_head.is_none() && plan.pods.create_workers.is_empty()
}

#[test]
fn an_invalid_cluster_is_left_as_it_is_and_says_so() {
    let verdict = Verdict::Invalid { reason: "InvalidRayClusterSpec", message: "min above max".to_owned() };
    for pods in [vec![], vec![P::head("h").failed(), P::worker("w", "a"), P::worker("x", "gone")]] {
        let seen = Observed { verdict: verdict.clone(), ..observed(cluster(&[group("a", 3)], json!({})), &pods) };
        let plan = plan(&seen, &mut Default::default(), &Settings::default(), at(0));
        assert!(no_pods_change(&plan));
        assert_eq!(plan.children, DesiredChildren::untouched());
        assert_eq!((plan.stage, plan.notes.len()), (Stage::Invalid, 1));
        assert_eq!((plan.notes[0].warning, plan.notes[0].reason, plan.notes[0].action), (true, "InvalidRayClusterSpec", "Validate"));
    }
}

#[test]
fn rc_310_suspension_goes_step_by_step() {
    let pods = [P::head("h"), P::worker("w", "a")];
    let suspend = |asked: bool, says: &[(&str, &str)], pods: &[P]| {
        plan_once(saying(cluster(&[group("a", 1)], json!({ "suspend": asked })), says), pods)
    };
    let asked = suspend(true, &[], &pods);
    assert!(no_pods_change(&asked));
    assert_eq!(asked.stage, Stage::In(Phase::Asked));
    for asked in [true, false] {
        let goes = suspend(asked, &[("RayClusterSuspending", "True")], &pods);
        assert_eq!(going(&goes), [("h".to_owned(), Why::ClusterSuspended), ("w".to_owned(), Why::ClusterSuspended)]);
        assert_eq!(goes.stage, Stage::In(Phase::Suspending));
    }
    let rests = suspend(true, &[("RayClusterSuspended", "True")], &[]);
    assert!(no_pods_change(&rests));
    let returns = suspend(false, &[("RayClusterSuspended", "True")], &[]);
    assert!(returns.pods.create_head.is_some());
    // RC-475: removing the field means the same as false.
    let returns = plan_once(saying(cluster(&[], json!({})), &[("RayClusterSuspended", "True")]), &[]);
    assert!(returns.pods.create_head.is_some());
}

#[test]
fn rc_156_recreate() {
    let strategy = json!({ "upgradeStrategy": { "type": "Recreate" } });
    let hash = spec_hash(&cluster(&[group("a", 1)], strategy.clone()).spec);
    let head = |version: &str, hash: &str| {
        P::head("h").annotation(annotation::KUBERAY_VERSION, version).annotation(annotation::UPGRADE_STRATEGY_RECREATE_HASH, hash)
    };
    let worker = P::worker("w", "a");
    let table = [
        // C-36: made by another version, whatever its hash says: taken over as it is.
        (strategy.clone(), head("v1.6.0", "OLD"), 0, true),
        (strategy.clone(), head("v1.7.0", &hash), 0, true),
        (strategy.clone(), head(VERSION, &hash), 0, false),
        (strategy.clone(), head(VERSION, "OLD"), 2, false),
        (strategy.clone(), head(VERSION, ""), 0, false),
        (strategy.clone(), P::head("h"), 0, false),
        (strategy.clone(), head("", "OLD"), 2, false),
        (json!({}), head(VERSION, "OLD"), 0, false),
        (json!({}), head("v1.6.0", "OLD"), 0, false),
        (json!({ "upgradeStrategy": { "type": "None" } }), head(VERSION, "OLD"), 0, false),
    ];
    for (spec, head, deleted, refreshed) in table {
        let plan = plan_once(cluster(&[group("a", 1)], spec.clone()), &[head.clone(), worker.clone()]);
        assert_eq!((going(&plan).len(), plan.pods.refresh_head.is_some()), (deleted, refreshed), "{spec} {:?}", head.view().metadata);
        assert_eq!(plan.stage == Stage::Recreating, deleted > 0);
        // The head goes last: without it nobody would know that the workers have to go.
        assert!(deleted == 0 || plan.pods.delete.last().is_some_and(|last| last.pod.name() == "h"));
    }
    // As long as the old head is there, nothing new is made.
    let plan = plan_once(cluster(&[group("a", 1)], strategy), &[head(VERSION, "OLD").terminating(at(30))]);
    assert!(no_pods_change(&plan));
}

#[test]
fn rc_157_replicas_and_bounds_never_recreate() {
    let strategy = json!({ "upgradeStrategy": { "type": "Recreate" } });
    let hash = spec_hash(&cluster(&[group("a", 1)], strategy.clone()).spec);
    let edits = [
        json!({ "replicas": 1, "maxReplicas": 99 }),
        json!({ "minReplicas": 1 }),
        json!({ "scaleStrategy": { "workersToDelete": ["x"] } }),
    ];
    let head = P::head("h").annotation(annotation::KUBERAY_VERSION, VERSION).annotation(annotation::UPGRADE_STRATEGY_RECREATE_HASH, &hash);
    for edit in edits {
        let plan = plan_once(cluster(&[with(group("a", 1), edit.clone())], strategy.clone()), &[head.clone(), P::worker("w", "a")]);
        assert_eq!(going(&plan), [], "{edit}");
    }
}

#[test]
fn what_is_switched_off_is_to_be_nowhere() {
    let children = |spec, settings: &Settings| plan(&observed(cluster(&[], spec), &[]), &mut Default::default(), settings, at(0)).children;
    let off = children(json!({}), &Settings::default());
    let nowhere = |name: &str| Wanted::Nowhere::<()> { name: name.to_owned() };
    assert!(matches!(off.head_service, Wanted::Here(_)));
    assert!(matches!(&off.headless_service, Wanted::Nowhere { name } if name == "c-headless"));
    assert!(matches!(&off.serve_service, Wanted::Nowhere { name } if name == "c-serve-svc"));
    assert!(matches!(&off.ingress, Wanted::Nowhere { name } if name == "c-head-ingress"));
    assert!(matches!(off.route, Wanted::Untouched), "there are no Routes here");
    assert!(matches!(&off.role, Wanted::Nowhere { name } if name == "c"));
    assert!(matches!(&off.role_binding, Wanted::Nowhere { name } if name == "c"));
    assert!(matches!(&off.service_account, Wanted::Nowhere { name } if name == "c"));
    assert_eq!(off.auth_secret, nowhere("c"));
    assert!(matches!(off.gcs_claim, Wanted::Untouched), "what holds state is never deleted");

    let on = children(
        json!({
            "enableInTreeAutoscaling": true,
            "authOptions": { "mode": "token" },
            "headGroupSpec": { "enableIngress": true, "template": { "spec": { "containers": [{ "name": "ray" }] } } },
            "workerGroupSpecs": [with(group("a", 1), json!({ "numOfHosts": 2 }))],
            "gcsFaultToleranceOptions": { "backend": "rocksdb" },
        }),
        &Settings::default(),
    );
    assert!(matches!(on.headless_service, Wanted::Here(_)) && matches!(on.ingress, Wanted::Here(_)));
    assert!(
        matches!(on.role, Wanted::Here(_)) && matches!(on.role_binding, Wanted::Here(_)) && matches!(on.service_account, Wanted::Here(_))
    );
    assert!(matches!(on.auth_secret, Wanted::Here(_)) && matches!(on.gcs_claim, Wanted::Here(_)));
}

#[test]
fn rc_140_on_openshift_a_route_takes_the_place_of_the_ingress() {
    let spec = json!({ "headGroupSpec": { "enableIngress": true, "template": { "spec": { "containers": [{ "name": "ray" }] } } } });
    for (ingress_wanted, is_route) in [(false, true), (true, false)] {
        let mut settings = Settings::default();
        settings.platform.openshift = true;
        settings.switches.ingress_on_openshift = ingress_wanted;
        let children = plan(&observed(cluster(&[], spec.clone()), &[]), &mut Default::default(), &settings, at(0)).children;
        assert_eq!(matches!(children.route, Wanted::Here(_)), is_route);
        assert_eq!(matches!(children.ingress, Wanted::Here(_)), !is_route);
    }
}

#[test]
fn an_account_that_the_user_names_is_the_users() {
    let head = json!({ "template": { "spec": { "serviceAccountName": "mine", "containers": [{ "name": "ray" }] } } });
    let plan = plan_once(cluster(&[], json!({ "enableInTreeAutoscaling": true, "headGroupSpec": head })), &[]);
    assert!(matches!(plan.children.service_account, Wanted::Untouched));
    assert!(matches!(plan.children.role, Wanted::Here(_)));
}

#[test]
fn a_token_stays_as_long_as_pods_may_use_it() {
    let plan = plan_once(cluster(&[], json!({})), &[P::head("h")]);
    assert_eq!(plan.children.auth_secret, Wanted::Untouched);
}

#[test]
fn rc_135_a_serve_service_that_cannot_be_built_does_not_hold_the_pods() {
    let ports = json!({ "template": { "spec": { "containers": [{ "name": "ray", "ports": [{ "containerPort": 1, "name": "x" }] }] } } });
    let cluster = annotated(cluster(&[], json!({ "headGroupSpec": ports })), annotation::ENABLE_SERVE_SERVICE, "true");
    let plan = plan_once(cluster, &[]);
    assert!(plan.pods.create_head.is_some());
    assert_eq!(plan.notes.iter().map(|note| note.reason).collect::<Vec<_>>(), ["FailedToCreateService"]);
}

#[test]
fn rc_102_restart_policies_that_autoscaler_v1_does_not_like_are_mentioned() {
    let restarting = |policy: &str| {
        let template = json!({ "spec": { "restartPolicy": policy, "containers": [{ "name": "ray" }] } });
        with(group("a", 1), json!({ "template": template }))
    };
    let table = [("Always", "v1", 1), ("OnFailure", "v1", 1), ("Never", "v1", 0), ("Always", "v2", 0)];
    for (policy, version, notes) in table {
        let spec = json!({ "enableInTreeAutoscaling": true, "autoscalerOptions": { "version": version } });
        let plan = plan_once(cluster(&[restarting(policy)], spec), &[]);
        assert_eq!(plan.notes.len(), notes, "{policy} {version}");
        assert!(plan.pods.create_head.is_some());
    }
}
