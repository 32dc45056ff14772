//! The namespaces that the node lives in, held by one process: its end is the end of everything in them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::layout::{PRIVATE_FOLDERS, Paths};
use crate::{
    process::{self, Daemon, Identity, children_of},
    wait,
};

/// Name under which the holder is recorded. It is the parent of the namespaces' first process, which the kernel kills with it.
pub(super) const HOLDER: &str = "node-namespaces";

/// Namespaces for processes, mounts and network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namespaces {
    init: Identity,
}

impl Namespaces {
    /// Makes new ones, held by the pause program.
    pub(super) async fn create(paths: &Paths, pause: &Path) -> Result<(Daemon, Self)> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--"]).arg(pause).current_dir("/");
        let mut holder = Daemon::spawn(&paths.dir, HOLDER, command)?;
        let parent = holder.identity();
        let pause = pause.to_owned();
        let init = wait::until("the node's first process", Duration::from_secs(10), || {
            let running = holder.check();
            let init = children_of(parent.pid).into_iter().find(|child| runs(*child, &pause));
            async move { running.map(|()| init) }
        })
        .await?;
        Ok((holder, Self { init }))
    }

    /// Those of a running node, from its recorded processes.
    pub(super) fn of(processes: &[(Identity, String)]) -> Option<Self> {
        let (holder, _) = processes.iter().find(|(process, name)| name == HOLDER && process.alive())?;
        children_of(holder.pid).into_iter().next().map(|init| Self { init })
    }

    /// The number of their first process, seen from outside.
    pub(super) fn pid(&self) -> i32 {
        self.init.pid
    }

    /// A program inside them, arguments still to come.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.init.pid)).args(["--mount", "--net", "--pid", "--"]).arg(program).current_dir("/");
        command
    }
}

/// Whether the process has become that program; between fork and exec it is still its parent's.
fn runs(process: Identity, program: &Path) -> bool {
    fs::read_link(format!("/proc/{}/exe", process.pid)).is_ok_and(|exe| exe == program)
}

/// Gives the node its own `/run`, its own versions of folders that its programs insist on, and the CPUs that it shall show.
pub(super) async fn lay_out(paths: &Paths, namespaces: &Namespaces, cpus: u32) -> Result<()> {
    let mut mounts = Vec::new();
    for folder in PRIVATE_FOLDERS {
        let own = paths.dir.join("private").join(folder.trim_start_matches('/').replace('/', "-"));
        fs::create_dir_all(&own).with_context(|| format!("creating {}", own.display()))?;
        mounts.push((own, PathBuf::from(folder)));
    }
    mounts.extend(show_cpus(&paths.dir.join("private"), cpus)?);
    // Containers and volumes get mounts of their own; what the kubelet mounts must reach them.
    let mut script = "set -eu\nmount --make-rshared /\nmount -t tmpfs -o mode=755 tmpfs /run\n".to_owned();
    for (from, to) in &mounts {
        script.push_str(&format!("mount --bind {} {}\n", quoted(from), quoted(to)));
    }
    process::run(namespaces.command("/bin/sh").args(["-c", &script])).await.context("laying out the node's folders")?;
    Ok(())
}

/// A path for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Folders that tell the kubelet about CPUs. It counts `cpuN` in `/sys/devices/system/cpu`; finding neither sockets nor memory
/// nodes, it does not go on to pin containers to CPUs that are not there. Only the scheduler's arithmetic follows: containers have a
/// `/sys` of their own and see the real machine.
fn show_cpus(dir: &Path, cpus: u32) -> Result<Vec<(PathBuf, PathBuf)>> {
    let (all, none) = (dir.join("cpus"), dir.join("memory-nodes"));
    for cpu in 0..cpus {
        let folder = all.join(format!("cpu{cpu}"));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(all.join("online"), format!("0-{}\n", cpus.saturating_sub(1)))?;
    fs::create_dir_all(&none)?;
    let system = Path::new("/sys/devices/system");
    let mounts = [(all, system.join("cpu")), (none, system.join("node"))];
    Ok(mounts.into_iter().filter(|(_, to)| to.exists()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    #[test]
    fn shown_cpus_are_folders_that_a_kubelet_counts() {
        let dir = tempfile::tempdir().unwrap();
        show_cpus(dir.path(), 5).unwrap();
        let cpus = dir.path().join("cpus");
        assert!(cpus.join("cpu4").is_dir() && !cpus.join("cpu5").exists());
        assert_eq!(fs::read_to_string(cpus.join("online")).unwrap(), "0-4\n");
    }
}
