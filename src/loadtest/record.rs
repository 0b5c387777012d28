//! What one thread has seen of a measurement. Each of the cells' threads writes one of its own, so that nobody waits.

use hdrhistogram::Histogram;

use super::histogram::empty;
use crate::runtime::{Stage, StageTimes};
use prime_protocol::Usage;

/// See the module. Times are nanoseconds.
pub struct Record {
    pub latency: Histogram<u64>,
    /// In the order of [`Stage::ALL`], and what is left of the latency after them; empty where they are not wanted.
    pub legs: Vec<Histogram<u64>>,
    /// Turns that an agent failed and that were tried again.
    pub failures: u64,
    /// Of all steps, and what of it the agents worked; where legs are wanted.
    pub step_nanos: u64,
    pub work_nanos: u64,
    pub usage: Usage,
    /// When its last step was decided, since the session's epoch.
    pub last: u64,
}

impl Record {
    pub fn new(wants_legs: bool) -> Self {
        let legs = if wants_legs { Stage::COUNT + 1 } else { 0 };
        Self { latency: empty(), legs: (0..legs).map(|_| empty()).collect(), ..Self::small() }
    }

    /// For a thread whose record was taken: what comes late is lost.
    pub fn small() -> Self {
        Self {
            latency: Histogram::new_with_bounds(1, 2, 0).expect("invariant: the bounds are valid"),
            legs: Vec::new(),
            failures: 0,
            step_nanos: 0,
            work_nanos: 0,
            usage: Usage::default(),
            last: 0,
        }
    }

    /// A step that was decided at `now` and took so many nanoseconds.
    pub fn step(&mut self, now: u64, nanos: u64, usage: Usage, timing: Option<&StageTimes>) {
        self.latency.saturating_record(nanos);
        self.usage.add(usage);
        self.last = now;
        let (Some(timing), Some((rest, legs))) = (timing, self.legs.split_last_mut()) else { return };
        let mut sum = 0;
        for (leg, histogram) in Stage::ALL.into_iter().zip(legs) {
            let lap = u64::try_from(timing.of(leg).as_nanos()).unwrap_or(u64::MAX);
            histogram.saturating_record(lap);
            sum += lap;
            self.work_nanos += if leg.is_work() { lap } else { 0 };
        }
        self.step_nanos += nanos;
        rest.saturating_record(nanos.saturating_sub(sum));
    }

    /// Adds what another thread has seen.
    pub fn add(&mut self, other: &Self) {
        let mine = std::iter::once(&mut self.latency).chain(&mut self.legs);
        for (mine, theirs) in mine.zip(std::iter::once(&other.latency).chain(&other.legs)) {
            mine.add(theirs).expect("invariant: all histograms have the same bounds");
        }
        self.failures += other.failures;
        self.step_nanos += other.step_nanos;
        self.work_nanos += other.work_nanos;
        self.usage.add(other.usage);
        self.last = self.last.max(other.last);
    }

    /// Share of the steps' time that was not an agent's own. `None` where that was not timed.
    pub fn coordination_share(&self) -> Option<f64> {
        (self.step_nanos > 0).then(|| 1.0 - (self.work_nanos as f64 / self.step_nanos as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use prime_protocol::Role;

    #[tokio::test(start_paused = true)]
    async fn what_is_left_after_the_legs_is_the_last_of_them() {
        let mut timing = StageTimes::start();
        for (micros, leg) in [(3, Stage::To(Role::Executor)), (16, Stage::Work(Role::Executor)), (1, Stage::Home)] {
            tokio::time::advance(Duration::from_micros(micros)).await;
            timing.end(leg);
        }
        let mut record = Record::new(true);
        record.step(50_000, 32_000, Usage { prompt: 2, completion: 1 }, Some(&timing));
        let maxima: Vec<_> = record.legs.iter().map(|leg| leg.mean().round()).collect();
        // 32 µs less 20 µs on the way.
        assert_eq!(maxima.len(), Stage::COUNT + 1);
        for (index, nanos) in [(0, 3_000.0_f64), (1, 16_000.0), (2, 0.0), (6, 1_000.0), (7, 12_000.0)] {
            assert!((maxima[index] - nanos).abs() <= nanos * 1e-3, "leg {index} is {maxima:?}");
        }
        assert_eq!(record.coordination_share(), Some(0.5));
        let mut all = Record::new(true);
        all.add(&record);
        all.add(&record);
        assert_eq!((all.latency.len(), all.legs[7].len(), all.last, all.usage.prompt), (2, 2, 50_000, 4));
        assert_eq!(all.coordination_share(), Some(0.5));
    }

    #[test]
    fn without_legs_there_is_no_share() {
        let mut record = Record::new(false);
        record.step(10, 5, Usage::default(), None);
        assert_eq!((record.latency.len(), record.legs.len(), record.coordination_share()), (1, 0, None));
    }
}
