//! Another webhook beside ours: an operator's binary that serves its admission as KubeRay's does, on port 9443 with the certificate in
//! `$TMPDIR/k8s-webhook-server/serving-certs`, when `ENABLE_WEBHOOKS` is set.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use testcluster::api::ApiServer;
use testcluster::pki::Pki;

use crate::measure::Watched;
use crate::operator::{Operator, logged};
use crate::server;

/// Where it serves; it has no flag for another port.
pub(super) const ADDRESS: &str = "127.0.0.1:9443";
/// Its review of RayJobs.
pub(super) const PATH: &str = "/validate-ray-io-v1-rayjob";

/// The peer and the API server that it wants to have.
pub(super) struct Peer {
    operator: Operator,
    server: ApiServer,
}

impl Peer {
    /// Starts `program` and waits until it serves.
    pub(super) async fn start(program: &Path, folder: &Path) -> Result<Self> {
        let server = server::bare().await?;
        let certificates = folder.join("k8s-webhook-server/serving-certs");
        std::fs::create_dir_all(&certificates)?;
        let pair = Pki::create(folder)?.server("peer", &["localhost".to_owned()])?;
        std::fs::write(certificates.join("tls.crt"), &pair.certificate)?;
        std::fs::write(certificates.join("tls.key"), &pair.key)?;
        let environment = [("ENABLE_WEBHOOKS", OsStr::new("true")), ("TMPDIR", folder.as_os_str())];
        let operator = Operator::start(&server, program, &[], &environment).await?;
        testcluster::wait::until("the peer's webhook", Duration::from_secs(30), || async {
            Ok(tokio::net::TcpStream::connect(ADDRESS).await.ok().map(drop))
        })
        .await
        .with_context(|| logged(&server))?;
        Ok(Self { operator, server })
    }

    pub(super) fn watched(&self) -> Watched {
        self.operator.watched()
    }

    pub(super) async fn stop(self) -> Result<()> {
        self.operator.stop().await?;
        self.server.stop().await
    }
}
