//! Processes: running one to its end, keeping one running, and knowing one again later.

mod daemon;
mod guard;
mod identity;

use std::{ffi::OsStr, process::Stdio};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

pub use daemon::Daemon;
pub(crate) use daemon::{kill_group, recorded};
pub(crate) use guard::Guard;
pub use identity::Identity;
pub(crate) use identity::children_of;

/// Lines of a failed program's output that its error shows.
const TAIL: usize = 20;

/// Runs a program to its end and gives its standard output. The program is killed when the future is dropped.
///
/// # Errors
/// When it cannot be started or does not exit with 0; the error shows the end of what it printed.
pub async fn run(command: &mut Command) -> Result<String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let shown = shown(command);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.with_context(|| format!("starting {name}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}:\n{}", output.status, tail(&format!("{stdout}{stderr}")));
    }
    Ok(stdout)
}

/// The command line as a person would read it.
fn shown(command: &Command) -> String {
    let std = command.as_std();
    let words = std::iter::once(std.get_program()).chain(std.get_args()).map(OsStr::to_string_lossy);
    let line = words.collect::<Vec<_>>().join(" ");
    if line.chars().count() > 300 { line.chars().take(300).chain(['…']).collect() } else { line }
}

/// The last lines of a text.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.iter().skip(lines.len().saturating_sub(TAIL)).copied().collect::<Vec<_>>().join("\n")
}

/// Whether a program of this name is on the path (or in the system folders that a path often lacks).
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Into::into);
    std::env::split_paths(&path).chain(system).map(|dir| dir.join(name)).find(|path| path.is_file())
}
