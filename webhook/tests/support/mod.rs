//! A webhook in this process, with files of a CA that clients here trust, and the clients.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use certs::Lifetimes;
use clap::Parser;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use webhook::cli::{Cli, Command};
use webhook::serve::{Addresses, Webhook};

/// Longest time that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// A CA, and a folder with a serving certificate for 127.0.0.1 and localhost signed by it.
pub(crate) struct Files {
    pub(crate) folder: TempDir,
    pub(crate) root: CertificateDer<'static>,
}

impl Files {
    pub(crate) fn new() -> Self {
        let files = Self::empty();
        files.write()
    }

    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), root: CertificateDer::from(vec![]) }
    }

    pub(crate) fn write(mut self) -> Self {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self.root = authority.self_signed(&authority_key).expect("signed").der().clone();
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).expect("names");
        let leaf = params.signed_by(&key, &Issuer::new(authority, authority_key)).expect("signed");
        let write = |name: &str, text: String| std::fs::write(self.folder.path().join(name), text).expect("written");
        write("tls.key", key.serialize_pem());
        write("tls.crt", leaf.pem());
        self
    }
}

/// The flags of a webhook on free ports of the loopback address with certificates from `folder`.
pub(crate) fn flags(folder: &Path) -> Vec<String> {
    let folder = folder.display();
    [
        "kuberay-webhook",
        "serve",
        "--port=0",
        "--bind-address=127.0.0.1",
        "--metrics-addr=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
        "--cert-mode=secret",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([format!("--cert-dir={folder}")])
    .collect()
}

/// A running webhook.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) async fn start(folder: &Path) -> Running {
    let Command::Serve(args) = Cli::try_parse_from(flags(folder)).expect("flags").command else { panic!("not serve") };
    let webhook = Webhook::bind(*args, Lifetimes::default()).await.expect("free ports");
    let addresses = webhook.addresses().expect("bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(webhook.run(async move {
        let _ = stopped.await;
    }));
    Running { addresses, stop, task }
}

/// Starts a webhook and waits until it says that it is ready.
pub(crate) async fn ready(files: &Files) -> Running {
    let running = start(files.folder.path()).await;
    until("ready", async || get(running.addresses.health, "/readyz").await.0 == StatusCode::OK).await;
    running
}

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}: not in time"));
}

/// A GET over plain HTTP.
pub(crate) async fn get(address: Option<SocketAddr>, path: &str) -> (StatusCode, String) {
    let socket = TcpStream::connect(address.expect("switched on")).await.expect("listening");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.expect("HTTP");
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "localhost").body(Full::<Bytes>::default()).expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    let (status, _, body) = taken(response).await;
    (status, body)
}

async fn taken(response: Response<Incoming>) -> (StatusCode, HeaderMap, String) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("complete").to_bytes();
    (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).expect("text"))
}

/// A TLS connection that trusts `root` alone and offers the given protocol.
pub(crate) async fn connect(address: SocketAddr, root: &CertificateDer<'static>, alpn: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("a CA certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("valid")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(address).await?).await
}

/// A client on one connection, as an API server keeps it.
pub(crate) enum Client {
    One(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Two(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) async fn http1(addresses: Addresses, files: &Files) -> Self {
        let stream = connect(addresses.admission, &files.root, "http/1.1").await.expect("TLS");
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        Self::One(sender)
    }

    pub(crate) async fn http2(addresses: Addresses, files: &Files) -> Self {
        let stream = connect(addresses.admission, &files.root, "h2").await.expect("TLS");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        Self::Two(sender)
    }

    pub(crate) async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> hyper::Result<(StatusCode, HeaderMap, String)> {
        let request = Request::post(format!("https://127.0.0.1{path}"))
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("a request");
        let response = match self {
            Self::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        Ok(taken(response).await)
    }

    pub(crate) fn closed(&self) -> bool {
        match self {
            Self::One(sender) => sender.is_closed(),
            Self::Two(sender) => sender.is_closed(),
        }
    }
}

/// A review of a RayCluster with the given worker groups, padded to about `size` bytes.
pub(crate) fn review(groups: &[&str], size: usize) -> Vec<u8> {
    let template = |name: &str| json!({"spec": {"containers": [{"name": name, "image": "rayproject/ray:2.54.1", "resources": {"limits": {"cpu": "1"}}}]}});
    let groups: Vec<Value> = groups
        .iter()
        .map(|group| json!({"groupName": group, "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "rayStartParams": {}, "template": template("ray-worker")}))
        .collect();
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "ray.io", "version": "v1", "kind": "RayCluster"},
            "name": "demo",
            "namespace": "team-a",
            "operation": "CREATE",
            "object": {
                "apiVersion": "ray.io/v1",
                "kind": "RayCluster",
                "metadata": {"name": "demo", "namespace": "team-a"},
                "spec": {
                    "rayVersion": "2.54.1",
                    "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
                    "workerGroupSpecs": groups,
                },
            },
        },
    });
    let written = review.to_string().len();
    if size > written {
        review["request"]["object"]["metadata"]["annotations"] = json!({"padding": "x".repeat(size - written)});
    }
    serde_json::to_vec(&review).expect("JSON")
}
