use serde_json::{Value, json};
use shared::validation::Kind::RayService;

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    [timeouts(), fields(), upgrade(), serve_config(), applications(), advice()].concat()
}

fn annotated(key: &str, value: &str) -> Case {
    Case::of(RayService, merged(service_object(&json!({})), &json!({"metadata": {"annotations": {key: value}}})))
}

fn timeouts() -> Vec<Case> {
    let at = "metadata.annotations[ray.io/initializing-timeout]";
    let timeout = |value: &str| annotated("ray.io/initializing-timeout", value);
    let mut cases: Vec<Case> = ["", "300", "1.5h", "1ns", "5m"].into_iter().map(timeout).collect();
    cases.extend(["0", "0s", "-5", "-1m", "soon", "1.5", "5 m"].into_iter().map(|value| timeout(value).denied("V-S-3", at)));
    cases
}

fn fields() -> Vec<Case> {
    let head_service = |value: Value| service(&json!({"rayClusterConfig": {"headGroupSpec": {"headService": value}}}));
    let serve_service = |name: &str| service(&json!({"serveService": {"metadata": {"name": name}}}));
    vec![
        service(&json!({})),
        service(&json!({"rayClusterConfig": null})).denied("V-S-5", "spec.rayClusterConfig"),
        service(&json!({"rayClusterConfig": {"rayVersion": "2.55.0", "authOptions": {"mode": "token", "enableK8sTokenAuth": true}}}))
            .denied("V-S-4", "spec.rayClusterConfig.authOptions.enableK8sTokenAuth"),
        head_service(json!({"metadata": {"labels": {"a": "b"}}})),
        head_service(json!({"metadata": {"name": "x"}})).denied("V-S-6", "spec.rayClusterConfig.headGroupSpec.headService.metadata.name"),
        service(&json!({"rayClusterDeletionDelaySeconds": 0})),
        service(&json!({"rayClusterDeletionDelaySeconds": -1})).denied("V-S-8", "spec.rayClusterDeletionDelaySeconds"),
        serve_service("s-serve-svc"),
        serve_service("s-head-svc").denied("N-S-1", "spec.serveService.metadata.name"),
        service(&json!({"rayClusterConfig": {"workerGroupSpecs": [group("headgroup", &json!({}))]}}))
            .denied("C-02", "spec.rayClusterConfig.workerGroupSpecs[0].groupName"),
    ]
}

fn upgrade() -> Vec<Case> {
    let incremental = |options: Value, autoscaling: bool| {
        let base = json!({"stepSizePercent": 10, "intervalSeconds": 1, "gatewayClassName": "g", "maxSurgePercent": 10});
        let strategy = json!({"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": merged(base, &options)});
        service(&json!({"upgradeStrategy": strategy, "rayClusterConfig": {"enableInTreeAutoscaling": autoscaling}}))
    };
    let of = |options: Value| incremental(options, true);
    let at = |field: &str| format!("spec.upgradeStrategy.clusterUpgradeOptions.{field}");
    let kind = |kind: &str| service(&json!({"upgradeStrategy": {"type": kind}}));
    let bare =
        json!({"upgradeStrategy": {"type": "NewClusterWithIncrementalUpgrade"}, "rayClusterConfig": {"enableInTreeAutoscaling": true}});
    vec![
        kind("NewCluster"),
        kind("None"),
        kind("Recreate").denied("V-S-7", "spec.upgradeStrategy.type"),
        kind("").denied("V-S-7", "spec.upgradeStrategy.type"),
        of(json!({})).not_warned("W-S-6"),
        incremental(json!({}), false).denied("V-S-9", "spec.rayClusterConfig.enableInTreeAutoscaling"),
        service(&bare).denied("V-S-10", "spec.upgradeStrategy.clusterUpgradeOptions"),
        service(&bare).gates("RayServiceIncrementalUpgrade=false").warned("W-S-6", "spec.upgradeStrategy.type"),
        of(json!({"maxSurgePercent": 100})),
        of(json!({"maxSurgePercent": null, "stepSizePercent": 100})),
        of(json!({"maxSurgePercent": 101})).denied("V-S-11", at("maxSurgePercent")),
        of(json!({"maxSurgePercent": -1})).denied("V-S-11", at("maxSurgePercent")),
        of(json!({"maxSurgePercent": 0})).denied("C-16", at("maxSurgePercent")),
        of(json!({"stepSizePercent": null})).denied("V-S-12", at("stepSizePercent")),
        of(json!({"stepSizePercent": -1})).denied("V-S-12", at("stepSizePercent")),
        of(json!({"stepSizePercent": 101})).denied("V-S-12", at("stepSizePercent")),
        of(json!({"stepSizePercent": 0})).denied("C-16", at("stepSizePercent")),
        of(json!({"stepSizePercent": 1})),
        of(json!({"stepSizePercent": 11})).denied("V-S-13", at("stepSizePercent")),
        of(json!({"intervalSeconds": 0})).denied("V-S-14", at("intervalSeconds")),
        of(json!({"intervalSeconds": null})).denied("V-S-14", at("intervalSeconds")),
        of(json!({"gatewayClassName": ""})).denied("V-S-15", at("gatewayClassName")),
        service(&json!({"upgradeStrategy": {"type": "NewCluster", "clusterUpgradeOptions": {}}}))
            .warned("W-S-5", "spec.upgradeStrategy.clusterUpgradeOptions"),
    ]
}

fn serve_config() -> Vec<Case> {
    let at = "spec.serveConfigV2";
    let config = |text: &str| service(&json!({"serveConfigV2": text}));
    let good = "applications: [{name: a, route_prefix: /a, import_path: m:a}, {name: b, route_prefix: /b, import_path: m:b}]";
    vec![
        config(good).not_warned("C-07").not_warned("W-S-1").not_warned("W-S-2").not_warned("W-S-3"),
        config("someday: 1\napplications: [{import_path: m:a, shiny: true}]"),
        config("").warned("C-07", at),
        config("# later\n").warned("C-07", at),
        config("{}").warned("C-07", at),
        config("applications: []").warned("C-07", at),
        config("applications:").warned("C-07", at),
        service(&json!({"serveConfigV2": null})).warned("C-07", at),
        config("applications: [ {name: a").denied("C-07", at),
        config("- just\n- a list").denied("C-07", at),
        config("text").denied("C-07", at),
        config("applications: 7").denied("C-07", at),
        config("applications: {a: b}").denied("C-07", at),
        config("applications: [a]").denied("C-07", at),
        config("applications: [{name: a, route_prefix: /a}, {name: a, route_prefix: /b}]").denied("C-07", at),
        config("applications: [{name: a, route_prefix: /a}, {name: b, route_prefix: /a}]").denied("C-07", at),
        // Ray's defaults count: the name `default` and the route `/`.
        config("applications: [{name: a}, {name: b}]").denied("C-07", at),
        config("applications: [{name: a}, {name: b, route_prefix: null}, {name: c, route_prefix: null}]"),
        config("applications: [{route_prefix: /a}, {name: default, route_prefix: /b}]").denied("C-07", at),
        config("applications: [{name: a}]\nrayClusterConfig: {rayVersion: 2.53.0}").warned("W-S-1", at),
        config("applications: [{name: a}]\nproxy_location: HeadOnly\nproxy_location: EveryNode").warned("W-S-2", at),
        config("applications: [{name: a, deployments: [{name: d, max_concurrent_queries: 5}]}]").warned("W-S-3", at),
        config("applications: [{name: a, deployments: [{name: d, max_ongoing_requests: 5}]}]").not_warned("W-S-3"),
    ]
}

/// What Ray itself refuses of an application, beside what every good one has.
fn applications() -> Vec<Case> {
    let application = |more: &str| {
        let text = format!("applications:\n- name: a\n  route_prefix: /a\n  import_path: m:a\n{more}");
        service(&json!({"serveConfigV2": text}))
    };
    let instead = |text: &str| service(&json!({"serveConfigV2": format!("applications:\n- {text}\n")}));
    let cases = [
        (instead("name: a"), true),
        (instead("import_path: ''"), true),
        (instead("import_path: 7"), true),
        (instead("import_path: m"), true),
        (instead("import_path: m.app"), false),
        (instead("{import_path: m:app, name: ''}"), true),
        (instead("{import_path: m:app, route_prefix: a}"), true),
        (instead("{import_path: m:app, route_prefix: null}"), false),
        (application(""), false),
        (application("  port: 8000\n"), true),
        (application("  host: 0.0.0.0\n"), true),
        (application("  runtime_env:\n    working_dir: ./code\n"), true),
        (application("  runtime_env:\n    working_dir: https://x.example/code.zip\n"), false),
        (application("  runtime_env:\n    py_modules: [\"s3://b/a.zip\", /local]\n"), true),
        (application("  runtime_env:\n    py_modules: [\"s3://b/a.zip\"]\n"), false),
        (application("  deployments:\n  - num_replicas: 1\n"), true),
        (application("  deployments:\n  - name: d\n    num_replicas: 1\n"), false),
        (application("  deployments:\n  - name: d\n    num_replicas: 0\n"), true),
        (application("  deployments:\n  - name: d\n    num_replicas: many\n"), true),
        (application("  deployments:\n  - name: d\n    num_replicas: 1\n    autoscaling_config: {max_replicas: 2}\n"), true),
        (application("  deployments:\n  - name: d\n    num_replicas: auto\n    autoscaling_config: {max_replicas: 2}\n"), false),
        (application("  deployments:\n  - name: d\n    ray_actor_options:\n      runtime_env:\n        working_dir: code\n"), true),
    ];
    let said = |(case, warned): (Case, bool)| if warned { case.warned("W-S-11", "spec.serveConfigV2") } else { case.not_warned("W-S-11") };
    cases.into_iter().map(said).collect()
}

fn advice() -> Vec<Case> {
    let ports = |names: &[&str]| {
        let ports: Vec<_> = names.iter().map(|name| json!({"name": name, "containerPort": 1})).collect();
        json!({"rayClusterConfig": {"headGroupSpec": {"template": template(&json!({"ports": ports}))}}})
    };
    let ports_at = "spec.rayClusterConfig.headGroupSpec.template.spec.containers[0].ports";
    let incremental = json!({
        "upgradeStrategy": {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": {"stepSizePercent": 1, "intervalSeconds": 1, "gatewayClassName": "g"}},
        "rayClusterConfig": {"enableInTreeAutoscaling": true},
    });
    vec![
        service(&json!({"serviceUnhealthySecondThreshold": 9})).warned("W-S-4", "spec.serviceUnhealthySecondThreshold"),
        service(&ports(&["dashboard"])).warned("W-S-7", ports_at),
        service(&ports(&["dashboard", "serve"])).not_warned("W-S-7").not_warned("W-J-8"),
        service(&ports(&["dashboard", "serve-grpc"])).not_warned("W-S-7"),
        service(&merged(ports(&["dashboard"]), &json!({"serveService": {"spec": {}}}))).not_warned("W-S-7"),
        service(&ports(&["serve"])).warned("W-J-8", ports_at),
        service(&merged(incremental, &json!({"serveService": {"spec": {}}}))).warned("W-S-8", "spec.serveService"),
        service(&json!({"serveService": {"spec": {}}})).not_warned("W-S-8"),
        service(&json!({"excludeHeadPodFromServeSvc": true, "rayClusterConfig": {"workerGroupSpecs": []}}))
            .warned("W-S-9", "spec.excludeHeadPodFromServeSvc"),
        service(&json!({"excludeHeadPodFromServeSvc": true})).not_warned("W-S-9"),
        annotated("ray.io/enable-serve-service", "true").warned("W-S-10", "metadata.annotations[ray.io/enable-serve-service]"),
    ]
}
