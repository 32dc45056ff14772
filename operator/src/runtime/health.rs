//! Health, readiness and metrics over HTTP (RC-248).

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse as _,
    routing::get,
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::metrics::{self, Metrics};

/// Whether the operator can do its work. Clones share the answer.
///
/// A standby is ready, too: its caches are complete, and a roll-out that waits for readiness must not wait for the lease.
#[derive(Clone)]
pub struct Readiness {
    check: Arc<Mutex<Check>>,
}

enum Check {
    /// Not ready, for this reason.
    No(String),
    /// As ready as this says.
    Ask(Box<dyn Fn() -> bool + Send + Sync>),
}

impl Default for Readiness {
    fn default() -> Self {
        Self { check: Arc::new(Mutex::new(Check::No("starting".to_owned()))) }
    }
}

impl Readiness {
    /// Not ready, for this reason.
    pub fn wait_for(&self, reason: impl fmt::Display) {
        self.set(Check::No(reason.to_string()));
    }

    /// Ready as soon as, and as long as, `complete` says that the caches are complete.
    pub fn ask(&self, complete: impl Fn() -> bool + Send + Sync + 'static) {
        self.set(Check::Ask(Box::new(complete)));
    }

    /// Nothing if ready, or else the reason why not.
    ///
    /// # Errors
    /// The reason.
    pub fn get(&self) -> Result<(), String> {
        match &*self.check.lock().unwrap_or_else(PoisonError::into_inner) {
            Check::No(reason) => Err(reason.clone()),
            Check::Ask(complete) if complete() => Ok(()),
            Check::Ask(_) => Err("waiting for the first list of every watched kind".to_owned()),
        }
    }

    fn set(&self, check: Check) {
        *self.check.lock().unwrap_or_else(PoisonError::into_inner) = check;
    }
}

/// Servers that run until they are dropped.
#[derive(Default)]
pub struct Servers {
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Servers {
    /// Serves health and readiness at `probes` and metrics at `scrapes`; an address that is empty or `0` is not served. One address
    /// for both is fine.
    ///
    /// # Errors
    /// A sentence for the user if an address cannot be used.
    pub async fn start(probes: &str, scrapes: &str, readiness: Readiness, metrics: Metrics) -> Result<Self, String> {
        let health = Router::new().route("/healthz", get(async || "ok")).route(
            "/readyz",
            get(async move || match readiness.get() {
                Ok(()) => (StatusCode::OK, "ok".to_owned()),
                Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}")),
            }),
        );
        let numbers =
            Router::new().route("/metrics", get(async move || ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.render()).into_response()));
        let mut servers = Self::default();
        if probes == scrapes {
            servers.serve(probes, health.merge(numbers)).await?;
        } else {
            servers.serve(probes, health).await?;
            servers.serve(scrapes, numbers).await?;
        }
        Ok(servers)
    }

    async fn serve(&mut self, address: &str, router: Router) -> Result<(), String> {
        let Some(listener) = listen(address).await.map_err(|error| format!("cannot listen on `{address}`: {error}"))? else {
            return Ok(());
        };
        self.tasks.push(tokio::spawn(async move {
            // Ends with the task only: a connection that cannot be accepted is retried.
            let _ = axum::serve(listener, router).await;
        }));
        Ok(())
    }
}

async fn listen(address: &str) -> io::Result<Option<TcpListener>> {
    let candidates = match Address::parse(address) {
        Some(Address::Off) => return Ok(None),
        Some(Address::Exact(address)) => vec![address],
        // Both families at once, or what the machine has.
        Some(Address::Any(port)) => {
            vec![(IpAddr::from(Ipv6Addr::UNSPECIFIED), port).into(), (IpAddr::from(Ipv4Addr::UNSPECIFIED), port).into()]
        }
        Some(Address::Name(name)) => tokio::net::lookup_host(name).await?.collect(),
        None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected HOST:PORT or :PORT")),
    };
    TcpListener::bind(&*candidates).await.map(Some)
}

/// An address as Go programs write it.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Off,
    /// `:PORT`
    Any(u16),
    Exact(SocketAddr),
    /// `NAME:PORT`
    Name(String),
}

impl Address {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text == "0" {
            return Some(Self::Off);
        }
        if let Ok(exact) = text.parse() {
            return Some(Self::Exact(exact));
        }
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok()?;
        Some(if host.is_empty() { Self::Any(port) } else { Self::Name(text.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_go_writes_them() {
        let table = [
            ("", Some(Address::Off)),
            ("0", Some(Address::Off)),
            (":8080", Some(Address::Any(8080))),
            ("127.0.0.1:1", Some(Address::Exact(([127, 0, 0, 1], 1).into()))),
            ("[::1]:1", Some(Address::Exact((Ipv6Addr::LOCALHOST, 1).into()))),
            ("localhost:1", Some(Address::Name("localhost:1".to_owned()))),
            ("8080", None),
            (":http", None),
            (":70000", None),
        ];
        for (text, wanted) in table {
            assert_eq!(Address::parse(text), wanted, "{text}");
        }
    }

    #[test]
    fn readiness_says_why_not() {
        let readiness = Readiness::default();
        assert_eq!(readiness.get(), Err("starting".to_owned()));
        readiness.wait_for("no definitions");
        assert_eq!(readiness.get(), Err("no definitions".to_owned()));
        readiness.ask(|| false);
        assert!(readiness.get().unwrap_err().contains("first list"));
        readiness.ask(|| true);
        assert_eq!(readiness.get(), Ok(()));
    }

    async fn ask(address: SocketAddr, path: &str) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn one_address_serves_everything() {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let readiness = Readiness::default();
        let text = address.to_string();
        let _servers = Servers::start(&text, &text, readiness.clone(), Metrics::default()).await.unwrap();
        assert!(ask(address, "/healthz").await.starts_with("HTTP/1.0 200"));
        let answer = ask(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.0 503") && answer.ends_with("not ready: starting"), "{answer}");
        readiness.ask(|| true);
        assert!(ask(address, "/readyz").await.starts_with("HTTP/1.0 200"));
        let answer = ask(address, "/metrics").await;
        assert!(answer.contains("process_resident_memory_bytes ") && answer.trim_end().ends_with("# EOF"), "{answer}");
    }

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = taken.local_addr().unwrap().to_string();
        let error = Servers::start(&text, "0", Readiness::default(), Metrics::default()).await.map(|_| ()).unwrap_err();
        assert!(error.contains(&text), "{error}");
    }
}
