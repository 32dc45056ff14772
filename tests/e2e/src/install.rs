//! The node with both images, and the chart on it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use testcluster::{
    image::{self, Program},
    node::{self, Node},
    process,
    progress::Progress,
};
use tokio::process::Command;

use crate::show::Shell;

/// Environment variable that takes the programs' debug build: for work on them, since a release build of both takes minutes.
pub const DEBUG_VARIABLE: &str = "KUBERAY_E2E_DEBUG";

/// Builds the images and brings a node up that has them, and Ray.
///
/// # Errors
/// When a build fails or the node does not come up.
pub async fn node(progress: &Progress) -> Result<Node> {
    let operator = archive(Program::Operator, progress).await?;
    let webhook = archive(Program::Webhook, progress).await?;
    let node = node::up(node::Options { progress: progress.clone(), ..node::Options::default() }).await?;
    load(&node, Program::Operator, &operator, progress).await?;
    load(&node, Program::Webhook, &webhook, progress).await?;
    Ok(node)
}

async fn archive(program: Program, progress: &Progress) -> Result<PathBuf> {
    if std::env::var_os(DEBUG_VARIABLE).is_some() {
        image::debug_program(program, progress).await
    } else {
        image::program(program, progress).await
    }
}

/// Loads an image, unless the node has it already. A node that was up may run an earlier build under the same name: it is restarted.
async fn load(node: &Node, program: Program, archive: &Path, progress: &Progress) -> Result<()> {
    let mark = node.dir().join(format!("{}.loaded", program.name()));
    let sum = process::run(Command::new("sha256sum").arg(archive)).await?;
    let earlier = std::fs::read_to_string(&mark).ok();
    if earlier.as_deref() == Some(&*sum) {
        return Ok(());
    }
    progress.step("loading an image", node.load_image(archive)).await?;
    if earlier.is_some() {
        // Fails where the chart is not installed, and then nothing runs.
        let _ = process::run(node.kubectl().args(["rollout", "restart", "deployment", deployment(program)])).await;
    }
    std::fs::write(&mark, sum).context("noting which image was loaded")
}

/// Name of the Deployment in the chart, and of its Pods' label.
fn deployment(program: Program) -> &'static str {
    match program {
        Program::Operator => "kuberay-operator",
        Program::Webhook => "kuberay-operator-webhook",
    }
}

/// Installs the chart as the guide does, and waits for both programs.
///
/// # Errors
/// When helm fails or a program does not become available.
pub async fn chart(shell: &Shell) -> Result<()> {
    chart_with(shell, &[]).await
}

/// The same with these feature gates besides the guide's.
///
/// # Errors
/// When helm fails or a program does not become available.
pub async fn chart_with(shell: &Shell, gates: &[&str]) -> Result<()> {
    let mut line = "helm upgrade --install kuberay-operator charts/kuberay-operator".to_owned();
    for (index, gate) in ["SidecarSubmitterRestart"].iter().chain(gates).enumerate() {
        line.push_str(&format!(" --set 'featureGates[{index}].name={gate}' --set 'featureGates[{index}].enabled=true'"));
    }
    shell.run(&line).await?;
    shell.run("kubectl rollout status deployment/kuberay-operator deployment/kuberay-operator-webhook --timeout=120s").await?;
    // Ready Pods are one thing, and the node's rules for their Service another: the webhook is there once it refuses something.
    let question = r"sed 's/^  submissionMode: SidecarMode$/&\n  submitterConfig: {backoffLimit: 5}/' examples/rayjob-sidecar-restart.yaml \
        | kubectl apply --dry-run=server -f -";
    shell.wait_for("the webhook answering", Duration::from_secs(60), question, |text| text.contains("spec.submitterConfig")).await?;
    Ok(())
}

/// Takes the chart and its definitions away, and checks that nothing of them is left.
///
/// # Errors
/// When something fails or stays.
pub async fn remove_chart(shell: &Shell) -> Result<()> {
    shell.run("helm uninstall kuberay-operator --wait").await?;
    shell.run("kubectl delete crd rayclusters.ray.io rayjobs.ray.io rayservices.ray.io raycronjobs.ray.io").await?;
    shell
        .wait_for(
            "the last Pods going",
            Duration::from_secs(60),
            "kubectl get pods,jobs,services,configmaps,secrets -n default --no-headers -o name",
            |names| names.lines().all(|name| matches!(name, "service/kubernetes" | "configmap/kube-root-ca.crt")),
        )
        .await?;
    Ok(())
}

/// One of the two programs, by the labels of its Pods.
#[derive(Clone, Copy, Debug)]
pub enum Installed {
    /// The operator.
    Operator,
    /// The webhook; all of its replicas.
    Webhook,
}

/// Kills a program's containers as `kill -9` does. The kubelet starts them again.
///
/// # Errors
/// When there is none.
pub async fn kill(node: &Node, shell: &Shell, program: Installed) -> Result<()> {
    let name = match program {
        Installed::Operator => "kuberay-operator",
        Installed::Webhook => "kuberay-operator-webhook",
    };
    let line = format!(
        "kubectl get pods -l app.kubernetes.io/name={name} -o jsonpath='{{range .items[*]}}{{.status.containerStatuses[0].containerID}}{{\"\\n\"}}{{end}}'"
    );
    let ids = shell.quiet(&line).await?;
    anyhow::ensure!(!ids.is_empty(), "no Pod of {name} runs");
    shell.say(&format!("$ # kill -9 {name}"));
    for id in ids.lines() {
        node.stop_container(id).await?;
    }
    Ok(())
}
