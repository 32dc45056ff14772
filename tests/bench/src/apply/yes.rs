//! The floor of what a webhook costs: one that admits everything without a look at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde::Deserialize;
use serde_json::json;
use testcluster::pki::Pki;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// It runs in this process, and ends with this value.
pub(super) struct Yes {
    /// Where it serves.
    pub(super) port: u16,
    /// PEM of the authority that signed its certificate.
    pub(super) ca: String,
    asked: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Drop for Yes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Yes {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no certificate or no port for it.
    pub(super) async fn start(folder: &std::path::Path) -> Result<Self> {
        let pki = Pki::create(folder)?;
        let pair = pki.server("yes", &["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
        let mut config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a port for the floor")?;
        let port = listener.local_addr()?.port();
        let asked = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&asked))).abort_handle();
        Ok(Self { port, ca: pki.ca(), asked, task })
    }

    /// Whether it was asked since this was called last.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, asked: Arc<AtomicBool>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (tls, asked) = (tls.clone(), Arc::clone(&asked));
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            let answer = service_fn(|request| {
                asked.store(true, Ordering::Relaxed);
                answer(request)
            });
            if let Ok(stream) = tls.accept(socket).await {
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
            }
        });
    }
}

/// Of a review only the uid is read, which the answer has to repeat.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    #[derive(Deserialize)]
    struct Review {
        request: Asked,
    }
    #[derive(Deserialize)]
    struct Asked {
        uid: String,
    }
    let body = request.into_body().collect().await?.to_bytes();
    let uid = serde_json::from_slice::<Review>(&body)?.request.uid;
    let answer =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": true}}).to_string();
    Ok(Response::builder().header("content-type", "application/json").body(Full::new(answer.into()))?)
}
