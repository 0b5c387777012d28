//! Exponential backoff: how long to wait before each attempt. Never sleeps and reads no clock.

use std::time::Duration;

/// Delays that double from `initial` up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first delay.
    pub initial: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Backoff {
    /// The delay before retry `retry`, counted from 0.
    pub fn delay(self, retry: u32) -> Duration {
        self.initial.saturating_mul(2_u32.saturating_pow(retry)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let backoff = Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(1) };
        let delays: Vec<_> =
            [0, 1, 2, 3, 4, 5, 90, u32::MAX].map(|retry| backoff.delay(retry).as_millis()).into();
        assert_eq!(delays, [100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]);
        let above = Backoff { initial: Duration::from_secs(3), max: Duration::from_secs(1) };
        assert_eq!(above.delay(0), Duration::from_secs(1));
    }
}
