//! The recent latency of decodes, from which the supervisor derives when a worker counts as hung.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Decodes per window; only the current and the previous window count.
const WINDOW: u64 = 4096;
/// Fewest decodes in a window for its percentile to be known.
const SAMPLES_MIN: u64 = 200;
/// Longest latency that is resolved, in microseconds.
const LONGEST_US: u64 = 600_000_000;

pub(super) struct DecodeLatency {
    window: Histogram<u32>,
    /// The 99th percentile of the previous window.
    previous_us: u64,
}

impl DecodeLatency {
    pub(super) fn new() -> Self {
        let window = Histogram::new_with_bounds(1, LONGEST_US, 2)
            .expect("invariant: bounds and digits are in range");
        Self { window, previous_us: 0 }
    }

    pub(super) fn record(&mut self, took: Duration) {
        // The histogram's lowest value is 1.
        self.window.saturating_record(u64::try_from(took.as_micros()).unwrap_or(LONGEST_US).max(1));
        if self.window.len() == WINDOW {
            self.previous_us = self.window.value_at_quantile(0.99);
            self.window.reset();
        }
    }

    /// The 99th percentile in microseconds; 0 until there are enough samples.
    pub(super) fn p99_us(&self) -> u32 {
        let now =
            if self.window.len() >= SAMPLES_MIN { self.window.value_at_quantile(0.99) } else { 0 };
        // The previous window counts as well, because a new one starts empty.
        u32::try_from(now.max(self.previous_us)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_follows_the_latest_decodes() {
        let mut latency = DecodeLatency::new();
        let mut record = |millis: u64, times: u64| {
            (0..times).for_each(|_| latency.record(Duration::from_millis(millis)));
            latency.p99_us()
        };
        assert_eq!(record(1, SAMPLES_MIN - 1), 0);

        let about = |value: u32, expected: u32| value.abs_diff(expected) <= expected / 50;
        assert!(about(record(1, 1), 1000));

        // One in fifty is slow.
        (0..40).for_each(|_| {
            record(1, 49);
            record(20, 1);
        });
        assert!(about(record(1, 1), 20_000));

        // Forgotten after two full windows.
        assert!(about(record(1, 2 * WINDOW), 1000));
    }
}
