//! An instance's folder, its guard, and what dead owners left behind.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::KEEP_VARIABLE;
use crate::{
    cache,
    process::{Guard, Identity, kill_group, recorded},
    wait,
};

/// A temporary folder named after its owner, so that a folder without a living owner is known for what it is.
#[derive(Debug)]
pub(super) struct Instance {
    dir: PathBuf,
    guard: Option<Guard>,
}

impl Instance {
    /// A new folder with a guard over it. Clears away first what owners that died together with their guard left.
    pub(super) async fn create() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for (dir, owner) in instances() {
            if !owner.alive() {
                clear(&dir).await?;
            }
        }
        let owner = Identity::current()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("{}{}-{}-{number}", prefix(), owner.pid, owner.start));
        // Keys lie in it.
        fs::DirBuilder::new().mode(0o700).create(&dir).with_context(|| format!("creating {}", dir.display()))?;
        for file in ["processes", "routes"] {
            fs::File::create(dir.join(file))?;
        }
        let guard = Some(Guard::post(&dir)?);
        Ok(Self { dir, guard })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn guard_pid(&self) -> Option<u32> {
        self.guard.as_ref().map(Guard::pid)
    }

    /// Remembers a route `local CIDR dev lo`, then adds it.
    pub(super) fn add_local_route(&self, cidr: &str) -> Result<()> {
        let path = self.dir.join("routes");
        let mut routes = fs::read_to_string(&path)?;
        routes.push_str(cidr);
        routes.push('\n');
        fs::write(&path, routes).with_context(|| format!("writing {}", path.display()))?;
        ip(&["route", "replace", "local", cidr, "dev", "lo"])
    }

    /// Removes routes and folder after the programs have ended, and sends the guard away.
    pub(super) fn remove(mut self) -> Result<()> {
        remove_routes(&self.dir);
        if std::env::var_os(KEEP_VARIABLE).is_some() {
            eprintln!("kept {}", self.dir.display());
        } else {
            cache::remove(&self.dir)?;
        }
        self.guard.take().map_or(Ok(()), Guard::dismiss)
    }
}

/// Processes and folders whose owner is dead, one line each.
pub fn leftovers() -> Vec<String> {
    let mut lines = Vec::new();
    for (dir, _) in instances().into_iter().filter(|(_, owner)| !owner.alive()) {
        let alive = recorded(&dir).into_iter().filter(|(process, _)| process.alive());
        lines.extend(alive.map(|(process, name)| format!("process {} ({name}) of {}", process.pid, dir.display())));
        lines.push(format!("folder {}", dir.display()));
    }
    lines
}

/// Kills what is recorded in the folder of a dead owner and removes it.
async fn clear(dir: &Path) -> Result<()> {
    let processes = recorded(dir);
    for (process, _) in &processes {
        kill_group(*process, Signal::KILL);
    }
    // The kernel needs a moment to end them, and they may still write until then.
    wait::until("the end of a dead instance's processes", Duration::from_secs(10), || async {
        Ok(processes.iter().all(|(process, _)| !process.alive()).then_some(()))
    })
    .await?;
    remove_routes(dir);
    cache::remove(dir)
}

fn remove_routes(dir: &Path) {
    let routes = fs::read_to_string(dir.join("routes")).unwrap_or_default();
    for cidr in routes.lines() {
        // It may never have been added, when its owner died right before that.
        let _ = ip(&["route", "del", "local", cidr, "dev", "lo"]);
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = std::process::Command::new("ip").args(arguments).output().context("running ip")?;
    anyhow::ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Every user sees his own instances only.
fn prefix() -> String {
    format!("kuberay-testbed-api-{}-", rustix::process::geteuid().as_raw())
}

fn instances() -> Vec<(PathBuf, Identity)> {
    let (entries, prefix) = (fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten(), prefix());
    entries.filter_map(|entry| Some((entry.path(), owner(entry.file_name().to_str()?.strip_prefix(&prefix)?)?))).collect()
}

/// The owner in the rest of a folder's name, `PID-START-N`.
fn owner(name: &str) -> Option<Identity> {
    let mut parts = name.split('-');
    let owner = Identity { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
    parts.next()?.parse::<u32>().ok()?;
    parts.next().is_none().then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_folder_names_its_owner() {
        assert_eq!(owner("12-345-0"), Some(Identity { pid: 12, start: 345 }));
        for other in ["12-345", "12-345-0-1", "x-345-0", "node", "12-345-zero"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
