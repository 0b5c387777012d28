//! How late this process is by itself: what a client that is too slow would put on the daemon's account.

use std::convert::Infallible;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::{Instant, sleep_until};

use super::super::figures::figure;
use super::super::histogram::{empty, latency};

const TICK: Duration = Duration::from_millis(10);
/// A timer is that late without anything to do.
const LAG_MIN_US: f64 = 5_000.0;
/// Of the median latency, from which on the client's own lag matters.
const SHARE: f64 = 0.1;

/// Ticks, each with how late it came.
pub struct Lag(Histogram<u64>);

impl Lag {
    pub fn new() -> Self {
        Self(empty())
    }

    /// Measures until it is dropped.
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

    /// What a reader must know, beside a median latency in microseconds.
    pub fn remark(&self, p50_us: f64) -> Option<String> {
        let late = latency(&self.0).p99_us;
        (late > LAG_MIN_US.max(SHARE * p50_us)).then(|| {
            format!(
                "The client itself was late by {} µs (p99 of a timer): a part of the latencies is its own. Run it on \
                 another machine than the daemon, or with fewer trajectories.",
                figure(late)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_late_says_so() {
        let of = |late_us: u64, p50_us| {
            let mut lag = Lag::new();
            (0..100).for_each(|_| lag.record(Duration::from_micros(late_us)));
            lag.remark(p50_us)
        };
        assert_eq!(of(1_000, 100.0), None, "timers are as coarse");
        assert!(of(8_000, 100.0).unwrap().contains("late by 8,"));
        assert_eq!(of(8_000, 1e6), None, "it does not matter");
        assert!(of(200_000, 1e6).is_some());
        assert_eq!(Lag::new().remark(0.0), None);
    }
}
