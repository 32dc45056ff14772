//! *API profile*: etcd, API server and controller-manager, with a scheduler and fake nodes where wanted.
//!
//! Up in a few seconds, on ports of its own, so that many can run side by side. An instance ends with the value that stands for it:
//! by [`ApiServer::stop`], by dropping it, or with the process that made it, however that ends.

mod fake_nodes;
mod instance;

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::ServiceAccount,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, api::PostParams};
use tokio::process::Command;

use crate::{
    cache::Cache,
    control_plane::{self, Layout, Starting},
    fetch,
    kubeconfig::{self, Credentials},
    pki::{Pair, Pki, write_secret},
    ports::Port,
    process,
    progress::Progress,
    wait,
};
use instance::Instance;

pub use fake_nodes::FakeNodes;
pub(crate) use fake_nodes::ready as node_ready;
pub use instance::leftovers;

/// Keeps an instance's folder (logs, keys, data) after it has stopped, to look into a failure.
pub const KEEP_VARIABLE: &str = "KUBERAY_TESTBED_KEEP";

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Installed before the controller-manager starts: its garbage collector notices kinds that come later only after half a minute.
    pub crds: Vec<CustomResourceDefinition>,
    /// YAML files or folders of them, applied at the same moment.
    pub manifests: Vec<PathBuf>,
    /// Runs the controller-manager (garbage collection, service accounts, Jobs, EndpointSlices).
    pub controller_manager: bool,
    /// Runs the scheduler.
    pub scheduler: bool,
    /// Nodes and Pods played by KWOK. They need the scheduler to get Pods.
    pub fake_nodes: Option<FakeNodes>,
    /// Further arguments of the API server.
    pub api_arguments: Vec<String>,
    /// Where built programs are. `None` is the cache that the environment names.
    pub cache: Option<Cache>,
    /// Where progress goes.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            crds: Vec::new(),
            manifests: Vec::new(),
            controller_manager: true,
            scheduler: false,
            fake_nodes: None,
            api_arguments: Vec::new(),
            cache: None,
            progress: Progress::stderr(),
        }
    }
}

/// A running instance.
pub struct ApiServer {
    layout: Layout,
    pki: Pki,
    admin: Pair,
    client: Client,
    tools: fetch::KubectlTools,
    programs: fetch::ControlPlane,
    daemons: Vec<process::Daemon>,
    instance: Instance,
    _ports: Vec<Port>,
}

impl ApiServer {
    /// Starts an instance, after building what is missing for it.
    ///
    /// # Errors
    /// When a build fails or a program does not come up; the error shows the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        crate::platform::require_linux()?;
        let cache = options.cache.clone().map_or_else(Cache::from_env, Ok)?;
        let progress = &options.progress;
        let programs = fetch::control_plane(&cache, progress).await?;
        let tools = fetch::kubectl(&cache, progress).await?;
        let kwok = match &options.fake_nodes {
            Some(_) => Some(fetch::kwok(&cache, progress).await?),
            None => None,
        };
        let instance = Instance::create().await?;
        let ports = (0..3).map(|_| Port::reserve(&cache)).collect::<Result<Vec<_>>>()?;
        let number = |index: usize| ports.get(index).map(Port::number).context("three ports were reserved");
        let layout = Layout {
            dir: instance.dir().to_owned(),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            api_port: number(0)?,
            etcd_ports: (number(1)?, number(2)?),
            service_cidr: "10.96.0.0/16".to_owned(),
            pod_cidr: None,
            api_arguments: options.api_arguments.clone(),
        };
        let start = async {
            let mut starting = Starting::prepare(layout)?;
            let client = starting.api(&programs).await?;
            install(&client, &tools, &starting.layout.kubeconfig(), &options).await?;
            if options.controller_manager {
                starting.controller_manager(&programs, &client).await?;
            }
            if options.scheduler {
                starting.scheduler(&programs)?;
            }
            if let (Some(nodes), Some(kwok)) = (&options.fake_nodes, &kwok) {
                fake_nodes::start(&mut starting, nodes, kwok, &client, &instance).await?;
            }
            Ok((starting, client))
        };
        let (starting, client) = progress.step("starting an API server", start).await?;
        let Starting { layout, pki, admin, daemons } = starting;
        Ok(Self { layout, pki, admin, client, tools, programs, daemons, instance, _ports: ports })
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The folder with keys, logs (`log/`) and kubeconfigs.
    pub fn dir(&self) -> &Path {
        &self.layout.dir
    }

    /// The API server's address, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.layout.url()
    }

    /// The instance's authority: `ca.crt` and `admin.crt` are among its files, and it signs server certificates that tests need.
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// An administrator's client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// An administrator's client configuration.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn config(&self) -> Result<kube::Config> {
        control_plane::config(&self.kubeconfig_path()).await
    }

    /// `kubectl` as the administrator, arguments still to come.
    pub fn kubectl(&self) -> Command {
        kubectl(&self.tools, &self.kubeconfig_path())
    }

    /// `helm` as the administrator, arguments still to come.
    pub fn helm(&self) -> Command {
        let mut command = Command::new(&self.tools.helm);
        command.env("KUBECONFIG", self.kubeconfig_path());
        command
    }

    /// A kubeconfig of a user who has no rights but those that RBAC gives to the name and the groups.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        self.write_kubeconfig(&format!("user-{user}"), &Credentials::Impersonation { by: &self.admin, user, groups })
    }

    /// A kubeconfig with a fresh token of a service account, which is created if it does not exist.
    ///
    /// # Errors
    /// When the API server refuses, or the file cannot be written.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        if accounts.get_opt(name).await?.is_none() {
            let mut account = ServiceAccount::default();
            account.metadata.name = Some(name.to_owned());
            accounts.create(&PostParams::default(), &account).await?;
        }
        let spec = TokenRequestSpec { expiration_seconds: Some(86_400), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await?;
        let token = answer.status.and_then(|status| status.token).context("the token request has no answer")?;
        self.write_kubeconfig(&format!("account-{namespace}-{name}"), &Credentials::Token(&token))
    }

    /// Identities of the running programs with their names, the guard aside.
    pub fn processes(&self) -> Vec<(String, process::Identity)> {
        self.daemons.iter().map(|daemon| (daemon.name().to_owned(), daemon.identity())).collect()
    }

    /// Kills the API server as a crash would, and starts it again after `outage`. What it has stored stays; its watches are cut.
    ///
    /// # Errors
    /// When it does not come up again.
    pub async fn restart_api_server(&mut self, outage: Duration) -> Result<()> {
        control_plane::restart_api(&self.layout, &mut self.daemons, &self.programs, &self.client, outage).await
    }

    /// The process that cleans up should this one die.
    pub fn guard_pid(&self) -> Option<u32> {
        self.instance.guard_pid()
    }

    /// Stops everything and removes the folder (unless `KUBERAY_TESTBED_KEEP` is set).
    ///
    /// # Errors
    /// When a program does not end or the folder cannot be removed.
    pub async fn stop(mut self) -> Result<()> {
        for daemon in self.daemons.iter_mut().rev() {
            daemon.kill().await?;
        }
        self.instance.remove()
    }

    fn write_kubeconfig(&self, name: &str, credentials: &Credentials<'_>) -> Result<PathBuf> {
        let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let path = self.layout.dir.join(format!("{safe}.kubeconfig"));
        write_secret(&path, &kubeconfig::render(&self.layout.url(), &self.pki.ca(), credentials))?;
        Ok(path)
    }
}

/// Creates the CRDs and applies the manifests, then waits until every CRD is served.
async fn install(client: &Client, tools: &fetch::KubectlTools, kubeconfig: &Path, options: &Options) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in &options.crds {
        crds.create(&PostParams::default(), crd).await.with_context(|| format!("creating the CRD {:?}", crd.metadata.name))?;
    }
    for manifest in &options.manifests {
        let mut apply = kubectl(tools, kubeconfig);
        apply.args(["apply", "--server-side", "--filename"]).arg(manifest);
        process::run(&mut apply).await?;
    }
    wait::until("every CRD being served", Duration::from_secs(120), || {
        let crds = &crds;
        async move {
            let all = crds.list(&kube::api::ListParams::default()).await?;
            Ok(all.items.iter().all(established).then_some(()))
        }
    })
    .await
}

fn established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| list.iter().any(|condition| condition.type_ == "Established" && condition.status == "True"))
}

fn kubectl(tools: &fetch::KubectlTools, kubeconfig: &Path) -> Command {
    let mut command = Command::new(&tools.kubectl);
    command.env("KUBECONFIG", kubeconfig);
    command
}
