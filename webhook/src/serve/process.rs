//! The usual `process_*` metrics, read from `/proc` at each scrape. Where there is no `/proc`, they are left out.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Unit of the times in `/proc/PID/stat`: fixed at 100 per second in Linux' interface to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Collects the metrics of this process.
#[derive(Debug)]
pub(super) struct ProcessCollector;

/// What `/proc` tells about a process.
#[derive(Debug, Default, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    peak_resident_bytes: u64,
    threads: u64,
    start_seconds: f64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let read = |path: &str| fs::read_to_string(path).ok();
        let Some(usage) = read("/proc/self/stat")
            .zip(read("/proc/self/status"))
            .zip(read("/proc/stat"))
            .and_then(|((stat, status), system)| parse(&stat, &status, &system))
        else {
            return Ok(());
        };
        let cpu = ConstCounter::new(usage.cpu_seconds);
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", "User and system CPU time", None, cpu.metric_type())?)?;
        let open_files = fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or_default();
        #[allow(clippy::cast_precision_loss, reason = "figures of a process are far below 2^52")]
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory", usage.resident_bytes as f64),
            ("process_resident_memory_peak_bytes", "Largest resident memory so far", usage.peak_resident_bytes as f64),
            ("process_virtual_memory_bytes", "Virtual memory", usage.virtual_bytes as f64),
            ("process_threads", "Threads", usage.threads as f64),
            ("process_open_fds", "Open files and sockets", open_files as f64),
            ("process_start_time_seconds", "Start of the process, in seconds since 1970", usage.start_seconds),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn parse(stat: &str, status: &str, system: &str) -> Option<Usage> {
    // The program's name is in parentheses and may contain anything, so that fields are counted from behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let field = |number: usize| fields.split_whitespace().nth(number - 3)?.parse::<f64>().ok();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(Usage {
        cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
        resident_bytes: kilobytes("VmRSS")?,
        virtual_bytes: kilobytes("VmSize")?,
        peak_resident_bytes: kilobytes("VmHWM")?,
        threads,
        start_seconds: boot + field(22)? / TICKS_PER_SECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_past_a_strange_program_name() {
        let stat = "7 (a ) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 3 0 12345 1000 200";
        let status = "Name:\tx\nVmPeak:\t 9000 kB\nVmSize:\t 8000 kB\nVmHWM:\t 5000 kB\nVmRSS:\t 4000 kB\nThreads:\t3\n";
        let usage = parse(stat, status, "cpu 1 2\nbtime 1700000000\n").expect("complete");
        let wanted = Usage {
            cpu_seconds: 2.0,
            resident_bytes: 4000 * 1024,
            virtual_bytes: 8000 * 1024,
            peak_resident_bytes: 5000 * 1024,
            threads: 3,
            start_seconds: 1_700_000_123.45,
        };
        assert_eq!(usage, wanted);
        assert_eq!(parse("", status, ""), None);
        assert_eq!(parse(stat, "", "btime 1"), None);
    }
}
