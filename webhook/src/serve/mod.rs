//! `kuberay-webhook serve`: the admission webhook as a server.
//!
//! `review` and `envelope` decide and are pure; `http` and `listener` carry requests; `probes`, `metrics` and `logging` tell how it
//! goes; this file puts them together. It needs no part of the operator.

mod args;
mod envelope;
mod farewell;
mod http;
mod listener;
pub mod logging;
mod metrics;
mod namespaces;
mod policy;
mod probes;
mod process;
mod review;
mod traces;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use certs::authority::{Authority, Settings, service_hosts};
use certs::directory::{Directory, POLL};
use certs::{Clock, Lifetimes, Resolver, Status, server_config};
use futures::future::BoxFuture;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use shared::features::FeatureGates;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use self::args::{CertMode, ListenAddress, LogFormat, ServeArgs};
pub use self::http::MAX_BODY;
pub use self::review::{Endpoint, Mode};

use self::http::App;
use self::listener::Listener;
use self::metrics::Metrics;
use self::policy::PolicyFiles;
use self::probes::Readiness;

/// Between the signal to end and the end of accepting: not ready any more, but still there for those who do not know yet.
const NOTICE: Duration = Duration::from_secs(1);
/// How long requests in flight may take to finish.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Serves until SIGTERM or SIGINT, then drains and returns.
pub async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let webhook = Webhook::bind(args, Lifetimes::default()).await?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    webhook.run(stop).await;
    Ok(())
}

/// A webhook that has its ports and its source of certificates, and serves as soon as it is [run](Webhook::run).
pub struct Webhook {
    app: Arc<App>,
    metrics: Arc<Metrics>,
    admission: TcpListener,
    health: Option<TcpListener>,
    metrics_listener: Option<TcpListener>,
    tls: TlsAcceptor,
    status: watch::Receiver<Status>,
    certificates: BoxFuture<'static, ()>,
    policy_files: PolicyFiles,
    /// For what needs a cluster only now and then.
    cluster: BoxFuture<'static, anyhow::Result<Client>>,
}

/// Where a webhook listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// The admission paths (TLS).
    pub admission: SocketAddr,
    /// `/healthz` and `/readyz`.
    pub health: Option<SocketAddr>,
    /// `/metrics`.
    pub metrics: Option<SocketAddr>,
}

impl Webhook {
    /// Takes the ports and prepares everything. `lifetimes` rule a self-managed CA.
    ///
    /// Fails if a port is taken, or if a self-managed CA is wanted and no cluster can be found.
    pub async fn bind(args: ServeArgs, lifetimes: Lifetimes) -> anyhow::Result<Self> {
        let resolver = Resolver::new();
        let tls = server_config(resolver.clone(), &["h2", "http/1.1"]).context("TLS cannot be set up")?;
        let (certificates, status, cluster) = certificates(&args, lifetimes, resolver).await?;
        let metrics = Arc::new(Metrics::new(status.clone()));
        let (policy_files, policy) = PolicyFiles::load(args.defaults_file.as_deref(), args.rules_file.as_deref(), &metrics).await?;
        let address = args.bind_address.map_or(ListenAddress::Everywhere(args.port), |ip| ListenAddress::At((ip, args.port).into()));
        Ok(Self {
            app: App::new(args.feature_gates, policy, metrics.clone()),
            metrics,
            admission: listen("--port", address).await?.context("the admission port cannot be switched off")?,
            health: listen("--health-probe-bind-address", args.health_probe_bind_address).await?,
            metrics_listener: listen("--metrics-addr", args.metrics_addr).await?,
            tls: TlsAcceptor::from(Arc::new(tls)),
            status,
            certificates,
            policy_files,
            cluster,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> anyhow::Result<Addresses> {
        let address = |listener: &TcpListener| listener.local_addr().context("the listener has no address");
        Ok(Addresses {
            admission: address(&self.admission)?,
            health: self.health.as_ref().map(address).transpose()?,
            metrics: self.metrics_listener.as_ref().map(address).transpose()?,
        })
    }

    /// Serves until `stop`, then fails readiness, lets requests finish, and returns.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let addresses = self.addresses().ok();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            admission = addresses.map(|all| all.admission.to_string()),
            health = addresses.and_then(|all| all.health).map(|address| address.to_string()),
            metrics = addresses.and_then(|all| all.metrics).map(|address| address.to_string()),
            feature_gates = %self.app.features,
            "webhook started"
        );
        let readiness = Readiness { app: self.app.clone(), certificate: self.status.clone(), clock: Clock::system() };
        let mut helpers = tokio::task::JoinSet::new();
        helpers.spawn(self.certificates);
        helpers.spawn(report_readiness(readiness.clone()));
        helpers.spawn(self.policy_files.run());
        helpers.spawn(self.app.namespaces.clone().run(self.app.policy.clone(), self.cluster));
        if let Some(listener) = self.health {
            helpers.spawn(plain(listener, probes::health(readiness)));
        }
        if let Some(listener) = self.metrics_listener {
            helpers.spawn(plain(listener, probes::metrics(self.metrics.clone())));
        }
        let listener = Listener { tcp: self.admission, tls: self.tls, router: http::router(&self.app), metrics: self.metrics };
        let app = self.app;
        let stop = async move {
            stop.await;
            tracing::info!("shutting down");
            app.draining.store(true, Ordering::Relaxed);
            tokio::time::sleep(NOTICE).await;
        };
        listener.run(stop, DRAIN_LIMIT).await;
        tracing::info!("webhook stopped");
    }
}

/// Answers the body of one request without a server, as an installation without fleet defaults and softened rules does.
///
/// # Errors
/// A sentence that says why the body is no review.
pub fn answer(endpoint: Endpoint, features: FeatureGates, body: &[u8]) -> Result<Vec<u8>, String> {
    let grounds = review::Grounds { features, ..review::Grounds::default() };
    review::review(endpoint, &grounds, body).map(|reviewed| reviewed.body).map_err(|error| error.to_string())
}

/// Where serving certificates come from: a loop to run, its state, and the way to a cluster for others. Mounted files need no
/// cluster, so that none is looked for until somebody asks.
#[allow(clippy::type_complexity, reason = "taken apart at once, at one place")]
async fn certificates(
    args: &ServeArgs,
    lifetimes: Lifetimes,
    resolver: Arc<Resolver>,
) -> anyhow::Result<(BoxFuture<'static, ()>, watch::Receiver<Status>, BoxFuture<'static, anyhow::Result<Client>>)> {
    let kubeconfig = args.kubeconfig.clone();
    if args.cert_mode == CertMode::Secret {
        let (directory, status) = Directory::new(args.cert_dir.clone(), POLL, resolver);
        return Ok((Box::pin(directory.run()), status, Box::pin(connect(kubeconfig))));
    }
    let client = connect(kubeconfig).await.context("a self-managed CA is kept in a cluster; without one use --cert-mode secret")?;
    let namespace = args.namespace.clone().filter(|name| !name.is_empty());
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let mut hosts = service_hosts(&args.service_name, &namespace);
    hosts.extend(args.bind_address.filter(|ip| !ip.is_unspecified() && !ip.is_loopback()).map(|ip| ip.to_string()));
    hosts.extend(args.certificate_hosts.iter().cloned());
    let settings = Settings {
        namespace,
        secret: args.secret_name.clone(),
        hosts,
        webhook_configurations: args.webhook_configurations.iter().filter(|name| !name.is_empty()).cloned().collect(),
        lifetimes,
    };
    let (authority, status) = Authority::new(client.clone(), settings, resolver, Clock::system());
    Ok((Box::pin(authority.run()), status, Box::pin(async { Ok(client) })))
}

async fn connect(kubeconfig: Option<PathBuf>) -> anyhow::Result<Client> {
    let config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(&path).with_context(|| format!("--kubeconfig {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::infer().await.context("no cluster found; give --kubeconfig")?,
    };
    Ok(Client::try_from(config)?)
}

async fn listen(flag: &str, address: ListenAddress) -> anyhow::Result<Option<TcpListener>> {
    let bound = match address {
        ListenAddress::Off => return Ok(None),
        ListenAddress::At(address) => TcpListener::bind(address).await,
        // Linux serves IPv4 on this socket, too; where IPv6 is switched off, IPv4 alone is everything.
        ListenAddress::Everywhere(port) => match TcpListener::bind((IpAddr::from(Ipv6Addr::UNSPECIFIED), port)).await {
            Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
            bound => bound,
        },
    };
    bound.map(Some).with_context(|| format!("{flag}: cannot listen on {address:?}"))
}

async fn plain(listener: TcpListener, router: axum::Router) {
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "a plain HTTP port has failed");
    }
}

/// Logs each change of readiness, once.
async fn report_readiness(readiness: Readiness) {
    let mut changes = readiness.certificate.clone();
    let mut known: Option<Vec<String>> = None;
    let mut known_troubles = Vec::new();
    loop {
        let (problems, troubles) = (readiness.problems(), readiness.troubles());
        if known.as_ref() != Some(&problems) {
            match problems.as_slice() {
                [] => tracing::info!("ready"),
                problems => tracing::info!(waiting = problems.join("; "), "not ready"),
            }
            known = Some(problems);
        }
        if known_troubles != troubles {
            if !troubles.is_empty() {
                tracing::warn!(troubles = troubles.join("; "), "some requests do not reach us");
            }
            known_troubles = troubles;
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
