use serde_json::{Value, json};
use shared::validation::Kind::RayJob;

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    [end(), target(), sidecar(), submission(), submitter(), limits(), advice()].concat()
}

fn end() -> Vec<Case> {
    let rules = json!({"deletionRules": [{"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED"}}]});
    let legacy = json!({"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {"policy": "DeleteSelf"}});
    vec![
        job(&json!({})),
        job(&json!({"suspend": true})).denied("V-J-3", "spec.suspend"),
        job(&json!({"suspend": true, "shutdownAfterJobFinishes": true})),
        job(&json!({"suspend": false})),
        job(&json!({"suspend": true, "deletionStrategy": legacy})).denied("V-J-3", "spec.suspend"),
        job(&json!({"suspend": true, "deletionStrategy": rules})).warned("C-15", "spec.suspend"),
        job(&json!({"suspend": false, "deletionStrategy": rules})).not_warned("C-15"),
        job(&json!({"ttlSecondsAfterFinished": -1})).denied("V-J-4", "spec.ttlSecondsAfterFinished"),
        job(&json!({"ttlSecondsAfterFinished": 0})),
        job(&json!({"ttlSecondsAfterFinished": 1})).denied("V-J-5", "spec.ttlSecondsAfterFinished"),
        job(&json!({"ttlSecondsAfterFinished": 1, "shutdownAfterJobFinishes": true})),
        selected(json!({"suspend": true, "shutdownAfterJobFinishes": true})).denied("V-J-22", "spec.suspend"),
        selected(json!({"suspend": true})).denied("V-J-22", "spec.suspend"),
        selected(json!({"suspend": false})),
    ]
}

/// A job on a running cluster.
fn selected(patch: Value) -> Case {
    job(&merged(json!({"rayClusterSpec": null, "clusterSelector": {"ray.io/cluster": "shared"}}), &patch))
}

fn target() -> Vec<Case> {
    vec![
        job(&json!({"rayClusterSpec": null})).denied("V-J-23", "spec.rayClusterSpec"),
        job(&json!({"rayClusterSpec": null, "clusterSelector": {}})).denied("V-J-23", "spec.rayClusterSpec"),
        selected(json!({})),
        selected(json!({"clusterSelector": {"ray.io/cluster": ""}})).denied("V-J-24", "spec.clusterSelector[ray.io/cluster]"),
        selected(json!({"clusterSelector": {"ray.io/cluster": null, "app": "x"}})).denied("V-J-24", "spec.clusterSelector[ray.io/cluster]"),
        selected(json!({"submissionMode": "SidecarMode"})).denied("V-J-25", "spec.submissionMode"),
        selected(json!({"submissionMode": "HTTPMode"})),
        selected(json!({"backoffLimit": 1})).denied("V-J-26", "spec.backoffLimit"),
        selected(json!({"backoffLimit": 0})),
        job(&json!({"backoffLimit": 1})),
        job(&json!({"submissionMode": "InteractiveMode", "entrypoint": null, "backoffLimit": 1})).denied("V-J-27", "spec.backoffLimit"),
        job(&json!({"submissionMode": "InteractiveMode", "entrypoint": null, "backoffLimit": 0})),
        job(&json!({"submissionMode": "k8sjobmode"})).denied("C-11", "spec.submissionMode"),
        job(&json!({"submissionMode": ""})).denied("C-11", "spec.submissionMode"),
        job(&json!({"submissionMode": "K8sJobMode"})),
    ]
}

fn sidecar() -> Vec<Case> {
    let with = |patch: Value| job(&merged(json!({"submissionMode": "SidecarMode"}), &patch));
    let pod = |value: Value| json!({"rayClusterSpec": {"headGroupSpec": {"template": {"spec": value}}}});
    let two = |list: &str| json!({list: [container(&json!({"name": "x"})), container(&json!({"name": "ray-job-submitter"}))]});
    let at = |path: &str| format!("spec.rayClusterSpec.headGroupSpec.template.spec.{path}");
    vec![
        with(json!({})),
        with(json!({"submitterPodTemplate": template(&json!({}))})).denied("V-J-28", "spec.submitterPodTemplate"),
        with(json!({"submitterConfig": {}})).denied("V-J-29", "spec.submitterConfig"),
        with(json!({"submitterConfig": {"backoffLimit": 5}}))
            .gates("SidecarSubmitterRestart=true")
            .denied("V-J-29", "spec.submitterConfig"),
        with(pod(json!({"restartPolicy": "Never"}))),
        with(pod(json!({"restartPolicy": "Always"}))).denied("V-J-30", at("restartPolicy")),
        with(pod(json!({"restartPolicy": "OnFailure"}))).denied("V-J-30", at("restartPolicy")),
        job(&pod(json!({"restartPolicy": "Always"}))),
        with(pod(two("containers"))).denied("C-10", at("containers[1].name")),
        with(pod(two("initContainers"))).denied("C-10", at("initContainers[1].name")),
        job(&pod(two("containers"))),
    ]
}

fn submission() -> Vec<Case> {
    let mode = |mode: &str, entrypoint: Value| job(&json!({"submissionMode": mode, "entrypoint": entrypoint}));
    let command = |command: Value| json!({"entrypoint": null, "submitterPodTemplate": template(&json!({"command": command}))});
    let metadata = |version: Value, mode: &str| {
        job(&json!({"submissionMode": mode, "metadata": {"a": "b"}, "rayClusterSpec": {"rayVersion": version}}))
    };
    let mut cases = vec![
        mode("K8sJobMode", json!(null)).denied("N-J-1", "spec.entrypoint"),
        mode("K8sJobMode", json!("  ")).denied("N-J-1", "spec.entrypoint"),
        mode("HTTPMode", json!("")).denied("N-J-1", "spec.entrypoint"),
        mode("SidecarMode", json!("")).denied("N-J-1", "spec.entrypoint"),
        mode("InteractiveMode", json!(null)).not_warned("W-J-3"),
        mode("InteractiveMode", json!("x")).warned("W-J-3", "spec.entrypoint"),
        job(&command(json!(["/submitter"]))),
        job(&command(json!([]))).denied("N-J-1", "spec.entrypoint"),
        job(&json!({"runtimeEnvYAML": ""})),
        job(&json!({"runtimeEnvYAML": "# nothing\n"})),
        job(&json!({"runtimeEnvYAML": "pip: [a]\nenv_vars: {A: \"1\"}\n"})).not_warned("W-J-1"),
        job(&json!({"runtimeEnvYAML": "pip: [a]\npip: [b]\n"})).warned("W-J-1", "spec.runtimeEnvYAML"),
        job(&json!({"runtimeEnvYAML": "a: ["})).denied("V-J-33", "spec.runtimeEnvYAML"),
        job(&json!({"runtimeEnvYAML": "just text"})).denied("V-J-33", "spec.runtimeEnvYAML"),
        job(&json!({"runtimeEnvYAML": "- a\n- b"})).denied("V-J-33", "spec.runtimeEnvYAML"),
        job(&json!({"entrypointResources": ""})),
        job(&json!({"entrypointResources": "{\"x\": 1.5}"})),
        job(&json!({"entrypointResources": "{x: 1}"})).denied("N-J-2", "spec.entrypointResources"),
        job(&json!({"entrypointResources": "{\"x\": \"1\"}"})).denied("N-J-2", "spec.entrypointResources"),
        job(&json!({"entrypointResources": "[1]"})).denied("N-J-2", "spec.entrypointResources"),
        job(&json!({"entrypointNumCpus": 0, "entrypointNumGpus": 0.5})),
        job(&json!({"entrypointNumCpus": -0.5})).denied("N-J-3", "spec.entrypointNumCpus"),
        job(&json!({"entrypointNumGpus": -1})).denied("N-J-3", "spec.entrypointNumGpus"),
        metadata(json!("2.6.0"), "K8sJobMode"),
        metadata(json!(null), "K8sJobMode"),
        metadata(json!("2.5.9"), "K8sJobMode").denied("N-J-4", "spec.metadata"),
        metadata(json!("nightly"), "SidecarMode").denied("N-J-4", "spec.metadata"),
        metadata(json!("2.5.9"), "HTTPMode"),
        Case::of(RayJob, merged(job_object(&json!({})), &json!({"status": {"jobDeploymentStatus": "Waiting"}})))
            .stored()
            .denied("V-J-37", "spec.submissionMode"),
        Case::of(
            RayJob,
            merged(job_object(&json!({"submissionMode": "InteractiveMode"})), &json!({"status": {"jobDeploymentStatus": "Waiting"}})),
        )
        .stored(),
    ];
    for id in ["job-1", "a.b_c:d", "42", ""] {
        cases.push(job(&json!({"jobId": id})));
    }
    for id in ["a; touch /tmp/p", "$(id)", "a b", "-x", "a/b", "ä", "a'b", "a\nb", ".a"] {
        cases.push(job(&json!({"jobId": id})).denied("C-49", "spec.jobId"));
    }
    cases
}

fn submitter() -> Vec<Case> {
    let pod = |value: Value| json!({"submitterPodTemplate": {"spec": value}});
    let policy = |policy: Value| job(&pod(json!({"restartPolicy": policy, "containers": [{"name": "s"}]})));
    let variable = |name: &str| job(&json!({"submitterPodTemplate": template(&env(name, "x"))}));
    vec![
        job(&pod(json!({"containers": []}))).denied("C-08", "spec.submitterPodTemplate.spec.containers"),
        job(&json!({"submitterPodTemplate": {}})).denied("C-08", "spec.submitterPodTemplate.spec.containers"),
        policy(json!(null)),
        policy(json!("Never")),
        policy(json!("OnFailure")),
        policy(json!("Always")).denied("C-09", "spec.submitterPodTemplate.spec.restartPolicy"),
        job(&json!({"submitterConfig": {"backoffLimit": 0}})),
        job(&json!({"submitterConfig": {"backoffLimit": -1}})).denied("N-J-5", "spec.submitterConfig.backoffLimit"),
        // Where there is no submitter Pod the template does nothing, and no harm.
        job(&json!({"submissionMode": "HTTPMode", "submitterPodTemplate": {"spec": {"containers": []}}, "submitterConfig": {}}))
            .warned("W-J-2", "spec.submitterPodTemplate")
            .warned("W-J-2", "spec.submitterConfig"),
        policy(json!("Never")).not_warned("W-J-2"),
        variable("RAY_JOB_SUBMISSION_ID").warned("W-J-6", "spec.submitterPodTemplate.spec.containers[0].env"),
        variable("OTHER").not_warned("W-J-6"),
    ]
}

fn limits() -> Vec<Case> {
    let mut cases = vec![
        job(&json!({"backoffLimit": -1})).denied("V-J-36", "spec.backoffLimit"),
        // C-12: all of them in one answer.
        job(&json!({"activeDeadlineSeconds": 0, "preRunningDeadlineSeconds": -1, "backoffLimit": -1}))
            .denied("V-J-34", "spec.activeDeadlineSeconds")
            .denied("V-J-35", "spec.preRunningDeadlineSeconds")
            .denied("V-J-36", "spec.backoffLimit"),
    ];
    for (field, rule) in [("activeDeadlineSeconds", "V-J-34"), ("preRunningDeadlineSeconds", "V-J-35")] {
        cases.push(job(&json!({field: 1})));
        cases.push(job(&json!({field: 0})).denied(rule, format!("spec.{field}")));
    }
    cases
}

fn advice() -> Vec<Case> {
    let ports = |names: &[&str]| {
        let ports: Vec<_> = names.iter().map(|name| json!({"name": name, "containerPort": 1})).collect();
        job(&json!({"rayClusterSpec": {"headGroupSpec": {"template": template(&json!({"ports": ports}))}}}))
    };
    vec![
        job(&json!({"clusterSelector": {"ray.io/cluster": "x"}})).warned("W-J-4", "spec.rayClusterSpec"),
        selected(json!({})).not_warned("W-J-4").not_warned("W-J-5"),
        job(&json!({"rayClusterSpec": {"workerGroupSpecs": []}})).warned("W-J-5", "spec.rayClusterSpec.workerGroupSpecs"),
        job(&json!({})).not_warned("W-J-5").not_warned("W-J-8"),
        job(&json!({"rayClusterSpec": {"suspend": true}})).warned("W-J-7", "spec.rayClusterSpec.suspend"),
        ports(&["gcs-server"]).warned("W-J-8", "spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].ports"),
        ports(&["gcs-server", "dashboard"]).not_warned("W-J-8"),
        selected(json!({"clusterSelector": {"app": "x"}})).warned("W-J-9", "spec.clusterSelector[app]"),
        selected(json!({})).not_warned("W-J-9"),
        job(&json!({"rayClusterSpec": {"headGroupSpec": {"rayStartParams": {"dashboard-host": "127.0.0.1", "include-dashboard": "false"}}}}))
            .warned("W-J-10", "spec.rayClusterSpec.headGroupSpec.rayStartParams[dashboard-host]")
            .warned("W-J-10", "spec.rayClusterSpec.headGroupSpec.rayStartParams[include-dashboard]"),
        job(&json!({"rayClusterSpec": {"headGroupSpec": {"rayStartParams": {"dashboard-host": "0.0.0.0", "include-dashboard": "true"}}}})).not_warned("W-J-10"),
    ]
}
