//! What several integration tests need.
#![allow(dead_code, clippy::expect_used)] // each test is its own crate and uses a part; helpers of tests are tests

use std::path::{Path, PathBuf};

/// A directory of the knowledge base next to the workspace, or `None` (with a line that says so) where it is not there.
pub(crate) fn shared_directory(inside: &str) -> Option<PathBuf> {
    let root = std::env::var_os("KUBERAY_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let directory = root.join(inside);
    if !directory.is_dir() {
        println!("skipped: {} is not there (KUBERAY_SHARED names another place)", directory.display());
        return None;
    }
    Some(directory)
}

/// The YAML files of a directory, in the order of their names.
pub(crate) fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a readable directory");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    files.sort();
    files
}
