use serde_json::{Value, json};

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    [strategy(), legacy(), rules()].concat()
}

const AT: &str = "spec.deletionStrategy";

fn of(strategy: Value) -> Case {
    job(&json!({"deletionStrategy": strategy}))
}

fn rule(policy: &str, condition: Value) -> Value {
    json!({"policy": policy, "condition": condition})
}

fn on(status: &str, policy: &str, ttl: i64) -> Value {
    rule(policy, json!({"jobStatus": status, "ttlSeconds": ttl}))
}

fn strategy() -> Vec<Case> {
    let one = json!([on("SUCCEEDED", "DeleteCluster", 1)]);
    let both = json!({"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {"policy": "DeleteNone"}});
    vec![
        of(both.clone()),
        of(json!({"deletionRules": one})),
        of(json!({"deletionRules": one})).gates("RayJobDeletionPolicy=false").denied("V-J-6", AT),
        job(&json!({"shutdownAfterJobFinishes": true, "deletionStrategy": {"deletionRules": one}}))
            .denied("V-J-7", "spec.shutdownAfterJobFinishes"),
        of(merged(both, &json!({"deletionRules": one}))).denied("V-J-8", format!("{AT}.deletionRules")),
        of(json!({})).denied("V-J-9", AT),
        of(json!({"deletionRules": []})).denied("V-J-9", AT),
        // Inside a RayCronJob as well.
        cron(&json!({"jobTemplate": {"deletionStrategy": {}}})).denied("V-J-9", "spec.jobTemplate.deletionStrategy"),
    ]
}

fn legacy() -> Vec<Case> {
    let outcomes = |success: &str, failure: &str| json!({"onSuccess": {"policy": success}, "onFailure": {"policy": failure}});
    let selector =
        |strategy: Value| job(&json!({"rayClusterSpec": null, "clusterSelector": {"ray.io/cluster": "x"}, "deletionStrategy": strategy}));
    let autoscaling = |strategy: Value| job(&json!({"rayClusterSpec": {"enableInTreeAutoscaling": true}, "deletionStrategy": strategy}));
    let shutdown = |strategy: Value| job(&json!({"shutdownAfterJobFinishes": true, "deletionStrategy": strategy}));
    let (success, failure) = (format!("{AT}.onSuccess.policy"), format!("{AT}.onFailure.policy"));
    vec![
        of(json!({"onSuccess": {"policy": "DeleteSelf"}})).denied("V-J-10", format!("{AT}.onFailure")),
        of(json!({"onFailure": {"policy": "DeleteSelf"}})).denied("V-J-10", format!("{AT}.onSuccess")),
        of(json!({"onSuccess": {}, "onFailure": {"policy": "DeleteSelf"}})).denied("V-J-11", &success),
        selector(outcomes("DeleteSelf", "DeleteNone")),
        selector(outcomes("DeleteCluster", "DeleteWorkers")).denied("V-J-12", &success).denied("V-J-12", &failure),
        autoscaling(outcomes("DeleteCluster", "DeleteNone")),
        autoscaling(outcomes("DeleteCluster", "DeleteWorkers")).denied("V-J-13", &failure),
        of(outcomes("DeleteWorkers", "DeleteWorkers")),
        shutdown(outcomes("DeleteSelf", "DeleteWorkers")),
        shutdown(outcomes("DeleteNone", "DeleteSelf")).denied("V-J-14", &success),
        of(outcomes("DeleteNone", "DeleteNone")),
    ]
}

fn rules() -> Vec<Case> {
    let list = |rules: &[Value]| json!({"deletionRules": rules});
    let at = |path: &str| format!("{AT}.deletionRules{path}");
    let selector = |rules: &[Value]| {
        job(&json!({"rayClusterSpec": null, "clusterSelector": {"ray.io/cluster": "x"}, "deletionStrategy": list(rules)}))
    };
    let autoscaling = |rules: &[Value]| job(&json!({"rayClusterSpec": {"enableInTreeAutoscaling": true}, "deletionStrategy": list(rules)}));
    let failed = json!({"jobDeploymentStatus": "Failed"});
    vec![
        of(list(&[on("SUCCEEDED", "DeleteSelf", 0), rule("DeleteSelf", failed.clone())])),
        of(list(&[rule("DeleteSelf", json!({"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}))]))
            .denied("V-J-15", at("[0].condition")),
        of(list(&[rule("DeleteSelf", json!({"ttlSeconds": 1}))])).denied("V-J-16", at("[0].condition")),
        of(list(&[on("FAILED", "DeleteSelf", -1)])).denied("V-J-17", at("[0].condition.ttlSeconds")),
        selector(&[on("FAILED", "DeleteSelf", 1), on("FAILED", "DeleteNone", 1)]),
        selector(&[on("FAILED", "DeleteCluster", 1), on("FAILED", "DeleteWorkers", 1)])
            .denied("V-J-18", at("[0].policy"))
            .denied("V-J-18", at("[1].policy")),
        autoscaling(&[on("FAILED", "DeleteCluster", 1)]),
        autoscaling(&[on("FAILED", "DeleteWorkers", 1)]).denied("V-J-19", at("[0].policy")),
        of(list(&[on("FAILED", "DeleteCluster", 1), on("SUCCEEDED", "DeleteCluster", 1)])),
        of(list(&[on("FAILED", "DeleteCluster", 1), on("FAILED", "DeleteCluster", 9)])).denied("V-J-20", at("[1]")),
        of(list(&[rule("DeleteSelf", failed.clone()), rule("DeleteSelf", failed)])).denied("V-J-20", at("[1]")),
        of(list(&[
            on("FAILED", "DeleteWorkers", 5),
            on("FAILED", "DeleteCluster", 5),
            on("FAILED", "DeleteSelf", 5),
            on("FAILED", "DeleteNone", 0),
        ])),
        // C-15 a.
        of(list(&[on("FAILED", "DeleteCluster", 5), on("FAILED", "DeleteWorkers", 9)])).denied("V-J-21", at("[0].condition.ttlSeconds")),
        of(list(&[on("FAILED", "DeleteWorkers", 9), on("SUCCEEDED", "DeleteCluster", 5)])),
        of(list(&[on("FAILED", "DeleteSelf", 3), on("FAILED", "DeleteWorkers", 4)])).denied("V-J-21", at("[0].condition.ttlSeconds")),
        of(list(&[on("FAILED", "DeleteWorkers", 1), on("FAILED", "DeleteCluster", 9), on("FAILED", "DeleteSelf", 5)]))
            .denied("V-J-21", at("[2].condition.ttlSeconds")),
        // Every bad rule is named, and left out of the comparisons.
        of(list(&[on("FAILED", "DeleteCluster", -1), rule("DeleteSelf", json!({})), on("FAILED", "DeleteWorkers", 9)]))
            .denied("V-J-17", at("[0].condition.ttlSeconds"))
            .denied("V-J-16", at("[1].condition")),
    ]
}
