//! Counters of a run, over all its trajectories and rounds.

use serde::{Deserialize, Serialize};

use super::coordination::Decision;
use super::speculations::Speculations;
use super::trajectory::Usage;
use super::turn::TurnOutcome;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RunCounters {
    pub proposals: u64,
    pub retries: u64,
    pub backtracks: u64,
    pub pops: u64,
    pub trajectories: u32,
    pub usage: Usage,
    pub speculations: Speculations,
}

impl RunCounters {
    #[inline]
    pub fn count(&mut self, outcome: &TurnOutcome<'_>) {
        self.proposals += 1;
        self.retries += u64::from(outcome.decision == Decision::Retry);
        self.backtracks += u64::from(outcome.decision == Decision::Backtrack);
        self.usage.add(outcome.usage);
        self.speculations.add(outcome.speculations);
    }
}
