//! The Redis image: Debian's `redis-server` and `redis-cli` and a shell, with the libraries that they load and nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{Config, Image, Layer, debian, programs::libraries};
use crate::{
    cache::{Cache, Key},
    process,
    progress::Progress,
    versions,
};

/// Its name, one that manifests use. Ray asks no more of Redis than any release of these years has.
pub const REDIS_IMAGE: &str = "docker.io/library/redis:7.4";

const PACKAGES: &str = "redis-server";
/// Programs of the image. The shell is what manifests call that give Redis a configuration file.
const PROGRAMS: [&str; 3] = ["/usr/bin/redis-server", "/usr/bin/redis-cli", "/bin/sh"];
/// The user and group that Redis' own image has.
const OWNER: &str = "999:999";

/// The archive of the Redis image; made on first use (about a minute).
///
/// # Errors
/// Where this is not Linux as root, or the installation fails.
pub async fn redis(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let make = |to: PathBuf| async move {
        debian::in_work_folder(&to, cache, progress, |work| {
            let to = &to;
            async move { progress.step("making the Redis image", build(&work, to)).await }
        })
        .await
    };
    cache.entry(&Key::new("redis", versions::REDIS), "image.tar", progress, make).await
}

async fn build(work: &Path, to: &Path) -> Result<()> {
    let root = work.join("root");
    debian::install(&root, PACKAGES).await?;
    let version = process::run(debian::command(&root, "redis-server").arg("--version")).await?;
    ensure!(version.contains(&format!("v={}.", versions::REDIS)), "Debian {} has another Redis: {version}", versions::DEBIAN);
    let (layer, sha256) = pack(&root).await?;
    let config = Config {
        user: OWNER.to_owned(),
        command: vec!["redis-server".to_owned(), "--protected-mode".to_owned(), "no".to_owned()],
        environment: vec![format!("PATH={}", debian::PATH)],
        directory: "/data".to_owned(),
        ..Config::default()
    };
    Image { names: vec![REDIS_IMAGE.to_owned()], config, layer: Layer::Archive { path: layer, sha256 } }.write(to)
}

/// The layer and its checksum. The Debian itself packs it, because links are to be followed inside of it.
async fn pack(root: &Path) -> Result<(PathBuf, String)> {
    let linked = process::run(debian::command(root, "ldd").args(PROGRAMS)).await?;
    let mut files = libraries(&linked);
    files.extend(PROGRAMS.map(str::to_owned));
    files.sort_unstable();
    files.dedup();
    process::run(debian::command(root, "install").args(["--directory", "--owner=999", "--group=999", "/data"])).await?;
    let mut tar = debian::command(root, "tar");
    tar.args(debian::TAR).args(["--dereference", "--file=/layer.tar", "--directory=/", "data", "tmp"]);
    tar.args(files.iter().map(|file| file.trim_start_matches('/')));
    process::run(&mut tar).await?;
    let layer = root.join("layer.tar");
    let sha256 = debian::sha256(&layer).await.context("summing the layer up")?;
    Ok((layer, sha256))
}
