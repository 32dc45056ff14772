//! Closing an HTTP/1.1 connection without losing a request.
//!
//! A server that closes an idle connection may cross a request on the wire. The client then sees the connection end and does not
//! know whether to send a POST again; an API server fails the admission. So a connection is closed with a last word: an answer that
//! says "not here, try again in a second". A request that crosses the closing gets it as its answer, and API servers follow it; on a
//! connection that is really idle nobody reads it. Afterwards the connection is read until the client has closed it, too, because
//! the kernel of a closed socket answers late data with a reset that could overtake the last word.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// API servers repeat a request after a status of 500 or above with this header, whatever its method.
const LAST_WORD: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\nshutting down\n";
/// How long a closed connection is read on.
const LINGER: Duration = Duration::from_millis(500);

/// What a connection and the requests on it know of each other.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests handed to the service and not answered yet.
    requests: AtomicUsize,
    /// Set when the connection has to be closed as soon as it is idle.
    closing: AtomicBool,
}

impl Activity {
    /// Counts a request until the guard is dropped.
    pub(super) fn request(self: &Arc<Self>) -> RequestGuard {
        self.requests.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }

    /// From now on the connection is closed when it is idle. Takes effect when the connection is polled.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }
}

/// A request in flight.
pub(super) struct RequestGuard(Arc<Activity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that says the last word when it has to close while idle.
pub(super) struct Farewell<S> {
    stream: S,
    activity: Arc<Activity>,
    /// A request has come in whose answer is not completely written. The beginning of a request does not count: its sender may as
    /// well get the last word.
    unanswered: bool,
    /// How much of the last word has been written; `None` while it is not due.
    spoken: Option<usize>,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Farewell<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, unanswered: false, spoken: None, lingering: None }
    }

    /// Whether nothing is going on, as far as both sides can know.
    fn idle(&self) -> bool {
        !self.unanswered && self.activity.requests.load(Ordering::Relaxed) == 0
    }

    fn speak(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut spoken = self.spoken.unwrap_or_default();
        while let Some(rest) = LAST_WORD.get(spoken..).filter(|rest| !rest.is_empty()) {
            spoken += ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            self.spoken = Some(spoken);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Reads and forgets until the client has closed its side, or the time is over.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.lingering.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        if timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let mut space = [0; 1024];
            let mut buffer = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Farewell<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.spoken.is_none() {
            let before = buffer.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(context, buffer);
            self.unanswered |= buffer.filled().len() > before;
            if read.is_ready() || !self.idle() || !self.activity.closing.load(Ordering::Relaxed) {
                return read;
            }
            self.spoken = Some(0);
        }
        // An error means that the client has gone; the connection ends either way.
        let _ = ready!(self.speak(context));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Farewell<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // An answer is written in one go, so that a flush without a request in flight is its end.
        if self.activity.requests.load(Ordering::Relaxed) == 0 {
            self.unanswered = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        if self.spoken.is_some() {
            ready!(self.linger(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[path = "farewell_tests.rs"]
mod tests;
