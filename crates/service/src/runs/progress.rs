//! Counts over the events of an open run.

use serde::{Deserialize, Serialize};

use prime_protocol::{Decision, Rejection, Speculations, Usage};
use prime_report::{Approvals, RejectedStep, RunResult, StepLine, TraceLine};

/// Counts over the events of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub is_under_way: bool,
    /// Committed steps of the deepest trajectory of the current round.
    pub steps: u64,
    pub proposals: u64,
    pub retries: u64,
    pub backtracks: u64,
    pub rounds: u32,
    pub usage: Usage,
    #[serde(default)]
    pub speculations: Speculations,
    pub elapsed_ms: u64,
    /// Steps that need review.
    #[serde(default)]
    pub reviews_needed: u64,
    /// Steps that waited for approval.
    #[serde(default)]
    pub approvals: Approvals,
    #[serde(default)]
    pub last_rejection: Option<RejectedStep>,
}

impl Progress {
    /// Counts an event.
    pub fn see(&mut self, line: &TraceLine<'_>) {
        match line {
            TraceLine::Started { .. } => self.is_under_way = true,
            TraceLine::Step(step) => self.see_step(step),
            TraceLine::Waiting(step) => self.see_waiting(step),
            TraceLine::TurnFailed { elapsed_ms, usage, .. } => {
                self.elapsed_ms = *elapsed_ms;
                self.usage.add(*usage);
            }
            TraceLine::Mishap { elapsed_ms, .. } | TraceLine::Stopped { elapsed_ms, .. } => {
                self.elapsed_ms = *elapsed_ms;
            }
            _ => {}
        }
    }

    /// Counts a step that waits for approval; its event `step` counts everything else.
    pub fn see_waiting(&mut self, step: &StepLine<'_>) {
        self.approvals.asked += 1;
        self.elapsed_ms = step.elapsed_ms;
    }

    pub fn see_step(&mut self, step: &StepLine<'_>) {
        // Steps are those of the current round.
        if step.round > self.rounds {
            self.rounds = step.round;
            self.steps = 0;
        }

        self.proposals += 1;
        self.reviews_needed += u64::from(step.needs_review);
        if let Some(approval) = &step.approval {
            self.approvals.decided(approval.verdict);
        }
        self.usage.add(step.usage);
        self.speculations.add(step.speculations);
        self.elapsed_ms = step.elapsed_ms;

        match step.decision {
            Decision::Proceed if step.applicable => {
                self.steps = self.steps.max((step.depth as u64).saturating_add(1));
            }
            // The line could not be applied, so that nothing was committed.
            Decision::Proceed => {}
            Decision::Retry => self.retries += 1,
            Decision::Backtrack => {
                self.backtracks += 1;
                let rejection = Rejection::new(&step.action, step.feedback.as_deref());
                self.last_rejection = Some(RejectedStep { depth: step.depth, rejection });
            }
        }
    }

    /// Fills in the record of an open run with `trajectories` per round.
    pub fn fill(&self, result: &mut RunResult, trajectories: u32) {
        result.steps = self.steps;
        result.proposals = self.proposals;
        result.retries = self.retries;
        result.backtracks = self.backtracks;
        result.rounds = self.rounds;
        result.trajectories = self.rounds * trajectories;
        result.tokens = self.usage;
        result.speculations = Some(self.speculations).filter(|counts| !counts.is_none());
        result.wall_ms = self.elapsed_ms;
        result.approvals = self.approvals.if_any();
        result.last_rejection.clone_from(&self.last_rejection);
    }
}
