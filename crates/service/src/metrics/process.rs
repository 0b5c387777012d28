//! Metrics of the process from the operating system, read on request.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The standard process metrics of Prometheus clients.
#[derive(Debug)]
pub struct Process {
    started: jiff::Timestamp,
}

impl Process {
    pub fn started_at(started: jiff::Timestamp) -> Self {
        Self { started }
    }
}

/// Resident memory of a process, by its number or `self`; `None` without `/proc`, and where there
/// is no such process.
pub(super) fn resident_bytes(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;

    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    // The kernel's kB are 1024 bytes.
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Open file descriptors; `None` without `/proc`.
fn open_fds() -> Option<u64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?.count();
    // The listing has a descriptor of its own.
    Some(entries.saturating_sub(1) as u64)
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
        };
        let started = self.started.as_microsecond() as f64 / 1e6;

        gauge(
            "process_start_time",
            "When the process started, since 1970.",
            Some(&Unit::Seconds),
            started,
        )?;

        if let Some(bytes) = resident_bytes("self") {
            gauge(
                "process_resident_memory",
                "Memory that the process holds.",
                Some(&Unit::Bytes),
                bytes as f64,
            )?;
        }

        if let Some(count) = open_fds() {
            gauge("process_open_fds", "Open file descriptors.", None, count as f64)?;
        }

        Ok(())
    }
}
