//! Steady load on the API server, and connections that trust what the configurations say at that moment. Both remember failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::world::{SERVICE, Scene, raycluster};

/// Pause of a client between two requests.
const BEAT: Duration = Duration::from_millis(20);

/// A request that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When it was sent.
    pub sent: Instant,
    /// When it had failed.
    pub failed: Instant,
    /// What was said.
    pub error: String,
}

/// Work in the background until it is stopped.
pub struct Load {
    tasks: JoinSet<Vec<Failure>>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
}

impl Load {
    fn new() -> Self {
        Self { tasks: JoinSet::new(), stop: Arc::default(), done: Arc::default() }
    }

    fn repeat<F: Future<Output = Result<(), String>> + Send>(&mut self, mut once: impl FnMut() -> F + Send + 'static) {
        let (stop, done) = (self.stop.clone(), self.done.clone());
        self.tasks.spawn(async move {
            let mut failures = vec![];
            while !stop.load(Ordering::Relaxed) {
                let sent = Instant::now();
                match once().await {
                    Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => failures.push(Failure { sent, failed: Instant::now(), error }),
                }
                tokio::time::sleep(BEAT).await;
            }
            failures
        });
    }

    /// Good objects are sent by several clients (dry runs, so that nothing piles up).
    pub fn admissions(scene: &Scene, clients: usize) -> Self {
        let mut load = Self::new();
        for _ in 0..clients {
            let scene = scene.clone();
            load.repeat(move || {
                let scene = scene.clone();
                async move {
                    scene.create(&raycluster("load", &["a"]), true).await.map(drop).map_err(|error| match error {
                        kube::Error::Api(status) => status.message,
                        other => other.to_string(),
                    })
                }
            });
        }
        load
    }

    /// Fresh TLS connections to `port`, trusting each caBundle of the configurations in turn.
    pub fn handshakes(scene: &Scene, port: u16) -> Self {
        let mut load = Self::new();
        let scene = scene.clone();
        load.repeat(move || {
            let scene = scene.clone();
            async move {
                for bundle in scene.bundles().await {
                    handshake(&scene, port, &bundle).await.map_err(|error| error.to_string())?;
                }
                Ok(())
            }
        });
        load
    }

    /// Ends the load; returns how often it succeeded, and every failure.
    pub async fn stop(self) -> (usize, Vec<Failure>) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.tasks.join_all().await.concat();
        (self.done.load(Ordering::Relaxed), failures)
    }

    /// Ends the load, of which nothing may have failed.
    pub async fn unharmed(self, at_least: usize) {
        let (done, failures) = self.stop().await;
        println!("{done} requests, none may have failed");
        assert!(failures.is_empty(), "{} of {done} failed: {:?}", failures.len(), failures.first());
        assert!(done >= at_least, "only {done}: too little load to mean anything");
    }
}

/// One TLS handshake as an API server makes it, trusting `bundle`.
///
/// # Errors
/// When it fails.
pub async fn handshake(scene: &Scene, port: u16, bundle: &[u8]) -> std::io::Result<()> {
    let mut roots = RootCertStore::empty();
    for certificate in certs::bundle::parse(bundle) {
        roots.add(certificate.der().clone()).map_err(std::io::Error::other)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(format!("{SERVICE}.{}.svc", scene.namespace)).map_err(std::io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(("127.0.0.1", port)).await?).await.map(drop)
}
