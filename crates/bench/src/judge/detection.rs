//! The worth of a verdict: for each task and each set of constraint kinds, the share of tried wrong
//! steps that the constraints found. The figures are read from a file that `bench corrupt --table`
//! writes; nothing is measured here.

mod measure;
mod table;
#[cfg(test)]
mod tests;

pub use measure::{TRACES, measure};
pub use table::{DetectionRow, DetectionTable, digest};

use crate::tasks::Kinds;

/// The confidence of [`Detection::miss_rate_bound`].
const CONFIDENCE: f64 = 0.95;

/// The number of wrong steps that were tried, and of those that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection {
    /// Number of wrong steps that were tried.
    pub tried: u64,
    /// Number of them that were found.
    pub found: u64,
}

/// The wrong steps of a task that constraints of these kinds find; `None` if the task is not in the
/// table, or `kinds` is empty.
pub fn detection(task: &str, kinds: Kinds) -> Option<Detection> {
    DetectionTable::current().detection(task, kinds)
}

/// The probability of at most `missed` misses among `tried` at this miss rate, between 0 and 1
/// exclusive.
#[expect(clippy::cast_precision_loss, reason = "counts of traces lie far below 2^53")]
fn at_most(missed: u64, tried: u64, rate: f64) -> f64 {
    // Sums the terms of the binomial distribution, each made from the one before. They stay
    // logarithms until they are added: the first underflows for many tries.
    let odds = (rate / (1.0 - rate)).ln();
    let mut term = tried as f64 * (1.0 - rate).ln();
    let mut sum = term.exp();

    for count in 0..missed {
        term += ((tried - count) as f64 / (count + 1) as f64).ln() + odds;
        sum += term.exp();
    }

    sum
}

impl Detection {
    /// Number of wrong steps that were not found.
    pub fn missed(self) -> u64 {
        self.tried - self.found
    }

    /// The share of missed steps, as measured.
    #[expect(clippy::cast_precision_loss, reason = "counts of traces lie far below 2^53")]
    pub fn miss_rate(self) -> f64 {
        self.missed() as f64 / self.tried.max(1) as f64
    }

    /// The upper end of the one-sided 95 % confidence interval of the miss rate (Clopper and
    /// Pearson's, which is exact). It is above 0 although nothing was missed: about 3/n after n
    /// steps.
    pub fn miss_rate_bound(self) -> f64 {
        /// Halvings: the result is exact to 2^-40.
        const HALVINGS: u32 = 40;
        // No rate below 1 is ruled out then. The same holds if nothing was tried.
        if self.found == 0 {
            return 1.0;
        }

        let (mut low, mut high) = (self.miss_rate(), 1.0);
        // The probability of so few misses falls as the rate rises: bisect for where it is 5 %.
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if at_most(self.missed(), self.tried, middle) > 1.0 - CONFIDENCE {
                low = middle;
            } else {
                high = middle;
            }
        }

        high
    }

    /// `found 119 of 120 wrong steps`: the measurement in words.
    pub fn text(self) -> String {
        format!("found {} of {} wrong steps", self.found, self.tried)
    }
}
