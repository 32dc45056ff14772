//! The control plane's command lines and the order in which its programs come up.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::process::Command;

use crate::{
    fetch,
    kubeconfig::{self, Credentials},
    pki::{Pair, Pki, write_secret},
    process::Daemon,
    wait,
};

/// How long the API server may take until it is ready; with a cold disk cache it needs most of a minute.
const READY: Duration = Duration::from_secs(120);

/// Name of the API server among the daemons.
const API_SERVER: &str = "kube-apiserver";

/// Where one control plane lives and listens.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Folder of everything.
    pub(crate) dir: PathBuf,
    /// Address that the API server listens on.
    pub(crate) address: IpAddr,
    /// Port of the API server.
    pub(crate) api_port: u16,
    /// Ports of etcd for clients and peers, on the loopback address.
    pub(crate) etcd_ports: (u16, u16),
    /// Addresses of Services.
    pub(crate) service_cidr: String,
    /// Addresses of Pods, where real nodes get a part of them.
    pub(crate) pod_cidr: Option<String>,
    /// Further arguments of the API server.
    pub(crate) api_arguments: Vec<String>,
}

impl Layout {
    pub(crate) fn url(&self) -> String {
        format!("https://{}", std::net::SocketAddr::new(self.address, self.api_port))
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn pki(&self, file: &str) -> String {
        self.dir.join("pki").join(file).display().to_string()
    }

    fn etcd_arguments(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.etcd_ports.0);
        let peer = format!("http://127.0.0.1:{}", self.etcd_ports.1);
        vec![
            format!("--data-dir={}", self.dir.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // Speed for tests. What a crash of the machine loses here is thrown away anyway.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    fn apiserver_arguments(&self) -> Vec<String> {
        let address = self.address;
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_ports.0),
            format!("--bind-address={address}"),
            format!("--advertise-address={address}"),
            format!("--secure-port={}", self.api_port),
            format!("--tls-cert-file={}", self.pki("apiserver.crt")),
            format!("--tls-private-key-file={}", self.pki("apiserver.key")),
            format!("--client-ca-file={}", self.pki("ca.crt")),
            format!("--service-account-key-file={}", self.pki("sa.pub")),
            format!("--service-account-signing-key-file={}", self.pki("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-cluster-ip-range={}", self.service_cidr),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
            // Fleet tests send thousands of requests at once.
            "--max-requests-inflight=3000".to_owned(),
            "--max-mutating-requests-inflight=1000".to_owned(),
        ];
        if self.pod_cidr.is_none() {
            // Nothing routes to the Service `kubernetes` without nodes.
            arguments.push("--endpoint-reconciler-type=none".to_owned());
        }
        arguments.extend(self.api_arguments.iter().cloned());
        arguments
    }

    fn controller_manager_arguments(&self) -> Vec<String> {
        let mut arguments = self.client_arguments();
        arguments.extend([
            format!("--service-account-private-key-file={}", self.pki("sa.key")),
            format!("--root-ca-file={}", self.pki("ca.crt")),
            format!("--cluster-signing-cert-file={}", self.pki("ca.crt")),
            format!("--cluster-signing-key-file={}", self.pki("ca.key")),
            "--use-service-account-credentials=true".to_owned(),
        ]);
        if let Some(pods) = &self.pod_cidr {
            arguments.extend(["--allocate-node-cidrs=true".to_owned(), format!("--cluster-cidr={pods}")]);
        }
        arguments
    }

    /// What controller-manager and scheduler have in common. They serve nothing (port 0). The default rates of 20 to 50 requests a
    /// second would be what a fleet test measures.
    fn client_arguments(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig();
        vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--authentication-kubeconfig={}", kubeconfig.display()),
            format!("--authorization-kubeconfig={}", kubeconfig.display()),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            "--profiling=false".to_owned(),
        ]
    }

    /// The names under which clients inside and outside reach the API server.
    fn server_names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "127.0.0.1",
        ]
        .map(str::to_owned)
        .to_vec();
        names.push(first_address(&self.service_cidr)?);
        names.push(self.address.to_string());
        names.dedup();
        Ok(names)
    }
}

/// The first usable address of an IPv4 range: the Service `kubernetes` gets it.
fn first_address(cidr: &str) -> Result<String> {
    let network = cidr.split_once('/').map_or(cidr, |(network, _)| network);
    let network: std::net::Ipv4Addr = network.parse().with_context(|| format!("{cidr} is not an IPv4 range"))?;
    Ok(std::net::Ipv4Addr::from(u32::from(network).saturating_add(1)).to_string())
}

/// A control plane that is coming up.
pub(crate) struct Starting {
    pub(crate) layout: Layout,
    pub(crate) pki: Pki,
    pub(crate) admin: Pair,
    pub(crate) daemons: Vec<Daemon>,
}

impl Starting {
    /// Makes keys and the administrator's kubeconfig. Nothing runs yet.
    pub(crate) fn prepare(layout: Layout) -> Result<Self> {
        let pki = Pki::create(&layout.dir.join("pki"))?;
        pki.write("apiserver", &pki.server("kube-apiserver", &layout.server_names()?)?)?;
        let admin = pki.client("testbed-admin", Some("system:masters"))?;
        pki.write("admin", &admin)?;
        write_secret(&layout.kubeconfig(), &kubeconfig::render(&layout.url(), &pki.ca(), &Credentials::Certificate(&admin)))?;
        Ok(Self { layout, pki, admin, daemons: Vec::new() })
    }

    /// Starts etcd and the API server and waits until it is ready.
    pub(crate) async fn api(&mut self, programs: &fetch::ControlPlane) -> Result<Client> {
        self.spawn("etcd", &programs.etcd, self.layout.etcd_arguments())?;
        self.spawn(API_SERVER, &programs.apiserver, self.layout.apiserver_arguments())?;
        let client = client(&self.layout.kubeconfig()).await?;
        api_is_ready(&client, &mut self.daemons).await?;
        Ok(client)
    }

    /// Starts the controller-manager and waits for the first thing that it makes and every Pod needs.
    pub(crate) async fn controller_manager(&mut self, programs: &fetch::ControlPlane, client: &Client) -> Result<()> {
        self.spawn("kube-controller-manager", &programs.controller_manager, self.layout.controller_manager_arguments())?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let daemons = &mut self.daemons;
        wait::until("the first service account", READY, || {
            let running = daemons.iter_mut().try_for_each(Daemon::check);
            let accounts = &accounts;
            async move {
                running?;
                Ok(accounts.get_opt("default").await?)
            }
        })
        .await?;
        Ok(())
    }

    /// Starts the scheduler.
    pub(crate) fn scheduler(&mut self, programs: &fetch::ControlPlane) -> Result<()> {
        self.spawn("kube-scheduler", &programs.scheduler, self.layout.client_arguments())
    }

    /// Starts one more program beside the control plane.
    pub(crate) fn spawn(&mut self, name: &str, program: &Path, arguments: Vec<String>) -> Result<()> {
        self.daemons.push(spawn(&self.layout, name, program, arguments)?);
        Ok(())
    }
}

fn spawn(layout: &Layout, name: &str, program: &Path, arguments: Vec<String>) -> Result<Daemon> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&layout.dir);
    Daemon::spawn(&layout.dir, name, command)
}

async fn api_is_ready(client: &Client, daemons: &mut [Daemon]) -> Result<()> {
    wait::until("the API server's readiness", READY, || {
        let running = daemons.iter_mut().try_for_each(Daemon::check);
        async move {
            running?;
            Ok(client.request_text(http_get("/readyz")?).await.ok().map(drop))
        }
    })
    .await
}

/// Kills the API server among `daemons`, leaves its clients alone for `outage`, starts it anew and waits until it is ready.
pub(crate) async fn restart_api(
    layout: &Layout,
    daemons: &mut [Daemon],
    programs: &fetch::ControlPlane,
    client: &Client,
    outage: Duration,
) -> Result<()> {
    let api = daemons.iter_mut().find(|daemon| daemon.name() == API_SERVER).context("no API server runs")?;
    api.kill().await?;
    tokio::time::sleep(outage).await;
    *api = spawn(layout, API_SERVER, &programs.apiserver, layout.apiserver_arguments())?;
    api_is_ready(client, daemons).await
}

/// A client for the cluster of a kubeconfig file.
///
/// # Errors
/// When the file cannot be read or does not make sense.
pub async fn client(path: &Path) -> Result<Client> {
    Ok(Client::try_from(config(path).await?)?)
}

/// The client configuration of a kubeconfig file.
///
/// # Errors
/// When the file cannot be read or does not make sense.
pub async fn config(path: &Path) -> Result<kube::Config> {
    let file = kube::config::Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await?)
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}
