//! Measures how late timers fire in this process, so that a slow client is not mistaken for a slow
//! daemon.

use std::convert::Infallible;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::{Instant, sleep_until};

use super::super::histogram::{empty, latency};
use super::super::number_format::figure;

const TICK: Duration = Duration::from_millis(10);
/// Timers are this late even in an idle process.
const LAG_MIN_US: f64 = 5_000.0;
/// Lag as a share of the median latency, above which it matters.
const SHARE_MIN: f64 = 0.1;

/// Lateness of ticks, in nanoseconds.
pub struct Lag(Histogram<u64>);

impl Lag {
    pub fn new() -> Self {
        Self(empty())
    }

    /// Measures until the future is dropped.
    pub async fn watch(&mut self) -> Infallible {
        loop {
            let due = Instant::now() + TICK;
            sleep_until(due).await;
            self.record(due.elapsed());
        }
    }

    fn record(&mut self, late: Duration) {
        self.0.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    /// A remark, if the lag matters compared with this median latency.
    pub fn remark(&self, p50_us: f64) -> Option<String> {
        let late = latency(&self.0).p99_us;
        (late > LAG_MIN_US.max(SHARE_MIN * p50_us)).then(|| {
            format!(
                "The client's own timers were late by {} µs (p99), which is part of the latencies. \
                 Run it on another machine than the daemon, or with fewer trajectories.",
                figure(late)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_client_gets_a_remark() {
        let of = |late_us: u64, p50_us| {
            let mut lag = Lag::new();
            (0..100).for_each(|_| lag.record(Duration::from_micros(late_us)));
            lag.remark(p50_us)
        };
        assert_eq!(of(1_000, 100.0), None, "timers are that coarse");
        assert!(of(8_000, 100.0).unwrap().contains("late by 8,"));
        assert_eq!(of(8_000, 1e6), None, "negligible");
        assert!(of(200_000, 1e6).is_some());
        assert_eq!(Lag::new().remark(0.0), None);
    }
}
