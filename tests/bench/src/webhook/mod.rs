//! Reviews of one RayJob over TLS: how many a second, how long each takes, and what they cost the webhook.
//!
//! The load comes from this machine: rates are floors, CPU for each request and memory are the webhook's own.

mod peer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::json;
use testcluster::local::{free_port, get};
use testcluster::pki::Pki;
use tokio::process::{Child, Command};

use crate::measure::{Watched, mib, percentile, release};
use peer::Peer;

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Reviews in each run.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) requests: usize,
    /// Our webhook; the release build when absent.
    #[arg(long)]
    pub(crate) webhook: Option<PathBuf>,
    /// Operator with a webhook such as KubeRay's, to put beside ours.
    #[arg(long, env = "PEER_WEBHOOK")]
    pub(crate) peer: Option<PathBuf>,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// When the webhook does not start, or answers anything but an admission.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let program = release(options.webhook.as_deref(), "kuberay-webhook");
    let folder = tempfile::tempdir()?;
    let ours = Webhook::start(&program, folder.path()).await?;
    println!("webhook: {} reviews of one RayJob in each run", options.requests);
    for path in ["/validate-ray-io-v1-rayjob", "/mutate-ray-io-v1-rayjob"] {
        for connections in [8, 32] {
            let target =
                Target { address: format!("127.0.0.1:{}", ours.port), path: path.to_owned(), trust: Trust::Authority(ours.ca.clone()) };
            measure("ours", &target, ours.watched, options.requests, connections).await?;
        }
    }
    let (_, peak) = ours.watched.memory()?;
    println!("  ours: peak {}", mib(peak));
    ours.stop().await?;
    if let Some(program) = &options.peer {
        let folder = tempfile::tempdir()?;
        let peer = Peer::start(program, folder.path()).await?;
        for connections in [8, 32] {
            let target = Target { address: peer::ADDRESS.to_owned(), path: peer::PATH.to_owned(), trust: Trust::Anyone };
            measure("peer", &target, peer.watched(), options.requests, connections).await?;
        }
        println!("  peer: peak {}", mib(peer.watched().memory()?.1));
        peer.stop().await?;
    }
    Ok(())
}

/// Our webhook with a certificate made for it.
pub(crate) struct Webhook {
    child: Child,
    watched: Watched,
    /// Where it serves.
    pub(crate) port: u16,
    /// PEM of the authority that signed its certificate.
    pub(crate) ca: String,
}

impl Webhook {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(program: &Path, folder: &Path) -> Result<Self> {
        let pki = Pki::create(folder)?;
        let pair = pki.server("kuberay-webhook", &["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        std::fs::write(folder.join("tls.crt"), &pair.certificate)?;
        std::fs::write(folder.join("tls.key"), &pair.key)?;
        let (port, health) = (free_port()?, free_port()?);
        let child = Command::new(program)
            .args(["serve", "--cert-mode=secret", "--bind-address=127.0.0.1", "--metrics-addr=0", "--log-level=error"])
            .arg(format!("--cert-dir={}", folder.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{health}"))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let watched = Watched(child.id().context("the webhook has ended already")?);
        testcluster::wait::until("the webhook's readiness", Duration::from_secs(10), || async {
            Ok(get(health, "/readyz").await.ok().map(drop))
        })
        .await?;
        Ok(Self { child, watched, port, ca: pki.ca() })
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("stopping the webhook")
    }
}

enum Trust {
    /// The certificate is signed by this authority.
    Authority(String),
    /// Whatever it shows: a peer's certificate is its own affair.
    Anyone,
}

struct Target {
    address: String,
    path: String,
    trust: Trust,
}

async fn measure(name: &str, target: &Target, watched: Watched, requests: usize, connections: usize) -> Result<()> {
    let tls = Arc::new(tls(&target.trust)?);
    let body = Bytes::from(review()?);
    // A tenth before the clock starts: first pages, first buffers.
    load(target, &tls, &body, requests / 10, connections).await?;
    let before = watched.cpu()?;
    let started = Instant::now();
    let mut latencies = load(target, &tls, &body, requests, connections).await?;
    let elapsed = started.elapsed();
    ensure!(latencies.len() == requests, "{} of {requests} reviews were answered", latencies.len());
    let cpu = watched.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / requests as f64;
    println!(
        "  {name} {} c={connections}: {:.0} requests/s, p50 {:.2} ms, p99 {:.2} ms, CPU {cpu:.0} µs each",
        target.path,
        requests as f64 / elapsed.as_secs_f64(),
        percentile(&mut latencies, 50).as_secs_f64() * 1e3,
        percentile(&mut latencies, 99).as_secs_f64() * 1e3,
    );
    Ok(())
}

async fn load(
    target: &Target,
    tls: &Arc<rustls::ClientConfig>,
    body: &Bytes,
    requests: usize,
    connections: usize,
) -> Result<Vec<Duration>> {
    let left = Arc::new(AtomicUsize::new(requests));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (left, tls, body) = (left.clone(), tls.clone(), body.clone());
        let (address, path) = (target.address.clone(), target.path.clone());
        workers.spawn(async move {
            let stream = tokio::net::TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let stream = tokio_rustls::TlsConnector::from(tls).connect(ServerName::try_from("localhost")?, stream).await?;
            let (mut send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            let mut latencies = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let request = http::Request::post(&path)
                    .header("host", "localhost")
                    .header("content-type", "application/json")
                    .body(Full::new(body.clone()))?;
                let started = Instant::now();
                let answer = send.send_request(request).await?;
                let status = answer.status();
                let text = answer.into_body().collect().await?.to_bytes();
                latencies.push(started.elapsed());
                if !status.is_success() || !contains(&text, b"\"allowed\":true") {
                    bail!("the review was answered {status}: {}", String::from_utf8_lossy(&text));
                }
            }
            Ok(latencies)
        });
    }
    let mut all = Vec::with_capacity(requests);
    while let Some(latencies) = workers.join_next().await {
        all.extend(latencies??);
    }
    Ok(all)
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

fn tls(trust: &Trust) -> Result<rustls::ClientConfig> {
    let builder = rustls::ClientConfig::builder();
    Ok(match trust {
        Trust::Authority(ca) => {
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
                roots.add(certificate?)?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(anyone::Anyone)).with_no_client_auth(),
    })
}

/// A review as the API server sends it, of the guide's job.
fn review() -> Result<Vec<u8>> {
    let text = std::fs::read_to_string(testcluster::work_tree().join("examples/rayjob-sidecar-restart.yaml"))?;
    let document = shared::yaml::documents(&text).into_iter().next().context("the example is empty")??;
    let mut object = document.value;
    if let Some(metadata) = object.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.insert("namespace".into(), "default".into());
        metadata.insert("uid".into(), "2f1a0c9e-0f0e-4b43-8f56-0d7f2d6b1c11".into());
    }
    // The API server fills in the schema's defaults before it asks.
    for group in object.pointer_mut("/spec/rayClusterSpec/workerGroupSpecs").and_then(serde_json::Value::as_array_mut).into_iter().flatten()
    {
        if let Some(group) = group.as_object_mut() {
            group.insert("minReplicas".into(), json!(0));
            group.insert("maxReplicas".into(), json!(i32::MAX));
        }
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "ray.io", "version": "v1", "kind": "RayJob"},
            "resource": {"group": "ray.io", "version": "v1", "resource": "rayjobs"},
            "name": "rayjob-sidecar-restart", "namespace": "default", "operation": "CREATE",
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": object, "oldObject": null, "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    });
    Ok(serde_json::to_vec(&review)?)
}

/// Trust without proof, for a peer on this machine.
mod anyone {
    use rustls::DigitallySignedStruct;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    #[derive(Debug)]
    pub(super) struct Anyone;

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
        }
    }
}
