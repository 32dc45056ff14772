//! TCP, TLS and HTTP connections of the admission paths. Written by hand because it costs a fifth less CPU than the usual wrapper,
//! and because draining has to be exact.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

use super::farewell::{Activity, Farewell};
use super::metrics::Metrics;

/// Connections at once. An API server keeps a few dozen.
const MAX_CONNECTIONS: usize = 512;
/// Time for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a handshake gets to finish when the process ends.
const LAST_HANDSHAKE: Duration = Duration::from_millis(500);
/// How long a connection may be idle. API servers give idle connections up after 90 s; whoever closes first should not be us.
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

/// What every connection needs.
#[derive(Clone)]
struct Context {
    tls: TlsAcceptor,
    router: Router,
    metrics: Arc<Metrics>,
    /// Turns true when the process ends.
    stopped: watch::Receiver<bool>,
    /// Dropped with the connection; nobody sends on it.
    _open: mpsc::Sender<()>,
}

impl Listener {
    /// Accepts connections until `stop`, then lets requests in flight finish, closes idle connections, and returns when all are
    /// closed or `limit` has passed.
    pub(super) async fn run(self, stop: impl Future<Output = ()>, limit: Duration) {
        let (stopping, stopped) = watch::channel(false);
        let (open, mut all_closed) = mpsc::channel(1);
        let context = Context { tls: self.tls, router: self.router, metrics: self.metrics, stopped, _open: open };
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.tcp, &permits) => if let Some((socket, permit)) = accepted {
                    tokio::spawn(serve(context.clone(), socket, permit));
                },
            }
        }
        // Whoever is waiting at the door already was told that we are open.
        while let Some(Some((socket, permit))) = accept(&self.tcp, &permits).now_or_never() {
            tokio::spawn(serve(context.clone(), socket, permit));
        }
        drop(self.tcp);
        drop(context);
        let _ = stopping.send(true);
        if tokio::time::timeout(limit, all_closed.recv()).await.is_err() {
            tracing::warn!(seconds = limit.as_secs(), "connections are still open; ending all the same");
        }
    }
}

async fn accept(tcp: &TcpListener, permits: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.ok()?;
    match tcp.accept().await {
        Ok((socket, _)) => Some((socket, permit)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// One connection, from its handshake to its end.
async fn serve(mut context: Context, socket: TcpStream, permit: OwnedSemaphorePermit) {
    // Answers are small and somebody waits for each of them.
    let _ = socket.set_nodelay(true);
    let Some(stream) = handshake(&context.tls, socket, &mut context.stopped).await else { return };
    context.metrics.connections.inc();
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let ended = if http2 { serve_http2(&mut context, stream).await } else { serve_http1(&mut context, stream).await };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    context.metrics.connections.dec();
    drop(permit);
}

async fn handshake(tls: &TlsAcceptor, socket: TcpStream, stopped: &mut watch::Receiver<bool>) -> Option<TlsStream<TcpStream>> {
    let last = async {
        let _ = stopped.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(LAST_HANDSHAKE).await;
    };
    tokio::select! {
        accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(socket)) => match accepted {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => None,
        },
        () = last => None,
    }
}

async fn serve_http1(context: &mut Context, stream: TlsStream<TcpStream>) -> hyper::Result<()> {
    let activity = Arc::new(Activity::default());
    let stream = TokioIo::new(Farewell::new(stream, activity.clone()));
    let (router, counted) = (context.router.clone(), activity.clone());
    let service = service_fn(move |request| {
        let guard = counted.request();
        let answer = router.clone().call(request);
        async move {
            let answer = answer.await;
            drop(guard);
            answer
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    tokio::select! {
        ended = &mut connection => return ended,
        _ = context.stopped.wait_for(|stopped| *stopped) => {}
    }
    // Busy connections are closed after the answer that is being made, which says so; idle ones with a last word.
    activity.close();
    connection.await
}

async fn serve_http2(context: &mut Context, stream: TlsStream<TcpStream>) -> hyper::Result<()> {
    let service = TowerToHyperService::new(context.router.clone());
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HANDSHAKE_TIMEOUT);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = &mut connection => return ended,
        _ = context.stopped.wait_for(|stopped| *stopped) => {}
    }
    // HTTP/2 has a proper way: streams that the client has opened are answered, new ones go elsewhere.
    connection.as_mut().graceful_shutdown();
    connection.await
}
