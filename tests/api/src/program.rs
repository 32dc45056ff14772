//! The two programs as processes of this machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use testcluster::local::{free_port, get};
use tokio::process::{Child, Command};

/// A running program. It is killed when this value is dropped.
pub struct Program {
    child: Child,
    log: PathBuf,
    health: u16,
    metrics: u16,
}

impl Program {
    /// Starts the operator against `kubeconfig` with further flags and environment, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start, or is not ready within 30 seconds; the error has its log.
    pub async fn operator(folder: &Path, kubeconfig: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Result<Self> {
        let (metrics, health) = (free_port()?, free_port()?);
        let mut command = Command::new(binary("kuberay-operator"));
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{health}"))
            .args(flags)
            .envs(environment.iter().copied());
        Self::start(command, &folder.join("operator.log"), health, metrics).await
    }

    /// Starts the webhook with further flags, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Program::operator`].
    pub async fn webhook(folder: &Path, kubeconfig: &Path, flags: &[&str]) -> Result<Self> {
        Self::webhook_in(folder, kubeconfig, flags, &[]).await
    }

    /// Starts the webhook with further flags and environment, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Program::operator`].
    pub async fn webhook_in(folder: &Path, kubeconfig: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Result<Self> {
        let (metrics, health) = (free_port()?, free_port()?);
        let mut command = Command::new(binary("kuberay-webhook"));
        command
            .args(["serve", "--bind-address=127.0.0.1"])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{health}"))
            .args(flags)
            .envs(environment.iter().copied());
        Self::start(command, &folder.join("webhook.log"), health, metrics).await
    }

    async fn start(mut command: Command, log: &Path, health: u16, metrics: u16) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log).with_context(|| format!("opening {}", log.display()))?;
        let child = command
            .env_remove("KUBECONFIG")
            .stdin(std::process::Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let mut program = Self { child, log: log.to_owned(), health, metrics };
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while !program.is_ready().await {
            if let Some(status) = program.child.try_wait()? {
                bail!("the program ended with {status}:\n{}", program.log());
            }
            if tokio::time::Instant::now() > deadline {
                bail!("the program is not ready:\n{}", program.log());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(program)
    }

    /// Whether `/readyz` answers 200.
    pub async fn is_ready(&self) -> bool {
        get(self.health, "/readyz").await.is_ok()
    }

    /// What `/metrics` shows.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> Result<String> {
        get(self.metrics, "/metrics").await
    }

    /// Port of `/metrics` on this machine.
    pub fn metrics_port(&self) -> u16 {
        self.metrics
    }

    /// Everything that the program has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it has ended, if it has ended by itself.
    pub fn try_wait(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// `kill -9`, and waits for the end.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("killing the program")
    }

    /// SIGTERM, and the time until the program has ended.
    ///
    /// # Errors
    /// When it has not ended after ten seconds.
    pub async fn terminate(mut self) -> Result<Duration> {
        let started = tokio::time::Instant::now();
        let pid = self.child.id().context("the program has ended already")?;
        Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
        match tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await {
            Ok(status) => drop(status?),
            Err(_) => bail!("the program still runs ten seconds after SIGTERM:\n{}", self.log()),
        }
        Ok(started.elapsed())
    }
}

/// A program of the last debug build.
pub fn binary(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap_or_default();
    // target/debug/deps/<test>
    tests.ancestors().nth(2).map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}
