//! Webhooks of a test: in this process with lives as short as the test wants, or as the program itself.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use certs::Lifetimes;
use clap::Parser;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use webhook::cli::{self, Cli};
use webhook::serve::Webhook;

use super::world::{PATIENCE, SECRET, SERVICE, Scene, until};
use crate::program::binary;

/// The ports of a replica on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The admission paths.
    pub admission: u16,
    /// `/readyz`.
    pub health: u16,
}

impl Place {
    /// The answer of `/readyz` if it is not 200.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn unready(&self) -> std::io::Result<Option<String>> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.health)).await?;
        socket.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await?;
        Ok((!answer.starts_with("HTTP/1.0 200")).then_some(answer))
    }
}

/// A webhook in this process.
pub struct Replica {
    /// Its ports.
    pub place: Place,
    task: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn flags(scene: &Scene, kubeconfig: &Path, more: &[&str]) -> Vec<String> {
    let mut flags = vec![
        "kuberay-webhook".to_owned(),
        "serve".to_owned(),
        "--port=0".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        "--health-probe-bind-address=127.0.0.1:0".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={}", scene.namespace),
        format!("--secret-name={SECRET}"),
        format!("--service-name={SERVICE}"),
        format!("--webhook-configuration={}", scene.configuration()),
    ];
    flags.extend(more.iter().map(|flag| (*flag).to_owned()));
    flags
}

impl Replica {
    /// Starts a webhook as the administrator, with further flags.
    pub async fn start(scene: &Scene, lifetimes: Lifetimes, more: &[&str]) -> Self {
        Self::start_as(scene, &scene.server.kubeconfig_path(), lifetimes, more).await
    }

    /// Starts a webhook with a kubeconfig.
    pub async fn start_as(scene: &Scene, kubeconfig: &Path, lifetimes: Lifetimes, more: &[&str]) -> Self {
        let cli::Command::Serve(args) = Cli::try_parse_from(flags(scene, kubeconfig, more)).expect("flags").command else {
            panic!("not serve")
        };
        let webhook = Webhook::bind(*args, lifetimes).await.expect("free ports");
        let addresses = webhook.addresses().expect("bound");
        let task = tokio::spawn(webhook.run(std::future::pending()));
        let place = Place { admission: addresses.admission.port(), health: addresses.health.expect("on").port() };
        Self { place, task }
    }

    /// What `/readyz` says if the webhook is not ready.
    pub async fn unready(&self) -> Option<String> {
        self.place.unready().await.expect("an answer")
    }

    /// Waits until the webhook is ready.
    pub async fn ready(&self) {
        until("the webhook is ready", async || self.unready().await.is_none()).await;
    }
}

/// The program itself. It is killed when this value is dropped.
pub struct Program {
    /// Its ports.
    pub place: Place,
    child: Child,
}

impl Program {
    /// Starts the program of the last build as the administrator, with further flags, and waits until it says that it is ready.
    pub async fn start(scene: &Scene, more: &[&str]) -> Self {
        let program = binary("kuberay-webhook");
        assert!(program.exists(), "{} is missing: run `make test-api`, or `cargo build -p webhook`", program.display());
        let mut child = Command::new(program)
            .args(flags(scene, &scene.server.kubeconfig_path(), more).into_iter().skip(1))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut place = None;
        let ready = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                let entry: Value = serde_json::from_str(&line).expect("JSON");
                let port = |key: &str| entry[key].as_str()?.parse::<SocketAddr>().ok().map(|address| address.port());
                if let (Some(admission), Some(health)) = (port("admission"), port("health")) {
                    place = Some(Place { admission, health });
                }
                if entry["message"] == "ready" {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, ready).await.expect("ready in time");
        // Reads on, so that the program never waits for its log.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { place: place.expect("the log names the addresses"), child }
    }

    /// Asks it to end and waits until it has.
    pub async fn terminate(mut self) {
        let pid = self.child.id().expect("running").to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill").success());
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("ends").expect("waited");
        assert!(status.success(), "{status}");
    }

    /// `kill -9`, and waits for the end.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}

/// Lives short enough to see a whole rotation: a CA lives 15 s, a leaf 4 s.
pub fn short_lives() -> Lifetimes {
    let seconds = jiff::SignedDuration::from_secs;
    Lifetimes { authority: seconds(15), leaf: seconds(4), backdate: seconds(1), settle: seconds(1), check: seconds(1) }
}

/// Lives of production, apart from the settling time.
pub fn quick_settling() -> Lifetimes {
    Lifetimes { settle: jiff::SignedDuration::from_secs(1), ..Lifetimes::default() }
}
