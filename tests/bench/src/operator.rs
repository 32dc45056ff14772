//! An operator as a process of this machine.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use testcluster::api::ApiServer;
use testcluster::local::{free_port, get};
use tokio::process::{Child, Command};

use crate::measure::Watched;

/// Its output, in the folder of the API server.
const LOG: &str = "operator.log";

/// What the operator of an API server has said.
pub(crate) fn logged(server: &ApiServer) -> String {
    std::fs::read_to_string(server.dir().join(LOG)).unwrap_or_default()
}

/// A running operator.
pub(crate) struct Operator {
    child: Child,
    watched: Watched,
    metrics: u16,
}

impl Operator {
    /// Starts `program` with flags that every operator for these kinds takes, further `flags` and `environment`, and waits until it is ready.
    pub(crate) async fn start(server: &ApiServer, program: &Path, flags: &[&str], environment: &[(&str, &OsStr)]) -> Result<Self> {
        let (metrics, health) = (free_port()?, free_port()?);
        let log = std::fs::File::create(server.dir().join(LOG)).context("creating the operator's log")?;
        let child = Command::new(program)
            .arg("--kubeconfig")
            .arg(server.kubeconfig_path())
            .arg("--enable-leader-election=false")
            .arg("--reconcile-concurrency=10")
            .args(flags)
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{health}"))
            .envs(environment.iter().copied())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let watched = Watched(child.id().context("the operator has ended already")?);
        let operator = Self { child, watched, metrics };
        testcluster::wait::until("the operator's readiness", Duration::from_secs(30), || async {
            Ok(get(health, "/readyz").await.ok().map(drop))
        })
        .await
        .with_context(|| logged(server))?;
        Ok(operator)
    }

    pub(crate) fn watched(&self) -> Watched {
        self.watched
    }

    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.watched.cpu()
    }

    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.watched.memory()
    }

    /// Sum of a counter over all its labels.
    pub(crate) async fn counted(&self, counter: &str) -> Result<u64> {
        let total = self.lines(counter).await?.iter().map(|(_, value)| value).sum();
        ensure!(total > 0, "the operator does not count {counter}");
        Ok(total)
    }

    /// API writes so far by kind and verb, the most frequent first. Empty for a program that does not count them.
    pub(crate) async fn writes(&self) -> Result<Vec<(String, u64)>> {
        let mut writes: BTreeMap<String, u64> = BTreeMap::new();
        for (labels, value) in self.lines("kuberay_api_writes_total").await? {
            let label = |name: &str| labels.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            *writes.entry(format!("{} {}", label("verb"), label("kind"))).or_default() += value;
        }
        let mut writes: Vec<(String, u64)> = writes.into_iter().collect();
        writes.sort_by_key(|(_, count)| Reverse(*count));
        Ok(writes)
    }

    /// Labels and values of a counter.
    async fn lines(&self, counter: &str) -> Result<Vec<(String, u64)>> {
        let text = get(self.metrics, "/metrics").await?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts
        let value = |text: &str| text.parse::<f64>().ok().map(|value| value as u64);
        let line = |line: &str| line.rsplit_once(' ').and_then(|(labels, number)| Some((labels.to_owned(), value(number)?)));
        Ok(text.lines().filter(|line| line.starts_with(counter)).filter_map(line).collect())
    }

    /// Waits until the operator has used next to no CPU for two seconds.
    pub(crate) async fn wait_quiet(&self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        let mut ticks = tokio::time::interval(Duration::from_secs(2));
        ticks.tick().await;
        let mut last = self.cpu()?;
        while Instant::now() < deadline {
            ticks.tick().await;
            let now = self.cpu()?;
            if now.saturating_sub(last) < Duration::from_millis(30) {
                return Ok(());
            }
            last = now;
        }
        bail!("the operator is still busy after {} s", limit.as_secs())
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("stopping the operator")
    }
}
