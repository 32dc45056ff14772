//! Objects as large and as odd as a request may be: an answer, bounded in size, in a time that grows with the input and no faster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests are tests

use serde_json::{Value, json};
use shared::{
    defaults::{self, Settings},
    features::FeatureGates,
    validation::{self, Kind, Report, Request},
};

/// Judges the object as CREATE and as UPDATE, and returns the answer to the CREATE.
fn judge(kind: Kind, object: &Value) -> Report {
    let gates: FeatureGates = "AllAlpha=true".parse().unwrap();
    let mut filled = object.clone();
    defaults::apply(kind, &mut filled, None, &Settings::default());
    let report = validation::validate(&Request::create(kind, &filled, &gates));
    let mut edited = filled.clone();
    edited["spec"]["rayVersion"] = json!("2.9.0");
    defaults::apply(kind, &mut edited, Some(&filled), &Settings::default());
    let update = validation::validate(&Request::create(kind, &edited, &gates).update(&filled));
    for report in [&report, &update] {
        let text: usize = report.errors.iter().map(|error| error.path.len() + error.message.len()).sum();
        let advice: usize = report.warnings.iter().map(|warning| warning.path.len() + warning.message.len()).sum();
        assert!(text + advice < 1_000_000, "the answer has {text} + {advice} bytes");
        assert!(validation::render(report, 32).len() < 40_000);
    }
    report
}

fn cluster(groups: Vec<Value>) -> Value {
    json!({"metadata": {"name": "c"}, "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h"}]}}}, "workerGroupSpecs": groups}})
}

#[test]
fn ten_thousand_groups() {
    let group = |name: String| json!({"groupName": name, "minReplicas": 0, "maxReplicas": 1, "template": {"spec": {"containers": [{"name": "w"}]}}});
    assert!(judge(Kind::RayCluster, &cluster((0..10_000).map(|index| group(format!("g{index}"))).collect())).allowed());
    let twins = judge(Kind::RayCluster, &cluster((0..10_000).map(|_| group("same".into())).collect()));
    assert_eq!(twins.errors.len() + twins.omitted, 9_999);
    let rules: Vec<_> = (0..10_000).map(|index| json!({"groupName": format!("x{index}")})).collect();
    let mut policy = cluster((0..10_000).map(|index| group(format!("g{index}"))).collect());
    policy["spec"]["networkPolicy"] = json!({"workerGroups": rules});
    let report = judge(Kind::RayCluster, &policy);
    assert_eq!(report.errors.len() + report.omitted, 10_000);
}

#[test]
fn texts_of_a_megabyte() {
    let long = "x".repeat(1 << 20);
    let object = json!({"metadata": {"name": long, "annotations": {"ray.io/ft-enabled": long}}, "spec": {
        "entrypoint": long, "submissionMode": long, "jobId": long, "runtimeEnvYAML": long, "entrypointResources": long,
        "clusterSelector": {long.clone(): long}, "deletionStrategy": {"onSuccess": {"policy": long}},
        "rayClusterSpec": {"rayVersion": long, "upgradeStrategy": {"type": long}, "headGroupSpec": {
            "serviceType": long, "labels": {long.clone(): long}, "resources": {long.clone(): long}, "rayStartParams": {"resources": long, "num-cpus": long, long.clone(): long},
            "template": {"spec": {"restartPolicy": long, "containers": [{"name": long, "image": long, "env": [{"name": long, "value": long}], "resources": {"limits": {long.clone(): long}}}]}}},
            "workerGroupSpecs": [{"groupName": long}]},
    }});
    assert!(judge(Kind::RayJob, &object).errors.len() > 10);
    let object = json!({"metadata": {"name": "s", "annotations": {"ray.io/initializing-timeout": long}}, "spec": {"serveConfigV2": long, "schedule": long}});
    assert!(!judge(Kind::RayService, &object).allowed());
    let object = json!({"metadata": {"name": "s"}, "spec": {"schedule": long, "timeZone": long, "jobTemplate": {}}});
    assert!(!judge(Kind::RayCronJob, &object).allowed());
}

#[test]
fn embedded_texts_that_are_hard_to_read() {
    let texts = [
        "[".repeat(1 << 20),
        "{a: ".repeat(1 << 18),
        "- ".repeat(1 << 19),
        "a: &a [x]\n".to_owned() + &"b: [*a, *a, *a, *a]\n".repeat(3_000),
        "? ".repeat(1 << 19),
        format!("applications:\n{}", (0..8_000).map(|index| format!("- name: a{index}\n  route_prefix: /{index}\n")).collect::<String>()),
        format!("{{{}}}", (0..8_000).map(|index| format!("k{index}: 1, ")).collect::<String>()),
        "\"".repeat(1 << 20),
        "a:\n".to_owned() + &" ".repeat(1 << 20),
    ];
    for text in texts {
        judge(Kind::RayService, &json!({"metadata": {"name": "s"}, "spec": {"serveConfigV2": text}}));
        judge(Kind::RayJob, &json!({"metadata": {"name": "s"}, "spec": {"runtimeEnvYAML": text, "entrypointResources": text}}));
    }
}

#[test]
fn long_lists_in_one_pod() {
    let many = |name: &str| {
        (0..20_000).map(|index| json!({"name": format!("{name}{index}"), "mountPath": "/x", "value": "v"})).collect::<Vec<_>>()
    };
    let pod = json!({"containers": many("c"), "initContainers": many("i"), "volumes": many("v")});
    let mut object = cluster(Vec::new());
    object["spec"]["headGroupSpec"]["template"]["spec"] = pod;
    object["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!(many("m"));
    object["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = json!(many("e"));
    judge(Kind::RayCluster, &object);
    let rules: Vec<_> = (0..50_000)
        .map(|index| json!({"policy": format!("p{index}"), "condition": {"jobStatus": format!("s{index}"), "ttlSeconds": index}}))
        .collect();
    judge(Kind::RayJob, &json!({"metadata": {"name": "j"}, "spec": {"deletionStrategy": {"deletionRules": rules}}}));
}
