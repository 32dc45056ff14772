//! What a process costs, and how to say it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

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
        times(&self.0.to_string(), [11, 12])
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

/// CPU time of the children of this process that have ended.
///
/// # Errors
/// When the kernel does not say.
pub(crate) fn children_cpu() -> Result<Duration> {
    times("self", [13, 14])
}

/// The sum of two times in `/proc/PID/stat`; places are counted from the end of the name, which may contain blanks and brackets.
fn times(process: &str, places: [usize; 2]) -> Result<Duration> {
    let path = PathBuf::from(format!("/proc/{process}/stat"));
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let fields: Vec<&str> = text.rsplit_once(") ").map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok()).context("reading CPU times");
    let [user, system] = places;
    Ok(Duration::from_millis((ticks(user)? + ticks(system)?) * 1000 / TICKS))
}

/// The program to measure: the given one, or the release build of ours.
pub(crate) fn release(given: Option<&Path>, name: &str) -> PathBuf {
    given.map_or_else(|| testcluster::work_tree().join("target/release").join(name), Path::to_owned)
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

/// Time that the measurement itself is made of.
///
/// # Errors
/// Never; it fits where steps can fail.
pub(crate) async fn pause(length: u64) -> Result<()> {
    tokio::time::sleep(Duration::from_secs(length)).await;
    Ok(())
}
