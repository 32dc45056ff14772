//! Certificates that others keep: cert-manager's own controllers, and Secrets that are swapped under the webhook as a kubelet does it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api_tests::chart::{Rendered, text};
use api_tests::modules::CERT_MANAGER;
use api_tests::scene::{PATIENCE, Scene, group, spec};
use api_tests::{Program, hook, rbac, server};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use testcluster::cache::Cache;
use testcluster::fetch;
use testcluster::local::free_port;
use testcluster::progress::Progress;
use testcluster::wait;

/// A folder that shows a Secret as a Pod sees it.
struct Mount {
    folder: PathBuf,
    generation: u32,
    shown: Vec<(String, Vec<u8>)>,
}

impl Mount {
    fn new(folder: PathBuf) -> Self {
        std::fs::create_dir(&folder).unwrap();
        Self { folder, generation: 0, shown: Vec::new() }
    }

    /// Swaps the content: a fresh folder, and a link that is renamed over `..data`.
    fn show(&mut self, files: Vec<(String, Vec<u8>)>) {
        if self.shown == files {
            return;
        }
        self.generation += 1;
        let fresh = format!("..{}", self.generation);
        std::fs::create_dir(self.folder.join(&fresh)).unwrap();
        for (name, content) in &files {
            std::fs::write(self.folder.join(&fresh).join(name), content).unwrap();
            let _there_already = std::os::unix::fs::symlink(Path::new("..data").join(name), self.folder.join(name));
        }
        std::os::unix::fs::symlink(&fresh, self.folder.join("..data_tmp")).unwrap();
        std::fs::rename(self.folder.join("..data_tmp"), self.folder.join("..data")).unwrap();
        if self.generation > 1 {
            std::fs::remove_dir_all(self.folder.join(format!("..{}", self.generation - 1))).unwrap();
        }
        self.shown = files;
    }

    /// Follows a Secret, faster than a kubelet.
    fn follow(mut self, secrets: Api<Secret>, name: String) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                if let Ok(Some(secret)) = secrets.get_opt(&name).await {
                    self.show(secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    }
}

/// A webhook that takes its certificate from a folder.
async fn webhook(scene: &Scene, folder: &Path, port: u16) -> Program {
    let flags = ["--cert-mode=secret".to_owned(), format!("--cert-dir={}", folder.display()), format!("--port={port}")];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Program::webhook(scene.folder(), &server().kubeconfig(), &flags).await.unwrap_or_else(|error| panic!("{error:#}"))
}

/// The chart in this mode, with a Service of the webhook's name that leads to a port of this machine.
async fn install(scene: &Scene, port: u16, certificates: &str) -> Rendered {
    let rendered = hook::chart_for(&scene.namespace, &[&format!("webhook.certificates={certificates}")]).unwrap();
    let name = format!("{}-webhook", scene.namespace);
    let service = json!({ "metadata": { "name": name }, "spec": { "type": "ExternalName", "externalName": "localhost" } });
    scene.create::<Service>(service).await.unwrap();
    rbac::apply(server(), &hook::configurations(&rendered, &name, port).unwrap()).await.unwrap();
    rendered
}

fn good() -> Value {
    spec(&[group("a", 1)], json!({}))
}

/// Waits until the webhook refuses what is bad and admits what is good; says how long it took.
async fn until_it_answers(scene: &Scene, log: impl Fn() -> String) -> Duration {
    let start = Instant::now();
    let answers = wait::until("the webhook's answers", PATIENCE, || async {
        let refused = hook::ask(scene, "bad", spec(&[group("a", 1), group("a", 1)], json!({}))).await;
        let admitted = hook::ask(scene, "good", good()).await;
        Ok((admitted.is_ok() && refused.is_err_and(|error| error.to_string().contains("denied the request"))).then_some(()))
    });
    answers.await.unwrap_or_else(|error| panic!("{error:#}\n{}", log()));
    start.elapsed()
}

/// Waits until the webhook has said something so often.
async fn says(webhook: &Program, times: usize, what: &str) {
    let said = || async { Ok((webhook.log().matches(what).count() >= times).then_some(())) };
    wait::until(what, PATIENCE, said).await.unwrap_or_else(|error| panic!("{error:#}\n{}", webhook.log()));
}

async fn loaded(webhook: &Program, times: usize) {
    says(webhook, times, "serving certificate loaded").await;
}

/// From an empty cluster to a webhook with a certificate of cert-manager's, and again when the Secret is lost.
#[tokio::test]
async fn cert_manager_issues_and_injects() {
    CERT_MANAGER.install(server()).await.unwrap();
    let scene = Scene::without_operator(server(), "issued").await.unwrap();
    let program = fetch::cert_manager(&Cache::from_env().unwrap(), &Progress::stderr()).await.unwrap();
    let log = std::fs::File::create(scene.folder().join("cert-manager.log")).unwrap();
    let mut command = tokio::process::Command::new(program);
    command.arg(format!("--cluster={}", server().kubeconfig().display())).stdin(Stdio::null());
    let _running = command.stdout(log.try_clone().unwrap()).stderr(log).kill_on_drop(true).spawn().unwrap();

    let port = free_port().unwrap();
    let rendered = install(&scene, port, r#"{"mode":"cert-manager"}"#).await;
    let theirs = rendered.objects().iter().filter(|object| ["Issuer", "Certificate"].contains(&text(object, "/kind")));
    rbac::apply(server(), theirs).await.unwrap();
    let secret = format!("{}-webhook-tls", scene.namespace);
    let secrets = scene.api::<Secret>();
    let issued =
        async || Ok(secrets.get_opt(&secret).await?.filter(|secret| secret.data.as_ref().is_some_and(|data| data.contains_key("tls.key"))));
    let first = wait::until("a certificate", PATIENCE, || async { issued().await }).await;
    let log = || std::fs::read_to_string(scene.folder().join("cert-manager.log")).unwrap_or_default();
    let first = first.unwrap_or_else(|error| panic!("{error:#}\n{}", log()));

    let folder = scene.folder().join("tls");
    let mount = Mount::new(folder.clone()).follow(secrets.clone(), secret.clone());
    let webhook = webhook(&scene, &folder, port).await;
    println!("trusted through cert-manager after {:?}", until_it_answers(&scene, log).await);

    secrets.delete(&secret, &DeleteParams::default()).await.unwrap();
    let start = Instant::now();
    wait::until("another certificate", PATIENCE, || async { Ok(issued().await?.filter(|second| second.data != first.data)) })
        .await
        .unwrap();
    // The files are read every ten seconds; until then, whoever has a connection keeps it.
    loaded(&webhook, 2).await;
    until_it_answers(&scene, log).await;
    println!("Secret deleted: another certificate serves after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}\n{}", start.elapsed(), webhook.log());
    mount.abort();
}

/// A renewal by the CA that is trusted already costs nobody anything; neither does a Secret that is damaged.
#[tokio::test]
async fn a_secret_is_swapped_without_losing_an_admission() {
    let scene = Scene::without_operator(server(), "swapped").await.unwrap();
    let pki = server().instance().pki();
    let names = [format!("{0}-webhook.{0}.svc", scene.namespace)];
    let pair = || {
        let pair = pki.server("webhook", &names).unwrap();
        vec![("tls.crt".to_owned(), pair.certificate.into_bytes()), ("tls.key".to_owned(), pair.key.into_bytes())]
    };
    let bundle = serde_json::to_value(k8s_openapi::ByteString(pki.ca().into_bytes())).unwrap();
    let port = free_port().unwrap();
    install(&scene, port, &json!({ "mode": "secret", "secretName": "mine", "caBundle": bundle }).to_string()).await;
    let folder = scene.folder().join("tls");
    let mut mount = Mount::new(folder.clone());
    mount.show(pair());
    let webhook = webhook(&scene, &folder, port).await;
    until_it_answers(&scene, || webhook.log()).await;

    let swapped = AtomicBool::new(false);
    let admissions = async {
        let (mut done, mut failed) = (0, Vec::new());
        loop {
            match hook::ask(&scene, "good", good()).await {
                Ok(()) => done += 1,
                Err(error) => failed.push(format!("{error:#}")),
            }
            if swapped.load(Ordering::Relaxed) {
                return (done, failed);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let swaps = async {
        let start = Instant::now();
        mount.show(pair());
        loaded(&webhook, 2).await;
        println!("Secret renewed: served after {:?}", start.elapsed());
        mount.show(vec![("tls.crt".to_owned(), b"garbage".to_vec()), ("tls.key".to_owned(), Vec::new())]);
        says(&webhook, 1, "cannot load the serving certificate").await;
        assert!(webhook.is_ready().await, "the former pair goes on serving");
        let start = Instant::now();
        mount.show(pair());
        loaded(&webhook, 3).await;
        println!("Secret repaired: served after {:?}", start.elapsed());
        swapped.store(true, Ordering::Relaxed);
    };
    let ((done, failed), ()) = tokio::join!(admissions, swaps);
    assert!(failed.is_empty(), "{} of {done} failed: {:?}", failed.len(), failed.first());
    assert!(done > 100, "only {done}: too little to mean anything");
}
