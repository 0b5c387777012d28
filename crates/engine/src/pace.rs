//! How long decodes take at present: what is normal decides what is a hang.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Decodes after which the percentile is taken from newer ones only.
const WINDOW: u64 = 4096;
/// Decodes that a percentile needs.
const ENOUGH: u64 = 200;
/// Longest duration that is told apart, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// Durations of the latest decodes.
pub(super) struct Pace {
    window: Histogram<u32>,
    before_us: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        let window = Histogram::new_with_bounds(1, LONGEST_US, 2).expect("invariant: bounds and digits are in range");
        Self { window, before_us: 0 }
    }

    pub(super) fn record(&mut self, took: Duration) {
        self.window.saturating_record(u64::try_from(took.as_micros()).unwrap_or(LONGEST_US).max(1));
        if self.window.len() == WINDOW {
            self.before_us = self.window.value_at_quantile(0.99);
            self.window.reset();
        }
    }

    /// The 99th percentile in microseconds; 0 until enough was seen.
    pub(super) fn p99_us(&self) -> u32 {
        let now = if self.window.len() >= ENOUGH { self.window.value_at_quantile(0.99) } else { 0 };
        u32::try_from(now.max(self.before_us)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_follows_the_latest_decodes() {
        let mut pace = Pace::new();
        let mut record = |millis: u64, times: u64| {
            (0..times).for_each(|_| pace.record(Duration::from_millis(millis)));
            pace.p99_us()
        };
        assert_eq!(record(1, ENOUGH - 1), 0);
        let about = |value: u32, expected: u32| value.abs_diff(expected) <= expected / 50;
        assert!(about(record(1, 1), 1000));
        // One in fifty is slow.
        (0..40).for_each(|_| {
            record(1, 49);
            record(20, 1);
        });
        assert!(about(record(1, 1), 20_000));
        // Two whole windows later that is forgotten.
        assert!(about(record(1, 2 * WINDOW), 1000));
    }
}
