//! Waiting for a time that a client has named. The clock may be set forwards or back meanwhile.

use std::time::Duration;

use crate::runs::store::Clock;

/// The longest pause between two looks at the clock: so late is a jump noticed.
const LOOK_MS: u64 = 5_000;

/// Resolves when the clock shows `at_ms` or later; at once if it does already.
pub async fn until(clock: Clock, at_ms: u64) {
    loop {
        let left_ms = at_ms.saturating_sub(clock());
        if left_ms == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left_ms.min(LOOK_MS))).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_time_that_is_past_is_not_waited_for() {
        let began = Instant::now();
        until(|| 5, 5).await;
        until(|| 5, 0).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_makes_it_later_and_one_set_forward_sooner() {
        static NOW_MS: AtomicU64 = AtomicU64::new(1_000);
        let clock = || NOW_MS.load(Ordering::Relaxed);
        let mut waiting = Box::pin(until(clock, 10_000));

        // The pauses pass, but the clock was set back.
        NOW_MS.store(0, Ordering::Relaxed);
        let patience = Duration::from_hours(1);
        assert!(tokio::time::timeout(patience, &mut waiting).await.is_err());

        NOW_MS.store(10_000, Ordering::Relaxed);
        let began = Instant::now();
        waiting.await;
        assert!(began.elapsed() <= Duration::from_millis(LOOK_MS));
    }
}
