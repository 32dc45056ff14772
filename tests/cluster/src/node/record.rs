//! What the node changes on the machine outside its own folder, written down before it happens.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::layout::{PRIVATE_FOLDERS, Paths};

/// Kernel settings that the kubelet sets at its start. They hold for the whole machine, namespaces or not.
const SETTINGS: [&str; 6] = [
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/keys/root_maxkeys",
    "/proc/sys/kernel/keys/root_maxbytes",
];

/// How the machine was.
#[derive(Debug, Serialize, Deserialize)]
struct Machine {
    /// Kernel settings by file.
    settings: BTreeMap<PathBuf, String>,
    /// Folders that did not exist, outermost first.
    folders: Vec<PathBuf>,
}

/// Writes the record, then makes the folders that the node's own will be mounted over.
pub(super) fn write(paths: &Paths) -> Result<()> {
    let settings = SETTINGS.iter().filter_map(|path| Some((PathBuf::from(path), fs::read_to_string(path).ok()?))).collect();
    let folders = missing_folders(&PRIVATE_FOLDERS.map(PathBuf::from));
    let machine = Machine { settings, folders };
    fs::write(file(paths), serde_json::to_string_pretty(&machine)?).context("recording the machine's state")?;
    for folder in PRIVATE_FOLDERS {
        fs::create_dir_all(folder).with_context(|| format!("creating {folder}"))?;
    }
    Ok(())
}

/// Puts settings and folders back as they were. A folder in which somebody put something since stays.
pub(super) fn restore(paths: &Paths) -> Result<()> {
    let Some(machine) = read(paths)? else { return Ok(()) };
    for (path, value) in changed(&machine) {
        fs::write(path, value).with_context(|| format!("restoring {}", path.display()))?;
    }
    for folder in machine.folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

/// What is not as it was, one line each.
pub(super) fn left(paths: &Paths) -> Vec<String> {
    let Ok(Some(machine)) = read(paths) else { return Vec::new() };
    let settings = changed(&machine).map(|(path, value)| format!("kernel setting {} is no longer {}", path.display(), value.trim()));
    let folders = machine.folders.iter().filter(|folder| folder.exists()).map(|folder| format!("folder {}", folder.display()));
    settings.chain(folders).collect()
}

fn changed(machine: &Machine) -> impl Iterator<Item = (&PathBuf, &String)> {
    machine.settings.iter().filter(|(path, value)| fs::read_to_string(path).is_ok_and(|now| now != **value))
}

/// The folders to be made so that `wanted` exist, each once, outermost first.
fn missing_folders(wanted: &[PathBuf]) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> =
        wanted.iter().flat_map(|folder| folder.ancestors()).filter(|folder| !folder.exists()).map(PathBuf::from).collect();
    missing.sort();
    missing.dedup();
    missing
}

fn read(paths: &Paths) -> Result<Option<Machine>> {
    match fs::read_to_string(file(paths)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("reading the record of the machine's state"),
        // A record that a crash cut off was followed by no change of the machine.
        Ok(text) => Ok(serde_json::from_str(&text).ok()),
    }
}

fn file(paths: &Paths) -> PathBuf {
    paths.dir.join("machine.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_folders_come_outermost_first_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        assert_eq!(missing_folders(&[path("a/b"), path("a/c"), dir.path().to_owned()]), [path("a"), path("a/b"), path("a/c")]);
    }
}
