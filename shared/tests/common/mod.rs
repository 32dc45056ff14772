//! What several integration tests need, also those of other crates.
#![allow(dead_code, clippy::expect_used, clippy::indexing_slicing)] // each test is its own crate and uses a part; helpers of tests are tests

pub(crate) mod cases;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The root of the work tree that the test was built from.
pub(crate) fn work_tree() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).unwrap_or(here)
}

/// A directory of the knowledge base next to the workspace, or `None` (with a line that says so) where it is not there.
pub(crate) fn shared_directory(inside: &str) -> Option<PathBuf> {
    let root = std::env::var_os("KUBERAY_SHARED").map_or_else(|| work_tree().join("../shared"), PathBuf::from);
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

/// The YAML files of a directory by name, with what is in them.
pub(crate) fn yaml_texts(directory: &Path) -> BTreeMap<String, String> {
    let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    yaml_files(directory).iter().map(|file| (name(file), std::fs::read_to_string(file).expect("a readable file"))).collect()
}

/// KubeRay's samples that need a feature gate which is off by default: the sample's file and the gate, as docs/admission.md lists them.
pub(crate) fn gated_samples() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(work_tree().join("docs/admission.md")).expect("docs/admission.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(".yaml` | `"));
    let listed: BTreeMap<_, _> =
        rows.map(|(sample, rest)| (format!("{sample}.yaml"), rest.split('`').next().unwrap_or_default().to_owned())).collect();
    assert!(!listed.is_empty(), "docs/admission.md lists no samples");
    listed
}
