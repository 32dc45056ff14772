//! What a process costs, and how to say it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Clock ticks of `/proc/PID/stat` in a second; Linux shows user space 100 whatever the kernel's own rate.
const TICKS: u64 = 100;

/// A process that is watched through `/proc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched(pub(crate) u32);

impl Watched {
    /// CPU time used so far, user and system.
    ///
    /// # Errors
    /// When the process has ended.
    pub(crate) fn cpu(self) -> Result<Duration> {
        let path = PathBuf::from(format!("/proc/{}/stat", self.0));
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        // The name may contain blanks and brackets: fields are counted from its end.
        let fields: Vec<&str> = text.rsplit_once(") ").map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).context("reading CPU times");
        Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 1000 / TICKS))
    }

    /// Resident memory now and at its peak, in bytes.
    ///
    /// # Errors
    /// When the process has ended.
    pub(crate) fn memory(self) -> Result<(u64, u64)> {
        let path = PathBuf::from(format!("/proc/{}/status", self.0));
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").trim().parse::<u64>().with_context(|| format!("reading {name}"))
        };
        Ok((kib("VmRSS:")? * 1024, kib("VmHWM:")? * 1024))
    }
}

/// A number of bytes in MiB.
pub(crate) fn mib(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // for people
    let mib = bytes as f64 / 1_048_576.0;
    format!("{mib:.1} MiB")
}

/// The value below which `percent` of the durations lie. Zero where there is none.
pub(crate) fn percentile(durations: &mut [Duration], percent: usize) -> Duration {
    durations.sort_unstable();
    let index = (durations.len() * percent / 100).min(durations.len().saturating_sub(1));
    durations.get(index).copied().unwrap_or_default()
}

/// A duration in seconds with one digit behind the point.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A port of this machine that nobody listens on.
///
/// # Errors
/// When there is none.
pub(crate) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Body of a successful answer from a port of this machine.
///
/// # Errors
/// When there is no answer, or one that is not a success.
pub(crate) async fn get(port: u16, path: &str) -> Result<String> {
    use http_body_util::{BodyExt, Empty};
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
    let answer = client.get(format!("http://127.0.0.1:{port}{path}").parse()?).await?;
    if !answer.status().is_success() {
        bail!("{path} answers {}", answer.status());
    }
    Ok(String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()).into_owned())
}
