//! The node with both images, and the chart on it.

use anyhow::Result;
use testcluster::{
    image::{self, Program},
    node::{self, Node},
    progress::Progress,
};

use crate::show::Shell;

/// Builds the images and brings a node up that has them, and Ray.
///
/// # Errors
/// When a build fails or the node does not come up.
pub async fn node(progress: &Progress) -> Result<Node> {
    let operator = image::program(Program::Operator, progress).await?;
    let webhook = image::program(Program::Webhook, progress).await?;
    let options = node::Options { progress: progress.clone(), images: vec![operator.clone(), webhook.clone()], ..node::Options::default() };
    let node = node::up(options).await?;
    // A node that was up already has the images of an earlier build.
    for archive in [&operator, &webhook] {
        progress.step("loading an image", node.load_image(archive)).await?;
    }
    Ok(node)
}

/// Installs the chart as the guide does, and waits for both programs.
///
/// # Errors
/// When helm fails or a program does not become available.
pub async fn chart(shell: &Shell) -> Result<()> {
    shell
        .run(
            "helm upgrade --install kuberay-operator charts/kuberay-operator \
             --set 'featureGates[0].name=SidecarSubmitterRestart' --set 'featureGates[0].enabled=true'",
        )
        .await?;
    shell.run("kubectl rollout status deployment/kuberay-operator deployment/kuberay-operator-webhook --timeout=120s").await?;
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
            std::time::Duration::from_secs(60),
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
