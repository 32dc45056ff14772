//! A program that runs until it is told to stop, with its output in a log file and its identity written down.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::{Identity, tail};
use crate::wait;

/// File in an instance's folder with a line `PID START NAME` for every process started for it.
const RECORD: &str = "processes";

/// A running program that leads a process group of its own.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    identity: Identity,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` with its output going to `DIR/log/NAME.log`, and records it in `DIR/processes`.
    ///
    /// Its own process group keeps a Ctrl-C at the terminal from reaching it before whoever is in charge has cleaned up.
    ///
    /// # Errors
    /// When the program cannot be started or recorded.
    pub fn spawn(dir: &Path, name: &str, mut command: Command) -> Result<Self> {
        let logs = dir.join("log");
        fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
        let log = logs.join(format!("{name}.log"));
        let out = fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        let pid = child.id().with_context(|| format!("{name} ended at once"))?;
        let identity = Identity::of(i32::try_from(pid)?).with_context(|| format!("{name} is not in /proc"))?;
        let mut record = fs::OpenOptions::new().create(true).append(true).open(dir.join(RECORD)).context("opening the process record")?;
        writeln!(record, "{identity} {name}").context("recording a process")?;
        Ok(Self { name: name.to_owned(), child, identity, log })
    }

    /// The program's short name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which process it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Fails if the program has ended, showing the end of its log.
    ///
    /// # Errors
    /// When it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                anyhow::bail!("{} ended with {status}:\n{}", self.name, tail(&log))
            }
        }
    }

    /// Kills the program and waits for its end.
    ///
    /// # Errors
    /// When it is still there after ten seconds.
    pub async fn kill(&mut self) -> Result<()> {
        kill_group(self.identity, Signal::KILL);
        tokio::time::timeout(Duration::from_secs(10), self.child.wait())
            .await
            .with_context(|| format!("{} did not end", self.name))?
            .with_context(|| format!("waiting for {}", self.name))?;
        Ok(())
    }

    /// Asks the program to end, and kills it when it has not ended within `patience`.
    ///
    /// # Errors
    /// When it is still there after the kill.
    pub async fn terminate(&mut self, patience: Duration) -> Result<()> {
        kill_group(self.identity, Signal::TERM);
        let identity = self.identity;
        let gone = wait::until(&self.name, patience, || async move { Ok((!identity.alive()).then_some(())) }).await;
        if gone.is_err() {
            return self.kill().await;
        }
        self.child.wait().await.with_context(|| format!("waiting for {}", self.name))?;
        Ok(())
    }
}

/// Signals the process group that `leader` leads. Nothing happens when the leader is gone: its number may lead another group by now.
pub(crate) fn kill_group(leader: Identity, signal: Signal) {
    if leader.alive()
        && let Some(pid) = leader.as_pid()
    {
        // The group can vanish between the two calls, and that is what is wanted.
        let _ = kill_process_group(pid, signal);
    }
}

/// The processes recorded in an instance's folder, with their names, oldest first. Lines that a crash cut off are left out.
pub(crate) fn recorded(dir: &Path) -> Vec<(Identity, String)> {
    let text = fs::read_to_string(dir.join(RECORD)).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (identity, name) = line.rsplit_once(' ')?;
            Some((identity.parse().ok()?, name.to_owned()))
        })
        .collect()
}
