//! Definitions of other projects, from their Go modules: the charts make objects of these kinds, too.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use testcluster::wait;

use crate::Server;
use crate::scene::PATIENCE;

/// A Go module, pinned by version and checksum.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    path: &'static str,
    version: &'static str,
    sum: &'static str,
    /// Definitions in it, as paths inside the module.
    definitions: &'static [&'static str],
}

/// Certificate, Issuer, and what its controllers need besides.
pub const CERT_MANAGER: Module = Module {
    path: "github.com/cert-manager/cert-manager",
    version: "v1.21.2",
    sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    definitions: &[
        "deploy/crds/cert-manager.io_certificates.yaml",
        "deploy/crds/cert-manager.io_issuers.yaml",
        "deploy/crds/cert-manager.io_clusterissuers.yaml",
        "deploy/crds/cert-manager.io_certificaterequests.yaml",
    ],
};

/// ServiceMonitor, PodMonitor and PrometheusRule.
pub const PROMETHEUS_OPERATOR: Module = Module {
    path: "github.com/prometheus-operator/prometheus-operator",
    version: "v0.85.0",
    sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
    definitions: &[
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ],
};

impl Module {
    /// Installs the module's CustomResourceDefinitions and waits until their kinds are served.
    ///
    /// # Errors
    /// As [`Module::definitions`], and when kubectl fails.
    pub async fn install(&self, server: &Server) -> Result<()> {
        let kubectl = |arguments: &[&str], file: &PathBuf| {
            let mut kubectl = server.instance().kubectl();
            kubectl.args(arguments).arg("--filename").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
            kubectl
        };
        for file in self.definitions()? {
            let applied = kubectl(&["apply", "--server-side"], &file).status().await?;
            ensure!(applied.success(), "applying {}", file.display());
            // Right after that there is no status to wait on, which kubectl takes for an error.
            wait::until(&format!("the kinds of {}", file.display()), PATIENCE, || async {
                let served = kubectl(&["wait", "--for=condition=Established", "--timeout=30s"], &file).status().await?;
                Ok(served.success().then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// Files of the module's CustomResourceDefinitions, downloaded if they are missing.
    ///
    /// # Errors
    /// When `go` is missing, the download fails, or its checksum is not the pinned one.
    pub fn definitions(&self) -> Result<Vec<PathBuf>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Download {
            dir: PathBuf,
            sum: String,
        }
        // Outside every module, so that none of the work tree's says which version it is.
        let nowhere = tempfile::tempdir()?;
        let mut go = Command::new("go");
        go.current_dir(nowhere.path()).args(["mod", "download", "-json", &format!("{}@{}", self.path, self.version)]);
        let output = go.output().with_context(|| format!("running {go:?}"))?;
        if !output.status.success() {
            bail!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        }
        let download: Download = serde_json::from_slice(&output.stdout)?;
        if download.sum != self.sum {
            bail!("{} {} has the checksum {}, not {}", self.path, self.version, download.sum, self.sum);
        }
        Ok(self.definitions.iter().map(|file| download.dir.join(file)).collect())
    }
}
