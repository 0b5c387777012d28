//! A run made again from what happened to it: how it goes on in another process, and how its states are shown later.

use std::collections::HashMap;
use std::sync::Arc;

use super::coordination::Decision;
use super::outcome::{Ending, Outcome};
use super::plan::RunPlan;
use super::run::{Effect, Run, TurnId, TurnOutcome};
use super::trajectory::Trajectory;
use prime_bench::tasks::Problem;

/// Something that changed a run. Whatever else is told of a run follows from these.
pub enum RunInput<'a> {
    /// A turn came back decided.
    TurnOutcome { id: TurnId, settled: TurnOutcome<'a> },
    /// A turn failed for good.
    Failed { id: TurnId, reason: String },
    /// The run was ended from outside: by the clock, by its owner, or because an agent is gone.
    Stopped { ending: Ending },
}

/// What was recorded cannot have happened: by another version of a task, or the record is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    #[error("the recorded step `{line}` at depth {depth} cannot be carried out again: {reason}")]
    Step { line: String, depth: usize, reason: String },
    #[error("a turn is recorded that was not under way: round {round}, trajectory {trajectory}")]
    NotUnderWay { round: u32, trajectory: u32 },
}

/// A run that is not over, at rest: every turn waits for its next proposal.
pub struct SuspendedRun {
    pub run: Run,
    /// Sorted by trajectory.
    pub waiting: Vec<(TurnId, Box<Trajectory>)>,
    /// Milliseconds that it has been under way.
    pub elapsed_ms: u64,
}

/// What became of a run by the end of its record.
pub enum Replayed {
    Open(Box<SuspendedRun>),
    Over(Box<Outcome>),
}

/// A run, folded event by event.
pub struct Replay {
    run: Run,
    waiting: HashMap<TurnId, Box<Trajectory>>,
    elapsed_ms: u64,
    outcome: Option<Box<Outcome>>,
    effects: Vec<Effect>,
}

impl Replay {
    /// Begins where the run began.
    pub fn new(problem: Arc<dyn Problem>, plan: RunPlan) -> Self {
        let mut run = Run::new(problem, plan);
        let mut effects = Vec::new();
        run.start(&mut effects);
        let mut fold = Self { run, waiting: HashMap::new(), elapsed_ms: 0, outcome: None, effects };
        fold.absorb();
        fold
    }

    /// Begins at a state that was saved.
    pub fn from_resting(resting: SuspendedRun) -> Self {
        let SuspendedRun { run, waiting, elapsed_ms } = resting;
        Self { run, waiting: waiting.into_iter().collect(), elapsed_ms, outcome: None, effects: Vec::new() }
    }

    /// The trajectory of a turn that waits for its next proposal.
    pub fn trajectory(&self, id: TurnId) -> Option<&Trajectory> {
        self.waiting.get(&id).map(AsRef::as_ref)
    }

    fn absorb(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => {
                    self.waiting.insert(id, trajectory);
                }
                // The turns of a round that is closed are of no use any more.
                Effect::Voted { .. } => self.waiting.clear(),
                Effect::Finish(outcome) => self.outcome = Some(outcome),
                Effect::Ended(..) | Effect::Chosen { .. } => {}
            }
        }
    }

    fn take(&mut self, id: TurnId) -> Result<Box<Trajectory>, ReplayError> {
        let TurnId { round, trajectory } = id;
        self.waiting.remove(&id).ok_or(ReplayError::NotUnderWay { round, trajectory })
    }

    /// Does what happened `elapsed_ms` after the run's start.
    ///
    /// # Errors
    /// When that cannot have happened here.
    pub fn apply(&mut self, happened: RunInput<'_>, elapsed_ms: u64) -> Result<(), ReplayError> {
        self.elapsed_ms = elapsed_ms;
        match happened {
            RunInput::TurnOutcome { id, settled } => {
                let mut trajectory = self.take(id)?;
                // A search that gathers carries out what it chooses by itself.
                let is_committed = settled.applicable && settled.decision == Decision::Proceed;
                if is_committed && !self.run.plan().strategy.is_lockstep() {
                    trajectory.machine.replay(settled.line).map_err(|refusal| ReplayError::Step {
                        line: settled.line.to_owned(),
                        depth: trajectory.stack.depth(),
                        reason: refusal.to_string(),
                    })?;
                }
                self.run.settle(id, trajectory, settled, elapsed_ms, &mut self.effects);
            }
            RunInput::Failed { id, reason } => {
                let trajectory = self.take(id)?;
                self.run.fail(id, trajectory, reason, elapsed_ms, &mut self.effects);
            }
            RunInput::Stopped { ending } => self.run.stop(ending, &mut self.effects),
        }
        self.absorb();
        Ok(())
    }

    pub fn finish(self) -> Replayed {
        if let Some(outcome) = self.outcome {
            return Replayed::Over(outcome);
        }
        let mut waiting: Vec<_> = self.waiting.into_iter().collect();
        waiting.sort_by_key(|(id, _)| id.trajectory);
        Replayed::Open(Box::new(SuspendedRun { run: self.run, waiting, elapsed_ms: self.elapsed_ms }))
    }
}
