//! The SidecarSubmitterRestart guide on a real node with real Ray. Run with `make test-e2e`, which takes the node down afterwards and
//! fails when anything is left.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::time::Duration;

use e2e_tests::guide::Guide;
use e2e_tests::install::{self, Installed};
use e2e_tests::show::Shell;
use testcluster::node::Node;
use testcluster::progress::Progress;

async fn installed() -> (Node, Shell) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let node = install::node(&Progress::stderr()).await.unwrap();
    let shell = Shell::new(&node, true);
    install::chart(&shell).await.unwrap();
    (node, shell)
}

#[tokio::test]
async fn e2e_the_guide_holds() {
    let (node, shell) = installed().await;
    let guide = Guide::new(&node, &shell, 30);
    let refused = guide.refused().await.unwrap();
    assert!(!refused.ok, "kubectl did not fail");
    assert!(refused.text.contains("SidecarMode"), "{}", refused.text);
    guide.apply().await.unwrap();
    let running = guide.wait_running().await.unwrap();
    guide.stop_submitter(&running).await.unwrap();
    guide.verify_recovery(&running).await.unwrap();
    guide.wait_complete(&running).await.unwrap();
    guide.delete().await.unwrap();
}

/// Both programs are killed while the cluster comes up, while the job runs, and across its end: nothing about the outcome changes.
#[tokio::test]
async fn e2e_the_guide_holds_through_kills_of_both_programs() {
    let (node, shell) = installed().await;
    let guide = Guide::new(&node, &shell, 40);
    guide.apply().await.unwrap();
    shell
        .wait_for("the cluster's Pods", Duration::from_secs(60), "kubectl get pods -l ray.io/cluster -o name", |text| !text.is_empty())
        .await
        .unwrap();
    install::kill(&node, &shell, Installed::Operator).await.unwrap();
    install::kill(&node, &shell, Installed::Webhook).await.unwrap();
    let running = guide.wait_running().await.unwrap();
    install::kill(&node, &shell, Installed::Operator).await.unwrap();
    guide.stop_submitter(&running).await.unwrap();
    guide.verify_recovery(&running).await.unwrap();
    // The operator is away while the job ends, and learns of it afterwards.
    shell
        .wait_for(
            "the end of the job's output",
            Duration::from_secs(120),
            &format!("kubectl logs {} -c ray-job-submitter --tail=20", running.head),
            |text| text.contains("tick=30"),
        )
        .await
        .unwrap();
    install::kill(&node, &shell, Installed::Operator).await.unwrap();
    install::kill(&node, &shell, Installed::Webhook).await.unwrap();
    guide.wait_complete(&running).await.unwrap();
    let heads = shell.quiet("kubectl get pods -l ray.io/node-type=head -o name").await.unwrap();
    assert_eq!(heads.lines().count(), 1, "more than one head was made: {heads}");
    guide.delete().await.unwrap();
}

/// Our manifest is the guide's, but for the job's own script.
#[test]
fn e2e_the_example_is_the_guides_job() {
    let work_tree = testcluster::work_tree();
    let seed = std::env::var_os("KUBERAY_SHARED").map_or_else(|| work_tree.join("../shared"), std::path::PathBuf::from);
    let seed = seed.join("seeds/sidecar-submitter-restart.txt");
    let Ok(text) = std::fs::read_to_string(&seed) else {
        println!("skipped: {} is not there", seed.display());
        return;
    };
    let theirs = text.split("<<'EOF'\n").nth(1).and_then(|rest| rest.split("\nEOF").next()).unwrap();
    let ours = std::fs::read_to_string(work_tree.join("examples/rayjob-sidecar-restart.yaml")).unwrap();
    let job = |manifest: &str| {
        let mut documents = shared::yaml::documents(manifest).into_iter().map(|document| document.unwrap().value);
        documents.find(|document| document["kind"] == "RayJob").unwrap()
    };
    assert_eq!(job(&ours), job(theirs));
}
