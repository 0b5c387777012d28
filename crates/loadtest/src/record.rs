//! The records of one thread in a measurement. Each thread of the load writes its own, so there is
//! no contention.

use hdrhistogram::Histogram;

use super::histogram::empty;

/// A stage that steps are divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageKind {
    /// Name of the stage in reports.
    pub name: &'static str,
    /// An agent's own work, not coordination.
    pub is_work: bool,
}

/// Tokens that models read and wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of prompts.
    pub prompt: u64,
    /// Generated tokens.
    pub completion: u64,
}

/// Times are nanoseconds.
pub struct Record {
    pub latency: Histogram<u64>,
    /// One per stage. The last one gets the rest of a step's latency.
    pub stages: Vec<Histogram<u64>>,
    /// Turns that failed and were retried.
    pub failures: u64,
    /// Sums over the steps whose stages were timed.
    step_nanos: u64,
    work_nanos: u64,
    pub tokens: Tokens,
    /// When the last step was decided, since the session's epoch.
    pub last: u64,
}

impl Record {
    pub fn new(stages: usize) -> Self {
        Self { latency: empty(), stages: (0..stages).map(|_| empty()).collect(), ..Self::small() }
    }

    /// A small record that replaces one that was taken: what arrives late is dropped with it.
    pub fn small() -> Self {
        Self {
            latency: Histogram::new_with_bounds(1, 2, 0).expect("invariant: the bounds are valid"),
            stages: Vec::new(),
            failures: 0,
            step_nanos: 0,
            work_nanos: 0,
            tokens: Tokens::default(),
            last: 0,
        }
    }

    /// Records a step decided at `now`.
    pub fn step(&mut self, now: u64, nanos: u64, tokens: Tokens) {
        self.latency.saturating_record(nanos);
        self.tokens.prompt += tokens.prompt;
        self.tokens.completion += tokens.completion;
        self.last = now;
    }

    /// Records the stages of a step that took `nanos` overall. `times` has the time of each stage
    /// but the last, which gets the rest.
    pub fn stage_times(&mut self, nanos: u64, kinds: &[StageKind], times: &[u64]) {
        let Some((rest, stages)) = self.stages.split_last_mut() else { return };
        let mut sum = 0;
        for ((histogram, kind), time) in stages.iter_mut().zip(kinds).zip(times) {
            histogram.saturating_record(*time);
            sum += time;
            self.work_nanos += if kind.is_work { *time } else { 0 };
        }

        self.step_nanos += nanos;
        rest.saturating_record(nanos.saturating_sub(sum));
    }

    /// Adds another thread's record.
    pub fn add(&mut self, other: &Self) {
        let mine = std::iter::once(&mut self.latency).chain(&mut self.stages);
        for (mine, theirs) in mine.zip(std::iter::once(&other.latency).chain(&other.stages)) {
            mine.add(theirs).expect("invariant: all histograms have the same bounds");
        }

        self.failures += other.failures;
        self.step_nanos += other.step_nanos;
        self.work_nanos += other.work_nanos;
        self.tokens.prompt += other.tokens.prompt;
        self.tokens.completion += other.tokens.completion;
        self.last = self.last.max(other.last);
    }

    /// Share of the steps' time outside the agents. `None` if stages were not timed.
    pub fn coordination_share(&self) -> Option<f64> {
        (self.step_nanos > 0)
            .then(|| 1.0 - (self.work_nanos as f64 / self.step_nanos as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [StageKind; 3] = [
        StageKind { name: "to agent", is_work: false },
        StageKind { name: "agent", is_work: true },
        StageKind { name: "rest", is_work: false },
    ];

    #[test]
    fn the_last_stage_is_the_rest() {
        let mut record = Record::new(KINDS.len());
        record.step(50_000, 32_000, Tokens { prompt: 2, completion: 1 });
        record.stage_times(32_000, &KINDS, &[4_000, 16_000]);

        let means: Vec<_> = record.stages.iter().map(|stage| stage.mean().round()).collect();
        // 32 µs less 20 µs.
        for (mean, nanos) in means.iter().zip([4_000.0_f64, 16_000.0, 12_000.0]) {
            assert!((mean - nanos).abs() <= nanos * 1e-3, "{means:?}");
        }
        assert_eq!(record.coordination_share(), Some(0.5));

        let mut all = Record::new(KINDS.len());
        all.add(&record);
        all.add(&record);
        assert_eq!(
            (all.latency.len(), all.stages[2].len(), all.last, all.tokens.prompt),
            (2, 2, 50_000, 4)
        );
        assert_eq!(all.coordination_share(), Some(0.5));
    }

    #[test]
    fn without_stages_there_is_no_share() {
        let mut record = Record::new(0);
        record.step(10, 5, Tokens::default());
        record.stage_times(5, &KINDS, &[1, 1]);
        assert_eq!(
            (record.latency.len(), record.stages.len(), record.coordination_share()),
            (1, 0, None)
        );
    }
}
