//! The program `kuberay-webhook check` on files of our own: what it prints and how it ends.
//!
//! `UPDATE_EXPECT=1 cargo test -p webhook --test check_command` writes the expected outputs anew; read the difference.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::expect_file;
use serde_json::Value;

fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kuberay-webhook")).arg("check").args(arguments).current_dir(data()).output().unwrap()
}

/// Standard output, standard error and the exit status as one text.
fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("{}--- stderr\n{}--- exit {}\n", text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let output = check(&[&["--output", "json"], arguments].concat());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn mistakes_are_named_with_line_and_remedy() {
    let output = check(&["mistakes.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    expect_file!["data/mistakes.txt"].assert_eq(&shown(&output));
}

#[test]
fn a_broken_document_hides_no_other() {
    let output = check(&["broken.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    expect_file!["data/broken.txt"].assert_eq(&shown(&output));
}

#[test]
fn good_manifests_are_admitted_and_json_tells_what_is_filled_in() {
    assert_eq!(check(&["good.yaml"]).status.code(), Some(0));
    let output = check(&["--output", "json", "--defaults", "fleet.yaml", "good.yaml"]);
    expect_file!["data/good.json"].assert_eq(&shown(&output));
}

#[test]
fn an_update_is_compared_with_what_is_stored() {
    assert_eq!(check(&["update.yaml"]).status.code(), Some(0));
    let changed = json(&["--old", "stored.yaml", "update.yaml"]);
    assert_eq!(changed[0]["errors"][0]["path"], "spec.managedBy");
    assert_eq!(changed[0]["errors"][0]["line"], 7);
    let same = json(&["--old", "stored.yaml", "stored.yaml"]);
    assert_eq!((&same[0]["allowed"], &same[0]["patch"]), (&true.into(), &Value::Array(Vec::new())));
}

#[test]
fn feature_gates_change_the_verdict() {
    let text = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\nspec:\n  networkPolicy: {mode: DenyAll}\n  headGroupSpec: {template: {spec: {containers: [{name: h, image: 'rayproject/ray:2.52.0'}]}}}\n";
    assert_eq!(from_stdin(&["-"], text).status.code(), Some(1));
    assert_eq!(from_stdin(&["--feature-gates", "RayClusterNetworkPolicy=true", "-"], text).status.code(), Some(0));
    let unknown = from_stdin(&["--feature-gates", "Nonsense=true", "-"], text);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("Nonsense"));
}

#[test]
fn rules_may_be_configured_to_warn_only() {
    let text = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a, namespace: old-1}\nspec:\n  headGroupSpec: &g {template: {spec: {containers: [{name: h, image: 'rayproject/ray:2.52.0'}]}}}\n  workerGroupSpecs: [{<<: *g, groupName: headgroup}]\n";
    assert_eq!(from_stdin(&["-"], text).status.code(), Some(1));
    let file = data().join("rules.yaml");
    let softened = from_stdin(&["--rules", file.to_str().unwrap(), "-"], text);
    assert_eq!(softened.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&softened.stdout).contains("spec.workerGroupSpecs[0].groupName: warning: "));
}

fn from_stdin(arguments: &[&str], text: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kuberay-webhook"))
        .arg("check")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may refuse its flags and end before it reads.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_is_read_and_named() {
    let output = from_stdin(&["-"], "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {entrypoint: x, bogus: 1}\n");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("-:4: RayJob/a: spec.bogus: unknown field"), "{text}");
    assert_eq!(from_stdin(&["-"], "").status.code(), Some(0));
}

#[test]
fn what_cannot_be_read_is_exit_2_and_the_rest_is_still_checked() {
    let output = check(&["missing.yaml", "mistakes.yaml", "--output", "json"]);
    assert_eq!(output.status.code(), Some(2));
    let elements: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&elements[0]["file"], &elements[0]["allowed"], &elements[0]["kind"]), (&"missing.yaml".into(), &false.into(), &"".into()));
    assert!(elements.len() > 5);
    for arguments in [
        &["--old", "missing.yaml", "good.yaml"][..],
        &["--defaults", "good.yaml", "good.yaml"],
        &["--old", "broken.yaml", "good.yaml"],
        &[],
    ] {
        let output = check(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error_message() {
    let many = vec!["mistakes.yaml"; 200];
    let mut child = Command::new(env!("CARGO_BIN_EXE_kuberay-webhook"))
        .arg("check")
        .args(many)
        .current_dir(data())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
