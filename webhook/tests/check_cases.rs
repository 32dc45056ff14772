//! `check` against the knowledge base: every admission case gets its verdict and paths, every sample of KubeRay is admitted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shared::features::FeatureGates;
use webhook::check::{Checked, Context, check_text};

/// A directory of the knowledge base next to the workspace, or `None` (with a line that says so) where it is not there.
fn shared_directory(inside: &str) -> Option<PathBuf> {
    let root = std::env::var_os("KUBERAY_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let directory = root.join(inside);
    if !directory.is_dir() {
        println!("skipped: {} is not there (KUBERAY_SHARED names another place)", directory.display());
        return None;
    }
    Some(directory)
}

fn yaml_files(directory: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

#[derive(Default)]
struct Header<'t> {
    deny: bool,
    /// One entry an error, each with the paths that are equally good.
    paths: Vec<Vec<&'t str>>,
    warnings: Vec<&'t str>,
    gates: &'t str,
    update: bool,
}

fn header(text: &str) -> Header<'_> {
    let mut header = Header::default();
    for (key, value) in text.lines().map_while(|line| line.strip_prefix("# ")).filter_map(|line| line.split_once(": ")) {
        match key {
            "expect" => header.deny = value == "deny",
            "path" => header.paths.push(value.split(" | ").collect()),
            "warn" => header.warnings.push(value),
            "gates" => header.gates = value,
            "operation" => header.update = value == "UPDATE",
            _ => {}
        }
    }
    header
}

fn checked(header: &Header<'_>, text: &str) -> Checked {
    let mut context = Context::new(header.gates.parse::<FeatureGates>().unwrap());
    let mut judged = text;
    if header.update {
        let (old, new) = text.split_once("\n---\n").expect("an UPDATE has two documents");
        context = context.with_stored(old).unwrap();
        judged = new;
    }
    let mut file = check_text(&context, "case", judged);
    assert_eq!((file.objects.len(), file.skipped), (1, 0));
    file.objects.remove(0)
}

/// What is wrong with the answer, if anything.
fn complaint(header: &Header<'_>, checked: &Checked) -> Option<String> {
    let errors: Vec<&str> = checked.errors.iter().map(|error| &*error.path).collect();
    let warnings: Vec<&str> = checked.warnings.iter().map(|warning| &*warning.path).collect();
    if header.deny == checked.allowed() {
        return Some(format!("denied: {}, wanted: {}; errors at {errors:?}", !checked.allowed(), header.deny));
    }
    let missing: Vec<_> = header.paths.iter().filter(|paths| !paths.iter().any(|path| errors.contains(path))).collect();
    if !missing.is_empty() {
        return Some(format!("no error at {missing:?}, only at {errors:?}"));
    }
    let extra: Vec<_> = errors.iter().filter(|path| !header.paths.iter().flatten().any(|wanted| wanted == *path)).collect();
    if !extra.is_empty() {
        return Some(format!("more errors than the header has: {extra:?}"));
    }
    let silent: Vec<_> = header.warnings.iter().filter(|path| !warnings.contains(path)).collect();
    (!silent.is_empty()).then(|| format!("no warning at {silent:?}, only at {warnings:?}"))
}

#[test]
fn every_admission_case_gets_its_verdict_and_paths() {
    let Some(directory) = shared_directory("cases/admission") else { return };
    let cases = yaml_files(&directory);
    assert!(cases.len() >= 100, "only {} cases found", cases.len());
    let complaints: BTreeMap<_, _> = cases
        .iter()
        .filter_map(|(name, text)| {
            let header = header(text);
            complaint(&header, &checked(&header, text)).map(|complaint| (name, complaint))
        })
        .collect();
    assert!(complaints.is_empty(), "{} of {} cases: {complaints:#?}", complaints.len(), cases.len());
}

#[test]
fn every_error_of_an_admission_case_has_the_line_of_its_field() {
    let Some(directory) = shared_directory("cases/admission") else { return };
    for (name, text) in yaml_files(&directory) {
        let header = header(&text);
        let judged = if header.update { text.split_once("\n---\n").unwrap().1 } else { &text };
        // A text that holds YAML is broken somewhere inside, which the line tells.
        for error in checked(&header, &text)
            .errors
            .into_iter()
            .filter(|error| !error.path.ends_with("serveConfigV2") && !error.path.ends_with("YAML"))
        {
            let line = judged.lines().nth(error.line as usize - 1).unwrap_or_else(|| panic!("{name}: {error:?}"));
            // The field itself, or a parent of it; a list element begins where its first key is.
            let named = error.path.split(['.', '[', ']']).filter(|step| !step.is_empty() && step.parse::<usize>().is_err());
            let in_line = named.into_iter().any(|step| line.contains(&format!("{step}:"))) || line.trim_start().starts_with("- ");
            assert!(in_line, "{name}: {} is not in line {}: {line}", error.path, error.line);
        }
    }
}

/// Samples that need a feature gate which is off by default.
const GATED: &[(&str, &str)] = &[
    ("ray-cluster.embedded-gcs-ft.yaml", "GCSFaultToleranceEmbeddedStorage"),
    ("ray-cluster.historyserver.yaml", "RayClusterHistoryServer"),
    ("ray-cluster.mtls.yaml", "RayClusterMTLS"),
    ("ray-cluster.network-policy-deny-all.yaml", "RayClusterNetworkPolicy"),
];

#[test]
fn every_sample_of_kuberay_is_admitted() {
    let Some(directory) = shared_directory("upstream/samples") else { return };
    let samples = yaml_files(&directory);
    assert!(samples.len() >= 80, "only {} samples found", samples.len());
    for (name, text) in &samples {
        let gate = GATED.iter().find(|(sample, _)| sample == name).map(|(_, gate)| gate);
        let denials = |gates: &str| -> Vec<String> {
            let file = check_text(&Context::new(gates.parse().unwrap()), name, text);
            assert!(!file.objects.is_empty(), "{name} has an object of ours");
            file.objects
                .iter()
                .flat_map(|object| &object.errors)
                .map(|error| format!("{}:{} {}", error.line, error.path, error.message))
                .collect()
        };
        let refused = denials("");
        match gate {
            None => assert_eq!(refused, [""; 0], "{name}"),
            Some(gate) => {
                assert!(!refused.is_empty() && refused.iter().all(|error| error.contains(gate)), "{name}: {refused:?}");
                assert_eq!(denials(&format!("{gate}=true")), [""; 0], "{name}");
            }
        }
    }
}
