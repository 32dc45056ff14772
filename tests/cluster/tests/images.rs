//! The Dockerfile, built for real where buildah is installed.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which the lint does not take for tests")]

use std::path::Path;

use testcluster::{cache::Cache, fetch, process, progress::Progress};
use tokio::process::Command;

#[tokio::test]
async fn images_are_built_from_the_dockerfile_with_prebuilt_programs() {
    if process::find_program("buildah").is_none() || testcluster::platform::require_linux_root().is_err() {
        eprintln!("skipped: needs buildah and root");
        return;
    }
    // Any static program stands in for ours: what is tested is the way into the image.
    let program = fetch::node_programs(&Cache::from_env().unwrap(), &Progress::stderr()).await.unwrap().pause;
    let work = tempfile::tempdir().unwrap();
    let context = work.path().join("context");
    std::fs::create_dir(&context).unwrap();
    for name in ["kuberay-operator", "kuberay-webhook"] {
        std::fs::copy(&program, context.join(name)).unwrap();
    }
    let dockerfile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../images/Dockerfile");
    for (name, program) in [("operator", "/manager"), ("webhook", "/kuberay-webhook")] {
        let mut build = buildah(work.path());
        build.args(["build", "--isolation=chroot", "--build-arg=BINARIES=prebuilt", "--target", name, "--tag", name, "--file"]);
        process::run(build.arg(&dockerfile).arg(&context)).await.unwrap();
        let text = process::run(buildah(work.path()).args(["inspect", "--type=image", name])).await.unwrap();
        let image: serde_json::Value = serde_json::from_str(&text).unwrap();
        let config = &image["OCIv1"]["config"];
        assert_eq!(config["User"], "65532:65532");
        assert_eq!(config["Entrypoint"], serde_json::json!([program]));
        assert_eq!(image["OCIv1"]["rootfs"]["diff_ids"].as_array().map(Vec::len), Some(1), "one layer on an empty image");
    }
}

/// buildah with its storage in a folder of the test.
fn buildah(work: &Path) -> Command {
    let mut command = Command::new("buildah");
    command.args(["--storage-driver=vfs", "--root"]).arg(work.join("storage")).arg("--runroot").arg(work.join("run"));
    command
}
