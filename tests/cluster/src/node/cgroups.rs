//! Control groups: one folder below which the kubelet puts its Pods, under every controller of version 1 or in the one tree of version 2.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use super::layout::CGROUP;
use crate::wait;

/// Share of the processor, by the file of each version: ten or more times that of a process beside it. Ray gives up when it starts too
/// slowly, and whoever builds something at the same time waits a little longer.
const WEIGHTS: [(&str, &str); 2] = [("cpu.shares", "16384"), ("cpu.weight", "1000")];

/// Makes the folders.
pub(super) fn create() -> Result<()> {
    for mount in used(mounts()?) {
        let dir = mount.path.join(CGROUP);
        if mount.unified {
            // Not every controller may be delegated; the kubelet says so if one that it needs is not.
            for controller in ["cpuset", "cpu", "io", "memory", "pids", "hugetlb"] {
                let _ = fs::write(mount.path.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        for (file, weight) in WEIGHTS {
            if dir.join(file).exists() {
                fs::write(dir.join(file), weight).with_context(|| format!("setting {file}"))?;
            }
        }
        // A cpuset of version 1 starts empty, and nothing can run in it then.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if !mount.unified && mount.path.join(file).exists() {
                fs::write(dir.join(file), fs::read_to_string(mount.path.join(file))?).with_context(|| format!("setting {file}"))?;
            }
        }
    }
    Ok(())
}

/// Removes the folders. The last process of a group may take a moment to leave it.
pub(super) async fn remove() -> Result<()> {
    for dir in left() {
        wait::until(&format!("the end of all processes in {}", dir.display()), Duration::from_secs(20), || {
            let removed = remove_tree(&dir);
            async move {
                match removed {
                    Ok(()) => Ok(Some(())),
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
        })
        .await?;
    }
    Ok(())
}

/// The node's folders that exist. The kubelet makes one in a tree of version 2 beside those of version 1 as well.
pub(super) fn left() -> Vec<PathBuf> {
    let mounts = mounts().unwrap_or_default();
    mounts.into_iter().map(|mount| mount.path.join(CGROUP)).filter(|dir| dir.is_dir()).collect()
}

/// The groups' files cannot and need not be removed, only their folders.
fn remove_tree(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Where control groups are mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    path: PathBuf,
    unified: bool,
}

fn mounts() -> Result<Vec<Mount>> {
    Ok(parse_mounts(&fs::read_to_string("/proc/self/mounts").context("reading /proc/self/mounts")?))
}

fn parse_mounts(text: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let path = PathBuf::from(fields.next()?);
        match fields.next()? {
            "cgroup" => Some(Mount { path, unified: false }),
            "cgroup2" => Some(Mount { path, unified: true }),
            _ => None,
        }
    };
    text.lines().filter_map(parse).collect()
}

/// The trees that Pods are put in: all of version 1, or that of version 2 where it is alone (beside others it has no controllers).
fn used(mounts: Vec<Mount>) -> Vec<Mount> {
    let unified = mounts.iter().all(|mount| mount.unified);
    mounts.into_iter().filter(|mount| mount.unified == unified).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_counts_only_alone() {
        let mount = |path: &str, unified| Mount { path: PathBuf::from(path), unified };
        let hybrid = "cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/systemd cgroup rw,name=systemd 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\n";
        assert_eq!(used(parse_mounts(hybrid)), [mount("/c/cpu", false), mount("/c/systemd", false)]);
        assert_eq!(parse_mounts(hybrid).len(), 3, "cleaned up in all of them");
        assert_eq!(used(parse_mounts("tmpfs /tmp tmpfs rw 0 0\ncgroup2 /c cgroup2 rw 0 0\n")), [mount("/c", true)]);
    }
}
