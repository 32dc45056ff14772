//! Container tools from Debian's packages, installed only where a program is missing.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use crate::{cache::Cache, process, progress::Progress};

/// A file or program that must be there, and the Debian package that brings it.
pub type Tool = (&'static str, &'static str);

/// What a node needs. Names without a slash are looked up on the path.
pub const NODE_TOOLS: &[Tool] = &[
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("/usr/lib/cni/ptp", "containernetworking-plugins"),
    ("/usr/lib/cni/portmap", "containernetworking-plugins"),
    ("iptables-restore", "iptables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
];

/// Installs the packages of the tools that are missing.
///
/// # Errors
/// Where something is missing and there is no `apt-get`, or the installation fails.
pub async fn ensure_tools(tools: &[Tool], cache: &Cache, progress: &Progress) -> Result<()> {
    if missing(tools).is_empty() {
        return Ok(());
    }
    let _lock = cache.lock("apt", progress).await?;
    let packages = missing(tools);
    if packages.is_empty() {
        return Ok(()); // whoever held the lock installed them
    }
    let list = packages.join(" ");
    let apt = process::find_program("apt-get")
        .with_context(|| format!("this machine lacks programs of these Debian packages and has no apt-get to install them: {list}"))?;
    let command = || {
        let mut command = Command::new(&apt);
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
        command
    };
    let install = async {
        process::run(command().arg("update")).await?;
        process::run(command().args(["install", "--yes", "--no-install-recommends"]).args(&packages)).await
    };
    progress.step(&format!("installing {list}"), install).await?;
    let still = missing(tools);
    if !still.is_empty() {
        bail!("after installing {list}, programs of {} are still missing", still.join(" "));
    }
    Ok(())
}

/// The packages of what is not there, each once.
fn missing(tools: &[Tool]) -> Vec<&'static str> {
    let mut packages: Vec<_> = tools.iter().filter(|(file, _)| !present(file)).map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn present(file: &str) -> bool {
    if file.contains('/') { Path::new(file).exists() } else { process::find_program(file).is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_missing_programs_are_named_once() {
        let tools = [("sh", "dash"), ("/nowhere/a", "one"), ("no-such-program-here", "one"), ("/nowhere/b", "another")];
        assert_eq!(missing(&tools), ["another", "one"]);
    }
}
