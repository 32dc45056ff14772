//! Steady load on the API server, and connections that trust what the configurations say at that moment. Both remember failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::replica::BEAT;
use crate::world::{Scene, raycluster};

/// Work in the background until it is stopped.
pub(crate) struct Load {
    tasks: JoinSet<Vec<String>>,
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
                match once().await {
                    Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => failures.push(error),
                }
                tokio::time::sleep(BEAT).await;
            }
            failures
        });
    }

    /// Good objects are sent by several clients (dry runs, so that nothing piles up).
    pub(crate) fn admissions(scene: &Scene, clients: usize) -> Self {
        let mut load = Self::new();
        for _ in 0..clients {
            let scene = scene.clone();
            load.repeat(move || {
                let scene = scene.clone();
                async move { scene.create(&raycluster("load", &["a"]), true).await.map(drop).map_err(|error| error.to_string()) }
            });
        }
        load
    }

    /// Fresh TLS connections to `port`, trusting each caBundle of the configurations in turn.
    pub(crate) fn handshakes(scene: &Scene, port: u16) -> Self {
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
    pub(crate) async fn stop(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.tasks.join_all().await.concat();
        (self.done.load(Ordering::Relaxed), failures)
    }
}

/// One TLS handshake as an API server makes it, trusting `bundle`.
pub(crate) async fn handshake(scene: &Scene, port: u16, bundle: &[u8]) -> std::io::Result<()> {
    let mut roots = RootCertStore::empty();
    for certificate in certs::bundle::parse(bundle) {
        roots.add(certificate.der().clone()).map_err(std::io::Error::other)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(format!("kuberay-webhook.{}.svc", scene.namespace)).map_err(std::io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(("127.0.0.1", port)).await?).await.map(drop)
}
