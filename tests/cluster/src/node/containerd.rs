//! The node's container runtime, and the store of images that outlives the node.
//!
//! Unpacking the Ray image takes longer than everything else together, so containerd's store stays in the cache. Its metadata file is
//! copied right after the images were imported and put back before every start: containers of an earlier node, however that ended, are
//! unknown then, and containerd's own garbage collection removes their files.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{
    components::in_node,
    layout::{CONTAINERD_SOCKET, Paths},
    namespaces::Namespaces,
};
use crate::{cache, image::PAUSE_IMAGE, process, process::Daemon, progress::Progress, wait};

/// Starts containerd with these images in its store.
pub(super) async fn start_with_images(paths: &Paths, namespaces: &Namespaces, images: &[PathBuf], progress: &Progress) -> Result<Daemon> {
    let store = Store::new(paths, images)?;
    if store.restore()? {
        match start(paths, namespaces).await {
            Ok(daemon) => return Ok(daemon),
            Err(error) => progress.say(&format!("the store of images is damaged and made anew ({error:#})")),
        }
    }
    store.wipe()?;
    let mut importing = start(paths, namespaces).await?;
    for archive in images {
        import(namespaces, archive).await?;
    }
    importing.kill().await?;
    store.keep()?;
    start(paths, namespaces).await
}

/// Whether the store holds these images already; importing them takes a quarter of a minute.
pub(super) fn has_images(paths: &Paths, images: &[PathBuf]) -> Result<bool> {
    Ok(Store::new(paths, images)?.is_current())
}

async fn start(paths: &Paths, namespaces: &Namespaces) -> Result<Daemon> {
    let file = paths.config("containerd.toml");
    fs::write(&file, config(paths)).with_context(|| format!("writing {}", file.display()))?;
    let mut command = in_node(paths, namespaces, "containerd");
    command.arg("--config").arg(&file);
    let mut daemon = Daemon::spawn(&paths.dir, "containerd", command)?;
    wait::until("containerd's first answer", Duration::from_secs(30), || {
        let running = daemon.check();
        async move {
            running?;
            Ok(process::run(ctr(namespaces).arg("version")).await.ok())
        }
    })
    .await?;
    Ok(daemon)
}

/// Loads an archive into the store.
pub(super) async fn import(namespaces: &Namespaces, archive: &Path) -> Result<()> {
    let archive = fs::canonicalize(archive).with_context(|| format!("no image archive at {}", archive.display()))?;
    process::run(ctr(namespaces).args(["images", "import"]).arg(archive)).await?;
    Ok(())
}

/// Kills the first process of a container.
pub(super) async fn kill(namespaces: &Namespaces, id: &str) -> Result<()> {
    let id = id.trim_start_matches("containerd://");
    process::run(ctr(namespaces).args(["tasks", "kill", "--signal=SIGKILL", id])).await?;
    Ok(())
}

/// containerd's client, looking at what the kubelet made.
fn ctr(namespaces: &Namespaces) -> Command {
    let mut command = namespaces.command("ctr");
    command.args(["--address", CONTAINERD_SOCKET, "--namespace=k8s.io"]);
    command
}

fn config(paths: &Paths) -> String {
    let (root, cni) = (paths.images.join("store"), paths.dir.join("config/cni"));
    format!(
        r#"version = 2
root = {root:?}
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
# Machines without CAP_SYS_RESOURCE refuse a lower OOM score, and then every sandbox fails.
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true
stream_server_address = "127.0.0.1"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = {cni:?}

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"#
    )
}

/// containerd's store on disk.
struct Store {
    dir: PathBuf,
    /// Says which archives are in it: another path, size or time of change makes another text.
    contents: String,
}

impl Store {
    fn new(paths: &Paths, images: &[PathBuf]) -> Result<Self> {
        let describe = |path: &PathBuf| {
            let meta = fs::metadata(path).with_context(|| format!("no image archive at {}", path.display()))?;
            Ok(format!("{} {} {}.{:09}\n", path.display(), meta.len(), meta.mtime(), meta.mtime_nsec()))
        };
        Ok(Self { dir: paths.images.clone(), contents: images.iter().map(describe).collect::<Result<_>>()? })
    }

    fn metadata(&self) -> PathBuf {
        self.dir.join("store/io.containerd.metadata.v1.bolt/meta.db")
    }

    fn kept(&self) -> PathBuf {
        self.dir.join("meta.db")
    }

    fn list(&self) -> PathBuf {
        self.dir.join("contents")
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(self.list()).ok().as_deref() == Some(&self.contents)
    }

    /// Puts the metadata back as it was after the import. False where the store holds other images or none.
    fn restore(&self) -> Result<bool> {
        if !self.is_current() {
            return Ok(false);
        }
        fs::copy(self.kept(), self.metadata()).context("restoring the store of images")?;
        Ok(true)
    }

    fn wipe(&self) -> Result<()> {
        cache::remove(&self.dir)?;
        fs::create_dir_all(&self.dir).with_context(|| format!("creating {}", self.dir.display()))
    }

    /// Copies the metadata while containerd is down. The list comes last: without it the store counts for nothing.
    fn keep(&self) -> Result<()> {
        fs::copy(self.metadata(), self.kept()).context("keeping the store of images")?;
        fs::write(self.list(), &self.contents).context("keeping the list of images")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn a_store_is_used_again_only_for_the_same_archives() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Cache::at(dir.path().to_owned()));
        let archive = dir.path().join("image.tar");
        fs::write(&archive, "one").unwrap();
        let store = Store::new(&paths, std::slice::from_ref(&archive)).unwrap();
        assert!(!store.restore().unwrap(), "nothing there yet");
        store.wipe().unwrap();
        fs::create_dir_all(store.metadata().parent().unwrap()).unwrap();
        fs::write(store.metadata(), "after the import").unwrap();
        store.keep().unwrap();
        fs::write(store.metadata(), "with containers").unwrap();
        assert!(store.restore().unwrap());
        assert_eq!(fs::read_to_string(store.metadata()).unwrap(), "after the import");
        fs::write(&archive, "another").unwrap();
        assert!(!Store::new(&paths, &[archive]).unwrap().restore().unwrap(), "the archive changed");
    }
}
