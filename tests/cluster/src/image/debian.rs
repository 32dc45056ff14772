//! Images on a small Debian: installing one, running programs in it, packing it.

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::{
    cache::{self, Cache},
    fetch::{Tool, ensure_tools},
    platform, process,
    progress::Progress,
    versions,
};

const TOOLS: &[Tool] = &[("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("tar", "tar"), ("sha256sum", "coreutils")];
/// The path inside.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs `build` with an empty folder beside `to`, which is gone afterwards.
///
/// # Errors
/// Where this is not Linux as root, and whatever `build` fails with.
pub(super) async fn in_work_folder<F>(to: &Path, cache: &Cache, progress: &Progress, build: impl FnOnce(PathBuf) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    platform::require_linux_root()?;
    ensure_tools(TOOLS, cache, progress).await?;
    // A fixed name, so that what a killed run left is found and removed.
    let work = to.with_file_name(".work");
    cache::remove(&work)?;
    fs::create_dir_all(&work).context("creating a work folder")?;
    let result = build(work.clone()).await;
    cache::remove(&work)?;
    result
}

/// Installs Debian with some packages in `root`. In namespaces of its own, so that nothing of debootstrap stays behind when it is
/// interrupted: no mount, no process.
pub(super) async fn install(root: &Path, packages: &str) -> Result<()> {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "debootstrap", "--variant=minbase"])
        .arg(format!("--include={packages}"))
        .arg(versions::DEBIAN)
        .arg(root);
    process::run(&mut command).await?;
    Ok(())
}

/// A program of the Debian in `root`, with nothing of this machine's environment.
pub(super) fn command(root: &Path, program: &str) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).arg(program).env_clear().env("PATH", PATH).env("LANG", "C.UTF-8");
    command
}

/// Arguments of `tar` that make the same archive of the same files: fixed order, times and owners.
pub(super) const TAR: [&str; 4] = ["--create", "--sort=name", "--mtime=@0", "--numeric-owner"];

/// The SHA-256 of a file, in hexadecimal.
pub(super) async fn sha256(file: &Path) -> Result<String> {
    let sum = process::run(Command::new("sha256sum").arg(file)).await?;
    Ok(sum.split_ascii_whitespace().next().context("sha256sum printed nothing")?.to_owned())
}
