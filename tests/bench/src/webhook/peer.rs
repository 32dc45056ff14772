//! Another webhook beside ours: an operator's binary that serves its admission as KubeRay's does, on port 9443 with the certificate in
//! `$TMPDIR/k8s-webhook-server/serving-certs`, when `ENABLE_WEBHOOKS` is set.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use testcluster::api::{self, ApiServer};
use testcluster::local::free_port;
use testcluster::pki::Pki;
use testcluster::progress::Progress;
use tokio::process::{Child, Command};

use crate::measure::Watched;

/// Where it serves; it has no flag for another port.
pub(super) const ADDRESS: &str = "127.0.0.1:9443";
/// Its review of RayJobs.
pub(super) const PATH: &str = "/validate-ray-io-v1-rayjob";

/// The peer and the API server that it wants to have.
pub(super) struct Peer {
    child: Child,
    server: ApiServer,
    pub(super) watched: Watched,
}

impl Peer {
    /// Starts `program` and waits until it serves.
    pub(super) async fn start(program: &Path, folder: &Path) -> Result<Self> {
        let crds = shared::crd::all().into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
        let server = ApiServer::start(api::Options { crds, progress: Progress::stderr(), ..api::Options::default() }).await?;
        let certificates = folder.join("k8s-webhook-server/serving-certs");
        std::fs::create_dir_all(&certificates)?;
        let pair = Pki::create(folder)?.server("peer", &["localhost".to_owned()])?;
        std::fs::write(certificates.join("tls.crt"), &pair.certificate)?;
        std::fs::write(certificates.join("tls.key"), &pair.key)?;
        let log = std::fs::File::create(folder.join("peer.log"))?;
        let child = Command::new(program)
            .arg("--kubeconfig")
            .arg(server.kubeconfig_path())
            .arg("--enable-leader-election=false")
            .arg(format!("--metrics-addr=127.0.0.1:{}", free_port()?))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{}", free_port()?))
            .env("ENABLE_WEBHOOKS", "true")
            .env("TMPDIR", folder)
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let watched = Watched(child.id().context("the peer has ended already")?);
        let peer = Self { child, server, watched };
        testcluster::wait::until("the peer's webhook", Duration::from_secs(30), || async {
            Ok(tokio::net::TcpStream::connect(ADDRESS).await.ok().map(drop))
        })
        .await
        .with_context(|| std::fs::read_to_string(folder.join("peer.log")).unwrap_or_default())?;
        Ok(peer)
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("stopping the peer")?;
        self.server.stop().await
    }
}
