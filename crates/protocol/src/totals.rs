//! What a run counts over all its trajectories and rounds.

use serde::{Deserialize, Serialize};

use super::coordination::Decision;
use super::run::TurnOutcome;
use super::speculations::Speculations;
use super::trajectory::Usage;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Totals {
    pub proposals: u64,
    pub retries: u64,
    pub backtracks: u64,
    pub pops: u64,
    pub trajectories: u32,
    pub usage: Usage,
    #[serde(default)]
    pub speculations: Speculations,
}

impl Totals {
    /// Counts a turn that came back.
    pub fn count(&mut self, settled: &TurnOutcome<'_>) {
        self.proposals += 1;
        self.retries += u64::from(settled.decision == Decision::Retry);
        self.backtracks += u64::from(settled.decision == Decision::Backtrack);
        self.usage.add(settled.usage);
        self.speculations.add(settled.speculations);
    }
}
