//! Webhooks of a test: in this process with lives as short as the test wants, or as the program itself; and a stand-in for a Service.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use certs::Lifetimes;
use clap::Parser;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use webhook::cli::{self, Cli};
use webhook::serve::Webhook;

use crate::world::{PATIENCE, SECRET, Scene, until};

/// A running webhook.
pub(crate) struct Replica {
    pub(crate) port: u16,
    health: SocketAddr,
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
        format!("--webhook-configuration={}", scene.namespace),
    ];
    flags.extend(more.iter().map(|flag| (*flag).to_owned()));
    flags
}

impl Replica {
    /// Starts a webhook in this process, as the administrator.
    pub(crate) async fn start(scene: &Scene, lifetimes: Lifetimes, more: &[&str]) -> Self {
        Self::start_as(scene, &scene.server.kubeconfig_path(), lifetimes, more).await
    }

    pub(crate) async fn start_as(scene: &Scene, kubeconfig: &Path, lifetimes: Lifetimes, more: &[&str]) -> Self {
        let cli::Command::Serve(args) = Cli::try_parse_from(flags(scene, kubeconfig, more)).expect("flags").command else {
            panic!("not serve")
        };
        let webhook = Webhook::bind(*args, lifetimes).await.expect("free ports");
        let addresses = webhook.addresses().expect("bound");
        let task = tokio::spawn(webhook.run(std::future::pending()));
        Self { port: addresses.admission.port(), health: addresses.health.expect("on"), task }
    }

    /// The body of `/readyz` if the webhook is not ready.
    pub(crate) async fn unready(&self) -> Option<String> {
        let mut socket = TcpStream::connect(self.health).await.expect("listening");
        socket.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("an answer");
        (!answer.starts_with("HTTP/1.0 200")).then_some(answer)
    }

    pub(crate) async fn ready(&self) {
        until("the webhook is ready", async || self.unready().await.is_none()).await;
    }
}

/// The program itself.
pub(crate) struct Program {
    pub(crate) port: u16,
    child: Child,
}

impl Program {
    /// Starts the program that was built beside this test and waits until it says that it is ready.
    pub(crate) async fn start(scene: &Scene) -> Self {
        let test = std::env::current_exe().expect("a path");
        let program = test.parent().and_then(|deps| deps.parent()).expect("deps").join("kuberay-webhook");
        assert!(program.exists(), "{} is missing: run `make test-api`, or `cargo build -p webhook`", program.display());
        let mut child = Command::new(program)
            .args(flags(scene, &scene.server.kubeconfig_path(), &[]).into_iter().skip(1))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut port = None;
        let ready = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                let entry: Value = serde_json::from_str(&line).expect("JSON");
                if let Some(address) = entry["admission"].as_str() {
                    port = address.parse::<SocketAddr>().ok().map(|address| address.port());
                }
                if entry["message"] == "ready" {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, ready).await.expect("ready in time");
        // Reads on, so that the program never waits for its log.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { port: port.expect("the log names the address"), child }
    }

    /// Asks it to end and waits until it has.
    pub(crate) async fn terminate(&mut self) {
        let pid = self.child.id().expect("running").to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill").success());
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("ends").expect("waited");
        assert!(status.success(), "{status}");
    }
}

/// Takes connections on one port to whichever of several others accepts them, in turn: what a Service does.
pub(crate) struct Forwarder {
    pub(crate) port: u16,
    backends: Arc<Mutex<Vec<u16>>>,
    task: JoinHandle<()>,
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Forwarder {
    pub(crate) async fn start(backends: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("bound").port();
        let backends = Arc::new(Mutex::new(backends.to_vec()));
        let known = backends.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let turn = {
                    let mut backends = known.lock().expect("not poisoned");
                    if !backends.is_empty() {
                        backends.rotate_left(1);
                    }
                    backends.clone()
                };
                tokio::spawn(async move {
                    for port in turn {
                        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                            let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { port, backends, task }
    }

    /// From now on new connections go to these.
    pub(crate) fn point_at(&self, backends: &[u16]) {
        *self.backends.lock().expect("not poisoned") = backends.to_vec();
    }
}

/// Lives short enough to see a whole rotation: a CA lives 15 s, a leaf 4 s.
pub(crate) fn short_lives() -> Lifetimes {
    let seconds = jiff::SignedDuration::from_secs;
    Lifetimes { authority: seconds(15), leaf: seconds(4), backdate: seconds(1), settle: seconds(1), check: seconds(1) }
}

/// Lives of production, apart from the settling time.
pub(crate) fn quick_settling() -> Lifetimes {
    Lifetimes { settle: jiff::SignedDuration::from_secs(1), ..Lifetimes::default() }
}

/// Time of one heartbeat of the load below.
pub(crate) const BEAT: Duration = Duration::from_millis(20);
