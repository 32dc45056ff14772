//! The API server of a test binary.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use testcluster::api::{ApiServer, FakeNodes, Options};
use testcluster::progress::Progress;

/// What a test binary wants of its API server besides the CRDs.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Scheduler and nodes that play Pods.
    pub fake_nodes: Option<FakeNodes>,
}

/// The running API server, for as long as the test process lives; a guard process removes it afterwards.
pub struct Server {
    server: ApiServer,
}

static SERVER: OnceLock<Server> = OnceLock::new();

/// The API server of this test binary with our CRDs, started by the first test that asks.
///
/// # Panics
/// When it does not start: no test can go on then.
#[allow(clippy::expect_used)] // see above
pub fn server() -> &'static Server {
    server_with(Wanted::default())
}

/// As [`server`]; what is `wanted` counts only for the first call.
///
/// # Panics
/// As [`server`].
#[allow(clippy::expect_used)] // see above
pub fn server_with(wanted: Wanted) -> &'static Server {
    SERVER.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A thread and a runtime of its own: those of the test that came first end with it.
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
            let started = runtime.block_on(start(&wanted));
            let _ = send.send(started);
            runtime.block_on(std::future::pending::<()>());
        });
        let server = receive.recv().expect("the server's thread").expect("an API server");
        Server { server }
    })
}

async fn start(wanted: &Wanted) -> Result<ApiServer> {
    let crds = shared::crd::all().into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let options = Options {
        crds,
        scheduler: wanted.fake_nodes.is_some(),
        fake_nodes: wanted.fake_nodes.clone(),
        api_arguments: vec![
            format!("--audit-policy-file={}/audit-policy.yaml", env!("CARGO_MANIFEST_DIR")),
            // Into the API server's own log, where `rbac::Audit` looks for it.
            "--audit-log-path=-".to_owned(),
        ],
        progress: Progress::stderr(),
        ..Options::default()
    };
    ApiServer::start(options).await
}

impl Server {
    /// An API server for one test alone, which may do to it what it likes.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn alone(wanted: Wanted) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self { server: start(&wanted).await? })
    }

    /// See [`ApiServer::restart_api_server`].
    ///
    /// # Errors
    /// When it does not come up again.
    pub async fn restart_api_server(&mut self, outage: Duration) -> Result<()> {
        self.server.restart_api_server(outage).await
    }

    /// The instance itself: keys, kubeconfigs, `kubectl`, `helm`.
    pub fn instance(&self) -> &ApiServer {
        &self.server
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig_path()
    }

    /// A client of the calling test's own: connections belong to the runtime that made them.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        Client::try_from(self.server.config().await?).context("making a client")
    }
}

/// A fresh namespace whose name begins with `prefix`. It stays until the API server goes: without a kubelet nothing in it costs anything.
///
/// # Errors
/// When the API server refuses.
pub async fn namespace(client: &Client, prefix: &str) -> Result<String> {
    let metadata = ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let created = namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
    Ok(created.name_any())
}
