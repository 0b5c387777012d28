//! The clock by which runs are removed for their age. The system's clock may be wrong: set by hand,
//! by a broken battery, or by a time server. One that is a month ahead would make every finished
//! run a month older at once. So a jump ahead does not count until the clock has run evenly for a
//! while, in which somebody can correct it.
//!
//! The time that has certainly come is the one that the journal has seen, plus what this process
//! has measured since with a clock that cannot be set.

use std::time::Duration;

use tokio::time::Instant;

/// By how much a clock may be ahead of the known time: drift, and a short time in which nothing
/// ran.
const LEAD_MAX_MS: u64 = 3_600_000;

/// A clock that does not jump ahead.
#[derive(Debug)]
pub(super) struct TrustedClock {
    trusted_ms: u64,
    /// The last reading of the system's clock, and when it was.
    wall_ms: u64,
    read: Instant,
    /// Since when the system's clock has run evenly.
    even_since: Instant,
    has_told: bool,
}

impl TrustedClock {
    /// `reached_ms` is the time that the journal knows to have come; without one there is nothing
    /// to compare with. All times are in milliseconds since 1970.
    pub fn start(reached_ms: Option<u64>, wall_ms: u64, now: Instant) -> Self {
        let trusted_ms = reached_ms.unwrap_or(wall_ms);
        Self { trusted_ms, wall_ms, read: now, even_since: now, has_told: false }
    }

    /// The time by which to remove runs. `trust` is how long the system's clock must have run
    /// evenly before a jump of it counts.
    pub fn read(&mut self, wall_ms: u64, now: Instant, trust: Duration) -> u64 {
        let passed = now.saturating_duration_since(self.read);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);

        if wall_ms.abs_diff(self.wall_ms.saturating_add(passed_ms)) > LEAD_MAX_MS {
            self.even_since = now;
        }
        (self.wall_ms, self.read) = (wall_ms, now);

        let known_ms = self.trusted_ms.saturating_add(passed_ms);
        let lead_ms = wall_ms.saturating_sub(known_ms);
        let is_trusted =
            lead_ms <= LEAD_MAX_MS || now.saturating_duration_since(self.even_since) >= trust;

        // Time that did not come counts, too: a clock that was set back may have been wrong before.
        self.trusted_ms = if is_trusted { wall_ms } else { known_ms };
        self.tell(is_trusted, lead_ms, trust);
        self.trusted_ms
    }

    /// Logs once that distrust begins.
    fn tell(&mut self, is_trusted: bool, lead_ms: u64, trust: Duration) {
        if !is_trusted && !self.has_told {
            tracing::info!(
                ahead_hours = lead_ms / 3_600_000,
                "the system's clock is ahead of the journal: until it has run evenly for {} h \
                 (journal.clock_trust_hours), finished runs are removed as if it were not",
                trust.as_secs() / 3_600
            );
        }
        self.has_told = !is_trusted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;
    /// Any time.
    const T: u64 = 20_000 * DAY;
    const TRUST: Duration = Duration::from_hours(24);

    /// Readings: the hours since the start, how far the system's clock is ahead of the right time,
    /// and how far the trusted clock is expected to be ahead of it.
    fn check(reached: Option<u64>, readings: &[(u64, u64, i64)]) {
        let start = Instant::now();
        let mut clock = TrustedClock::start(reached, T + readings[0].1, start);
        for (hours, ahead_ms, expected_ms) in readings {
            let now = start + Duration::from_hours(*hours);
            let read = clock.read(T + hours * HOUR + ahead_ms, now, TRUST);
            assert_eq!(
                read.cast_signed() - (T + hours * HOUR).cast_signed(),
                *expected_ms,
                "hour {hours}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_ahead_at_the_start_counts_after_a_day() {
        let day = (DAY).cast_signed();
        check(
            Some(T),
            &[(0, 31 * DAY, 0), (1, 31 * DAY, 0), (23, 31 * DAY, 0), (24, 31 * DAY, 31 * day)],
        );
        // It was corrected in time.
        check(Some(T), &[(0, 31 * DAY, 0), (23, 31 * DAY, 0), (24, 0, 0), (100, 0, 0)]);
        // Nothing ran for a month.
        check(Some(T - 31 * DAY), &[(0, 0, -31 * day), (23, 0, -31 * day), (24, 0, 0)]);
        // A new journal has nothing to remove.
        check(None, &[(0, 31 * DAY, 31 * day), (1, 31 * DAY, 31 * day)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumps_counts_after_a_day_of_even_running() {
        let day = (DAY).cast_signed();
        check(
            Some(T),
            &[
                (0, 0, 0),
                (500, 0, 0),
                (501, 31 * DAY, 0),
                (510, 31 * DAY, 0),
                // Another jump begins another day.
                (520, 40 * DAY, 0),
                (543, 40 * DAY, 0),
                (544, 40 * DAY, 40 * day),
                // Back at once.
                (545, 0, 0),
            ],
        );
    }

    #[tokio::test(start_paused = true)]
    async fn drift_and_short_pauses_count_at_once() {
        let hour = HOUR.cast_signed();
        check(Some(T), &[(0, HOUR, hour), (1, HOUR, hour), (2, 2 * HOUR, 2 * hour)]);
        check(Some(T), &[(0, HOUR + 1, 0)]);
        // The journal has seen a later time: a clock that was wrong then and is right now.
        check(Some(T + 31 * DAY), &[(0, 0, 0), (1, 0, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_distrust_every_jump_counts() {
        let start = Instant::now();
        let mut clock = TrustedClock::start(Some(T), T + DAY, start);
        assert_eq!(clock.read(T + 31 * DAY, start, Duration::ZERO), T + 31 * DAY);
    }
}
