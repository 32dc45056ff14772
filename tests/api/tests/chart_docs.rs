//! The commands of the documentation, as they stand there, at a real API server whose nodes only play their Pods.
//!
//! A block marked `sh` is run. Blocks marked `console` show what happens where Ray really runs; the guide's test and the demo do that.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::process::Stdio;

use api_tests::server::{Wanted, server_with};
use api_tests::{Server, chart};
use testcluster::api::FakeNodes;
use tokio::process::Command;

/// The `sh` blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(chart::workspace().join("docs").join(page)).unwrap();
    let blocks: Vec<String> = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    assert!(!blocks.is_empty(), "{page} has no commands");
    blocks
}

/// Runs a block from the workspace's root, with kubectl, helm and kuberay-webhook on the path.
async fn run(server: &Server, page: &str, block: &str) {
    let tools = chart::tools().helm.parent().unwrap().display().to_string();
    let webhook = api_tests::program::binary("kuberay-webhook");
    assert!(webhook.exists(), "{} is missing: run `make test-api`, or `cargo build -p webhook`", webhook.display());
    let path = format!("{tools}:{}:{}", webhook.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell.current_dir(chart::workspace()).args(["-euo", "pipefail", "-c", block]);
    shell.env("KUBECONFIG", server.kubeconfig()).env("PATH", path).stdin(Stdio::null());
    let output = shell.output().await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{page}:\n{block}\n{said}");
}

async fn run_page(server: &Server, page: &str) {
    for block in blocks(page) {
        run(server, page, &block).await;
    }
}

/// One test, because the pages speak of one release.
#[tokio::test]
async fn pages_do_what_they_say() {
    let server = server_with(Wanted { fake_nodes: Some(FakeNodes::default()) });
    run_page(server, "install.md").await;

    let kuberay = api_tests::kuberay::chart().unwrap();
    let install = format!("helm upgrade --install kuberay-operator {} --namespace ray-system", kuberay.path().display());
    run(server, "KubeRay's chart", &install).await;
    run_page(server, "migration.md").await;
    run(server, "KubeRay's chart", "helm uninstall kuberay-operator --namespace ray-system --wait").await;

    run(server, "install.md", &blocks("install.md")[0]).await;
    run_page(server, "operations.md").await;
}
