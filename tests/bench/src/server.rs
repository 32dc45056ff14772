//! The API server under measurement, with fake nodes.

use std::future::Future;

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use testcluster::api::{self, ApiServer, FakeNodes};
use testcluster::progress::Progress;

use crate::measure::Watched;

/// Where everything is that a benchmark creates.
pub(crate) const NAMESPACE: &str = "fleet";
/// How often a call is made whose connection breaks off.
const TRIES: usize = 10;

/// Starts an API server with our CRDs, [`NAMESPACE`] and fake nodes.
///
/// # Errors
/// When a part of it does not start.
pub(crate) async fn start(nodes: FakeNodes) -> Result<ApiServer> {
    let server = with_crds(api::Options { scheduler: true, fake_nodes: Some(nodes), ..api::Options::default() }).await?;
    namespace(&server, NAMESPACE).await?;
    Ok(server)
}

/// Starts an API server with our CRDs and nothing else.
///
/// # Errors
/// As [`start`].
pub(crate) async fn bare() -> Result<ApiServer> {
    with_crds(api::Options::default()).await
}

async fn with_crds(options: api::Options) -> Result<ApiServer> {
    let crds = shared::crd::all().into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    ApiServer::start(api::Options { crds, progress: Progress::stderr(), ..options }).await
}

/// Makes a namespace.
///
/// # Errors
/// When the API server refuses.
pub(crate) async fn namespace(server: &ApiServer, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    Api::<Namespace>::all(server.client()).create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    Ok(())
}

/// CPU that each part of the control plane has used so far, as text: it shows what an operator costs others.
pub(crate) fn cpu(server: &ApiServer) -> String {
    let part = |(name, process): (String, testcluster::process::Identity)| {
        let cpu = Watched(u32::try_from(process.pid).ok()?).cpu().ok()?;
        Some(format!("{name} {:.0} s", cpu.as_secs_f64()))
    };
    server.processes().into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

/// Makes a call again while its connection breaks off: one that was idle may be closed at the moment of its next use, and a long call
/// is ended by the API server after a minute.
///
/// # Errors
/// When the API server refuses, or the connection breaks off each time.
pub(crate) async fn again<T, F: Future<Output = kube::Result<T>>>(call: impl Fn() -> F) -> kube::Result<T> {
    for _ in 1..TRIES {
        match call().await {
            Err(kube::Error::HyperError(_) | kube::Error::Service(_)) => {}
            Err(kube::Error::Api(status)) if status.code == 504 => {}
            answer => return answer,
        }
    }
    call().await
}
