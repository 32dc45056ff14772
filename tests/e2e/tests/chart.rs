//! The chart on a real node: installed where Pod Security is "restricted", upgraded, rolled back and uninstalled, with a RayCluster running
//! all the while.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::time::Duration;

use e2e_tests::install;
use e2e_tests::show::Shell;
use testcluster::progress::Progress;

const SYSTEM: &str = "kuberay-system";
const SOON: Duration = Duration::from_secs(120);
/// Uid and restarts of every Pod of the cluster.
const PODS: &str = r#"kubectl get pods -n chart-user -l ray.io/cluster=kept -o jsonpath='{range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}'"#;

/// Helm on the chart, as the documentation has it, with further arguments.
async fn helm(shell: &Shell, arguments: &str) {
    let line =
        format!("helm upgrade --install kuberay-operator charts/kuberay-operator --namespace {SYSTEM} --wait --timeout 180s {arguments}");
    let text = shell.run(&line).await.unwrap();
    assert!(!text.to_lowercase().contains("violate"), "Pod Security warns:\n{text}");
}

/// Waits until a RayCluster with a mistake is refused by the webhook.
async fn refuses(shell: &Shell) {
    let question = r#"kubectl create --dry-run=server -n chart-user -f - <<<'
{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"bad"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[]}}}}}'"#;
    shell.wait_for("the webhook answering", SOON, question, |text| text.contains("is invalid: ")).await.unwrap();
}

#[tokio::test]
async fn e2e_the_chart_is_installed_under_restricted_upgraded_rolled_back_and_uninstalled() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let node = install::node(&Progress::stderr()).await.unwrap();
    let shell = Shell::new(&node, true);
    // An earlier test may have left its release.
    shell.run("helm uninstall kuberay-operator --ignore-not-found --wait").await.unwrap();
    for namespace in [SYSTEM, "chart-user"] {
        shell.run(&format!("kubectl create namespace {namespace}")).await.unwrap();
    }
    let level = "pod-security.kubernetes.io";
    shell.run(&format!("kubectl label namespace {SYSTEM} {level}/enforce=restricted {level}/warn=restricted")).await.unwrap();

    helm(&shell, "").await;
    refuses(&shell).await;
    shell.run("kubectl apply -n chart-user -f tests/e2e/manifests/kept.yaml").await.unwrap();
    let ready = "kubectl get raycluster kept -n chart-user -o jsonpath='{.status.state}'";
    shell.wait_for("the cluster being ready", Duration::from_secs(180), ready, |state| state == "ready").await.unwrap();
    let pods = shell.quiet(PODS).await.unwrap();
    assert_eq!(pods.lines().count(), 1, "{pods}");

    // Other flags, another number of webhooks: both programs are replaced, one Pod after the other.
    helm(&shell, "--set reconcileConcurrency=4 --set webhook.replicas=3").await;
    refuses(&shell).await;
    let flags = shell.quiet(&format!("kubectl get deployment kuberay-operator -n {SYSTEM} -o jsonpath='{{..args}}'")).await.unwrap();
    assert!(flags.contains("--reconcile-concurrency=4"), "{flags}");
    shell.run(&format!("helm rollback kuberay-operator --namespace {SYSTEM} --wait --timeout 180s")).await.unwrap();
    refuses(&shell).await;

    // The operator that works now is a third process: it leads, and has taken the cluster over.
    shell.run("kubectl patch raycluster kept -n chart-user --type=merge -p '{\"metadata\":{\"labels\":{\"edited\":\"yes\"}},\"spec\":{\"suspend\":false}}'").await.unwrap();
    let seen = "kubectl get raycluster kept -n chart-user -o jsonpath='{.metadata.generation} {.status.observedGeneration}'";
    shell
        .wait_for("the operator having seen the edit", SOON, seen, |text| text.split_once(' ').is_some_and(|(wanted, seen)| wanted == seen))
        .await
        .unwrap();
    assert_eq!(shell.quiet(PODS).await.unwrap(), pods, "no Ray Pod was restarted or replaced");

    shell.run(&format!("helm uninstall kuberay-operator --namespace {SYSTEM} --wait")).await.unwrap();
    // Ray runs on without us, and nothing of ours is in its way.
    assert_eq!(shell.quiet(PODS).await.unwrap(), pods);
    let ours = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles,clusterrolebindings \
                -o name | grep -i -E 'kuberay|ray.io' || true";
    assert_eq!(shell.quiet(ours).await.unwrap(), "");
    let left = format!("kubectl get all,leases,secrets,configmaps,poddisruptionbudgets -n {SYSTEM} -o name");
    shell
        .wait_for("the release being gone", SOON, &left, |names| {
            names.lines().all(|name| name == "configmap/kube-root-ca.crt" || name.starts_with("lease.coordination.k8s.io/"))
        })
        .await
        .unwrap();
    shell.run(&format!("kubectl delete namespace {SYSTEM} chart-user --wait")).await.unwrap();
}
