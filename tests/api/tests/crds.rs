//! The chart's CustomResourceDefinitions at a real API server.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::path::PathBuf;
use std::process::Output;

use api_tests::server;

fn crds() -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/kuberay-operator/crds").display().to_string()
}

async fn kubectl(arguments: &[&str]) -> Output {
    server().instance().kubectl().args(arguments).output().await.unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn admit_definitions_by_client_side_and_server_side_apply() {
    for how in [&["apply", "-f"][..], &["apply", "--server-side", "--force-conflicts", "-f"]] {
        let folder = crds();
        let arguments: Vec<&str> = how.iter().copied().chain([folder.as_str()]).collect();
        let output = kubectl(&arguments).await;
        assert!(output.status.success(), "{}", text(&output));
        assert!(!text(&output).contains("Warning: unrecognized format"), "{}", text(&output));
    }
    let output = kubectl(&["wait", "--for=condition=Established", "--timeout=20s", "-f", &crds()]).await;
    assert!(output.status.success(), "{}", text(&output));
    let output = kubectl(&["get", "crd", "rayjobs.ray.io", "-o", "jsonpath={.status.conditions[?(@.type=='NonStructuralSchema')]}"]).await;
    assert_eq!(text(&output), "", "the schema is not structural");
}

#[tokio::test]
async fn admit_explain_says_what_a_field_is_for() {
    for (field, word) in [
        ("rayjob.spec.submissionMode", "SidecarMode"),
        ("raycluster.spec.workerGroupSpecs.minReplicas", "Lowest number"),
        ("rayservice.spec.serveConfigV2", "YAML"),
        ("raycronjob.spec.schedule", "five fields"),
    ] {
        let output = kubectl(&["explain", field]).await;
        assert!(text(&output).contains(word), "{field}: {}", text(&output));
    }
}

#[tokio::test]
async fn admit_pod_fields_of_a_current_cluster_are_kept() {
    let manifest = r#"{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "fields", "namespace": "default"}, "spec": {
        "headGroupSpec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            "containers": [{"name": "ray-head", "image": "ray", "restartPolicy": "OnFailure", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]}}}}}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.json");
    std::fs::write(&file, manifest).unwrap();
    let output = kubectl(&["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", &file.display().to_string()]).await;
    assert!(output.status.success(), "{}", text(&output));
    let stored: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let template = stored.pointer("/spec/headGroupSpec/template").unwrap();
    for pointer in [
        "/metadata/labels/a",
        "/spec/resourceClaims/0/name",
        "/spec/containers/0/restartPolicy",
        "/spec/containers/0/resizePolicy/0/resourceName",
    ] {
        assert!(template.pointer(pointer).is_some(), "{pointer} was pruned");
    }
}

#[tokio::test]
async fn admit_v1alpha1_is_served_with_a_warning_and_loses_nothing() {
    let manifest = r#"{"apiVersion": "ray.io/v1alpha1", "kind": "RayCluster", "metadata": {"name": "old", "namespace": "default"}, "spec": {
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray-head", "image": "ray"}]}}}}}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.json");
    std::fs::write(&file, manifest).unwrap();
    let output = kubectl(&["create", "-f", &file.display().to_string()]).await;
    assert!(output.status.success() && text(&output).contains("deprecated"), "{}", text(&output));
    let output =
        kubectl(&["get", "rayclusters.v1.ray.io", "old", "-o", "jsonpath={.spec.headGroupSpec.template.spec.containers[0].name}"]).await;
    assert_eq!(text(&output), "ray-head");
}
