//! Hands the current serving certificate to TLS handshakes; swapping it disturbs no connection.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The serving certificate in use. Handshakes read it without a lock; without one they fail.
#[derive(Debug, Default)]
pub struct Resolver {
    current: ArcSwapOption<CertifiedKey>,
}

impl Resolver {
    /// A resolver that has no certificate yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// From now on handshakes get `certificate`; established connections stay as they are.
    pub fn set(&self, certificate: Arc<CertifiedKey>) {
        self.current.store(Some(certificate));
    }

    /// The certificate that handshakes get.
    pub fn get(&self) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}

/// A TLS server configuration (TLS 1.2 and 1.3, no client certificates) that serves what `resolver` holds.
///
/// Sessions are not resumable: API servers keep their connections open and never resume, so tickets would only cost memory.
pub fn server_config(resolver: Arc<Resolver>, alpn: &[&str]) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
