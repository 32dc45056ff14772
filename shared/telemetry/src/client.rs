//! Carries batches of spans to the collector.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::runtime::{Builder, Runtime};

use super::{outage::Outage, settings::Settings};

/// Longest answer that is read, in bytes. A collector says at most how many spans it did not want, and why.
const MAX_ANSWER: usize = 64 << 10;

/// An HTTP client with an event loop of its own, for the thread that sends batches: the loop of the program has other things to do.
pub(crate) struct Client {
    runtime: Runtime,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: String,
    timeout: Duration,
    outage: Mutex<Outage>,
}

impl Client {
    /// A client for the collector of `settings`.
    ///
    /// # Errors
    /// A sentence for the user, if the collector's certificate could never be checked.
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls(settings)?).https_or_http().enable_http1().wrap_connector(connector);
        // Nobody watches a connection between two batches, so that its end would be noticed only by the loss of the next one.
        let http = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        let runtime = runtime.map_err(|error| format!("there is no event loop: {error}"))?;
        Ok(Self { runtime, http, endpoint: settings.endpoint.to_string(), timeout: settings.timeout, outage: Mutex::default() })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = self.http.request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }

    /// Says that it no longer works, or works again.
    fn note(&self, result: Result<StatusCode, String>) {
        let endpoint = self.endpoint.as_str();
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(status) if status.is_success() => {
                if let Some(failures) = outage.worked() {
                    tracing::info!(endpoint, failures, "traces are sent again");
                }
            }
            failed => {
                let reason = failed.map_or_else(|error| error, |status| format!("it answers {status}"));
                if outage.failed() {
                    tracing::warn!(endpoint, reason, "traces cannot be sent and are dropped until they can");
                }
            }
        }
    }
}

/// Whom to trust as the collector. Nobody is asked for certificates where none will be shown.
fn tls(settings: &Settings) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("there is no TLS: {error}"))?;
    let plain = settings.endpoint.scheme_str() == Some("http");
    let builder = match &settings.certificate {
        _ if plain => builder.with_root_certificates(RootCertStore::empty()),
        None => builder.with_native_roots().map_err(|error| {
            format!(
                "this machine knows no certificate authority ({error}): name a file with the collector's in OTEL_EXPORTER_OTLP_CERTIFICATE"
            )
        })?,
        Some(file) => {
            let unusable =
                |reason: &dyn fmt::Display| format!("the file {} named by OTEL_EXPORTER_OTLP_CERTIFICATE: {reason}", file.display());
            let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let mut roots = RootCertStore::empty();
            let (usable, _) = roots.add_parsable_certificates(found.map_err(|error| unusable(&error))?);
            if usable == 0 {
                return Err(unusable(&"it holds no certificate"));
            }
            builder.with_root_certificates(roots)
        }
    };
    Ok(builder.with_no_client_auth())
}

#[async_trait]
impl HttpClient for Client {
    /// Blocks: it is called on the thread that sends batches and has nothing else to do.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.runtime.block_on(async {
            match tokio::time::timeout(self.timeout, self.exchange(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        });
        self.note(answer.as_ref().map(Response::status).map_err(|error| last_cause(&**error)));
        answer
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// The last of an error's causes says most: `connection refused` rather than `client error`.
fn last_cause(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error).to_string()
}
