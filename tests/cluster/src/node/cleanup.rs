//! Taking a node down, from what it wrote down about itself: works after any crash, and twice.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::{
    cgroups,
    layout::{HOST_LINK, Paths},
    network, record,
};
use crate::{
    cache::{self, Cache},
    process::{kill_group, recorded},
    wait,
};

/// Ends everything of the node and removes it.
pub(super) async fn clear(paths: &Paths) -> Result<()> {
    let processes = recorded(&paths.dir);
    for (process, _) in &processes {
        kill_group(*process, Signal::KILL);
    }
    // The namespaces' processes die with their first one, and their mounts and network with the last.
    wait::until("the end of the node's processes", Duration::from_secs(20), || {
        let gone = processes.iter().all(|(process, _)| !process.alive());
        async move { Ok(gone.then_some(())) }
    })
    .await?;
    cgroups::remove().await?;
    wait::until("the end of the node's network", Duration::from_secs(20), || async move {
        // The kernel takes a network namespace apart in its own time; a link left by hand is removed here.
        if !link_exists() {
            return Ok(Some(()));
        }
        let _ = network::ip(&["link", "delete", HOST_LINK]).await;
        Ok(None)
    })
    .await?;
    record::restore(paths)?;
    cache::remove(&paths.dir)
}

/// Moves the logs of a failed start to where they survive, in place of those of an earlier failure.
pub(super) fn keep_logs(paths: &Paths) -> Result<PathBuf> {
    let kept = paths.dir.with_file_name("node-failed-logs");
    cache::remove(&kept)?;
    fs::rename(paths.dir.join("log"), &kept).or_else(|_| fs::create_dir_all(&kept)).context("keeping the logs of a failed start")?;
    Ok(kept)
}

/// What a node has on this machine, one line each; nothing after [`super::down`].
///
/// # Errors
/// When the cache's folder is not known.
pub fn leftovers() -> Result<Vec<String>> {
    let paths = Paths::new(&Cache::from_env()?);
    let alive = recorded(&paths.dir).into_iter().filter(|(process, _)| process.alive());
    let mut lines: Vec<String> = alive.map(|(process, name)| format!("process {} ({name})", process.pid)).collect();
    lines.extend(cgroups::left().iter().map(|dir| format!("control group {}", dir.display())));
    if link_exists() {
        lines.push(format!("network link {HOST_LINK} and its routes"));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let ours = mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|path| path.starts_with(&paths.dir.display().to_string()));
    lines.extend(ours.map(|path| format!("mount {path}")));
    lines.extend(record::left(&paths));
    if paths.dir.exists() {
        lines.push(format!("folder {}", paths.dir.display()));
    }
    Ok(lines)
}

fn link_exists() -> bool {
    fs::symlink_metadata(format!("/sys/class/net/{HOST_LINK}")).is_ok()
}
