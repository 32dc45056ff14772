//! Programs built from Go modules. `go.sum` beside each `go.mod` is the check of what was downloaded.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::{
    cache::{Cache, Key},
    process,
    progress::Progress,
    versions,
};

/// One program of one Go module under `build/`.
pub(super) struct GoProgram {
    tool: &'static str,
    version: &'static str,
    package: &'static str,
    file: &'static str,
    /// Build tags, separated by commas.
    tags: &'static str,
}

pub(super) const ETCD: GoProgram = program("etcd", versions::ETCD, "go.etcd.io/etcd/server/v3", "etcd");
pub(super) const APISERVER: GoProgram = kubernetes("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver");
pub(super) const CONTROLLER_MANAGER: GoProgram = kubernetes("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager");
pub(super) const SCHEDULER: GoProgram = kubernetes("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler");
pub(super) const KUBELET: GoProgram = kubernetes("k8s.io/kubernetes/cmd/kubelet", "kubelet");
pub(super) const PROXY: GoProgram = kubernetes("k8s.io/kubernetes/cmd/kube-proxy", "kube-proxy");
pub(super) const COREDNS: GoProgram = program("coredns", versions::COREDNS, ".", "coredns");
pub(super) const KWOK: GoProgram = program("kwok", versions::KWOK, "sigs.k8s.io/kwok/cmd/kwok", "kwok");
pub(super) const KUBECONFORM: GoProgram =
    program("kubeconform", versions::KUBECONFORM, "github.com/yannh/kubeconform/cmd/kubeconform", "kubeconform");
pub(super) const CERT_MANAGER: GoProgram = program("cert-manager", versions::CERT_MANAGER, ".", "cert-manager");
/// Without the clients of every cloud, and without the pages for people.
pub(super) const PROMETHEUS: GoProgram = GoProgram {
    tags: "remove_all_sd",
    ..program("prometheus", versions::PROMETHEUS, "github.com/prometheus/prometheus/cmd/prometheus", "prometheus")
};
pub(super) const HELM3: GoProgram = program("helm3", versions::HELM3, "helm.sh/helm/v3/cmd/helm", "helm");
pub(super) const PAUSE: GoProgram = program("pause", versions::PAUSE, ".", "pause");

const fn program(tool: &'static str, version: &'static str, package: &'static str, file: &'static str) -> GoProgram {
    GoProgram { tool, version, package, file, tags: "" }
}

const fn kubernetes(package: &'static str, file: &'static str) -> GoProgram {
    program("kubernetes", versions::KUBERNETES, package, file)
}

impl GoProgram {
    /// The program's path in the cache; builds it if it is not there.
    pub(super) async fn ensure(&self, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
        let key = Key::new(self.tool, self.version);
        let source = super::sources().join(self.tool);
        let build = |to: PathBuf| async move {
            let mut command = go()?;
            command
                .current_dir(&source)
                .env("CGO_ENABLED", "0")
                .args([
                    "build",
                    "-mod=readonly",
                    "-buildvcs=false",
                    "-trimpath",
                    "-tags",
                    self.tags,
                    "-ldflags",
                    &self.linker_flags(),
                    "-o",
                ])
                .arg(&to)
                .arg(self.package);
            progress.step(&format!("building {} {}", self.file, self.version), process::run(&mut command)).await?;
            Ok(())
        };
        cache.entry(&key, self.file, progress, build).await
    }

    /// Strips the program. Kubernetes's programs and Helm take their version from the linker; without it they do not know it.
    fn linker_flags(&self) -> String {
        let mut flags = "-s -w".to_owned();
        if self.tool == HELM3.tool {
            flags.push_str(&format!(" -X helm.sh/helm/v3/internal/version.version=v{}", self.version));
        }
        if self.tool == "kubernetes" {
            let version = self.version;
            let mut parts = version.split('.');
            let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
            for (variable, value) in [
                ("k8s.io/component-base/version.gitVersion", format!("v{version}")),
                ("k8s.io/component-base/version.gitMajor", major.to_owned()),
                ("k8s.io/component-base/version.gitMinor", minor.to_owned()),
                ("k8s.io/component-base/version.gitTreeState", "clean".to_owned()),
                ("k8s.io/client-go/pkg/version.gitVersion", format!("v{version}")),
            ] {
                flags.push_str(&format!(" -X {variable}={value}"));
            }
        }
        flags
    }
}

fn go() -> Result<Command> {
    process::find_program("go").map(Command::new).context("Go 1.26 or newer builds the test cluster's programs, and no `go` is on the path")
}

/// KWOK's own stages for fast Pods and nodes with leases, from its module's folder, put into one file.
pub(super) async fn kwok_stages(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let make = |to: PathBuf| async move {
        let mut command = go()?;
        command.current_dir(super::sources().join("kwok")).args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]);
        let module = process::run(&mut command).await?;
        let stages = Path::new(module.trim()).join("kustomize/stage");
        let mut documents = Vec::new();
        for folder in ["node/fast", "node/heartbeat-with-lease", "pod/fast"] {
            documents.extend(stage_documents(&stages.join(folder))?);
        }
        fs::write(&to, documents.join("\n---\n")).with_context(|| format!("writing {}", to.display()))
    };
    cache.entry(&Key::new("kwok", versions::KWOK), "stages.yaml", progress, make).await
}

/// The YAML files of a folder in order of name, without kustomize's own.
fn stage_documents(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    files
        .into_iter()
        .filter(|file| {
            file.extension().is_some_and(|ext| ext == "yaml") && file.file_name().is_some_and(|name| name != "kustomization.yaml")
        })
        .map(|file| fs::read_to_string(&file).with_context(|| format!("reading {}", file.display())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_pinned_modules() {
        for (tool, module, version) in [
            ("etcd", "go.etcd.io/etcd/server/v3", versions::ETCD),
            ("kubernetes", "k8s.io/kubernetes", versions::KUBERNETES),
            ("coredns", "github.com/coredns/coredns", versions::COREDNS),
            ("kwok", "sigs.k8s.io/kwok", versions::KWOK),
            ("cert-manager", "github.com/cert-manager/cert-manager", versions::CERT_MANAGER),
            ("prometheus", "github.com/prometheus/prometheus", versions::PROMETHEUS),
            ("kubeconform", "github.com/yannh/kubeconform", versions::KUBECONFORM),
            ("helm3", "helm.sh/helm/v3", versions::HELM3),
        ] {
            let text = fs::read_to_string(crate::fetch::sources().join(tool).join("go.mod")).unwrap();
            let want = format!("require {module} v{version}");
            assert!(text.lines().any(|line| line == want), "{tool}/go.mod has no line `{want}`");
        }
    }

    #[test]
    fn kubernetes_gets_its_version_from_the_linker() {
        let flags = APISERVER.linker_flags();
        assert!(flags.contains("component-base/version.gitVersion=v1.35.4") && flags.contains("gitMinor=35"), "{flags}");
        assert_eq!(ETCD.linker_flags(), "-s -w");
    }
}
