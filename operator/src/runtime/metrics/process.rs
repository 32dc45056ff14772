//! Memory and CPU of this process, as Prometheus clients report them.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// What `/proc` says of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// User and system time in seconds.
    pub cpu_seconds: f64,
    /// Memory in use, in bytes.
    pub resident_bytes: u64,
    /// The most memory that was ever in use, in bytes.
    pub peak_bytes: u64,
    /// Open files and connections.
    pub open_files: u64,
}

/// Ticks of `/proc/self/stat` in a second. Fixed by the kernel's interface on every platform that it runs on.
const TICKS: f64 = 100.0;

impl Usage {
    /// Reads the numbers; zeros where the platform does not tell.
    pub fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let open_files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self { open_files: u64::try_from(open_files).unwrap_or_default(), ..Self::parse(&stat, &status) }
    }

    fn parse(stat: &str, status: &str) -> Self {
        // The second field is a file name in brackets, which may contain anything; the numbers begin behind its end.
        let numbers: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
        let ticks = |at: usize| numbers.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        let kib = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default();
            value.split_ascii_whitespace().next().and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
        };
        Self {
            cpu_seconds: (ticks(11) + ticks(12)) / TICKS,
            resident_bytes: kib("VmRSS") * 1024,
            peak_bytes: kib("VmHWM") * 1024,
            open_files: 0,
        }
    }
}

/// Reports [`Usage`].
#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let usage = Usage::now();
        let cpu = encoder.encode_descriptor("process_cpu_seconds", "User and system time", None, MetricType::Counter)?;
        ConstCounter::new(usage.cpu_seconds).encode(cpu)?;
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Memory in use", usage.resident_bytes),
            ("process_resident_memory_peak_bytes", "The most memory that was ever in use", usage.peak_bytes),
            ("process_open_fds", "Open files and connections", usage.open_files),
        ] {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(gauge)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_even_with_brackets_in_the_program_name() {
        let stat = "17 (a) b (c)) S 1 17 17 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 3 0 100 0 0";
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        let usage = Usage::parse(stat, status);
        assert_eq!(usage, Usage { cpu_seconds: 4.0, resident_bytes: 1 << 20, peak_bytes: 2 << 20, open_files: 0 });
        assert_eq!(Usage::parse("", ""), Usage::default());
    }

    #[test]
    fn this_process_uses_memory_and_files() {
        let usage = Usage::now();
        assert!(usage.resident_bytes > 0 && usage.peak_bytes >= usage.resident_bytes && usage.open_files > 0, "{usage:?}");
    }
}
