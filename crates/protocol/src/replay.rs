//! Replays a run from its recorded events: to continue it in another process, or to show its states
//! later.

use std::collections::HashMap;
use std::sync::Arc;

use super::approval::HeldStep;
use super::basis::Basis;
use super::coordination::Decision;
use super::outcome::{Ending, Outcome};
use super::plan::RunPlan;
use super::replay_error::ReplayError;
use super::reward::{Merits, Reward};
use super::run::{Effect, Run};
use super::score::Score;
use super::trajectory::{Counts, Trajectory, Usage};
use super::turn::{TurnId, TurnOutcome};
use prime_bench::tasks::Problem;

/// An event that changes a run. All other events of a run follow from these.
pub enum RunInput<'a> {
    /// A turn was decided.
    Decided {
        /// The turn.
        id: TurnId,
        /// What was proposed and decided.
        outcome: TurnOutcome<'a>,
    },
    /// An agent failed at a turn for good.
    Failed {
        /// The turn.
        id: TurnId,
        /// The last failure, for people.
        reason: String,
        /// Tokens that its attempts cost.
        usage: Usage,
    },
    /// From here on, verdicts rest on this, unless they say otherwise.
    JudgedBy(Basis),
    /// The run was ended from outside: by the clock, by its owner, or because an agent keeps
    /// failing.
    Stopped {
        /// What ended it.
        ending: Ending,
    },
}

/// A run that is not over and whose turns all wait for their next proposals.
pub struct SuspendedRun {
    /// The run, without its trajectories.
    pub run: Run,
    /// Sorted by trajectory.
    pub waiting: Vec<(TurnId, Box<Trajectory>)>,
    /// The steps that wait for approval; their trajectories are not in `waiting`.
    pub held: Vec<HeldStep>,
    /// Steps that waited for approval so far.
    pub holds: u32,
    /// Milliseconds since its start.
    pub elapsed_ms: u64,
}

/// A run at the end of its record.
pub enum Replayed {
    /// The run is not over.
    Open(Box<SuspendedRun>),
    /// The run is over.
    Over(Box<Outcome>),
}

/// Replays a run event by event.
pub struct Replay {
    run: Run,
    waiting: HashMap<TurnId, Box<Trajectory>>,
    elapsed_ms: u64,
    outcome: Option<Box<Outcome>>,
    /// The trajectories that the last event ended.
    ended: Vec<(TurnId, Reward)>,
    effects: Vec<Effect>,
}

impl Replay {
    /// Starts at the run's start.
    pub fn new(problem: Arc<dyn Problem>, plan: RunPlan) -> Self {
        let mut run = Run::new(problem, plan);
        // The record says who judged; a record that does not has steps that nobody vouches for.
        run.set_judged_by(Basis::NONE);
        let mut effects = Vec::new();

        run.start(&mut effects);

        let mut replay = Self {
            run,
            waiting: HashMap::new(),
            elapsed_ms: 0,
            outcome: None,
            ended: Vec::new(),
            effects,
        };

        replay.absorb();
        replay
    }

    /// Starts at a snapshot.
    pub fn from_suspended(suspended: SuspendedRun) -> Self {
        let SuspendedRun { run, waiting, elapsed_ms, .. } = suspended;
        let waiting = waiting.into_iter().collect();
        Self { run, waiting, elapsed_ms, outcome: None, ended: Vec::new(), effects: Vec::new() }
    }

    /// The trajectory of a turn that waits for its next proposal.
    pub fn trajectory(&self, id: TurnId) -> Option<&Trajectory> {
        self.waiting.get(&id).map(AsRef::as_ref)
    }

    /// The reward of the step that the last event settled. `before` are the counts of its
    /// trajectory before the step, `score` is its V.
    pub fn step_reward(
        &self,
        id: TurnId,
        before: Counts,
        applicable: bool,
        score: Score,
    ) -> Reward {
        let share =
            |proposals, applicable| Merits { proposals, applicable, ..Merits::default() }.share();

        let with_it = share(before.proposals + 1, before.applicable + u64::from(applicable));

        let end = self.ended.iter().find(|(ended, _)| *ended == id).map(|(_, reward)| reward);

        self.run.plan().weights.of_step(
            score,
            share(before.proposals, before.applicable),
            with_it,
            end,
        )
    }

    fn absorb(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => {
                    self.waiting.insert(id, trajectory);
                }
                // The turns of a closed round are stale.
                Effect::Voted { .. } => self.waiting.clear(),
                Effect::Finish(outcome) => self.outcome = Some(outcome),
                Effect::Ended(id, _, reward) => self.ended.push((id, reward)),
                Effect::Chosen { .. } => {}
            }
        }
    }

    fn take(&mut self, id: TurnId) -> Result<Box<Trajectory>, ReplayError> {
        let TurnId { round, trajectory } = id;
        if let Some(waiting) = self.waiting.remove(&id) {
            return Ok(waiting);
        }
        if self.run.problem().is_asked() {
            let ended = format!("trajectory {trajectory} of round {round} has ended earlier");
            return Err(ReplayError::OtherProgram(ended));
        }
        Err(ReplayError::NotInFlight { round, trajectory })
    }

    /// Applies the next event, `elapsed_ms` after the run's start.
    ///
    /// # Errors
    /// When it cannot have happened here.
    pub fn apply(&mut self, input: RunInput<'_>, elapsed_ms: u64) -> Result<(), ReplayError> {
        self.elapsed_ms = elapsed_ms;
        self.ended.clear();

        match input {
            RunInput::Decided { id, outcome } => {
                let mut trajectory = self.take(id)?;
                // It may have been made before the record said who judges.
                trajectory.judged_by = self.run.judged_by();
                // The machine holds no candidate here, so the line is applied to its state directly.
                // A synchronous search does that itself, once it has chosen.
                let is_committed = outcome.applicable && outcome.decision == Decision::Proceed;
                if is_committed && !self.run.plan().strategy.is_synchronous() {
                    let basis = trajectory.basis_of(outcome.verdict);
                    trajectory.retake(outcome.line, outcome.verdict.score, basis)?;
                }
                // A refused line that would have ended the trace sends the search back: only the
                // machine knows which lines do.
                if outcome.applicable && outcome.decision == Decision::Backtrack {
                    trajectory.try_end(outcome.line)?;
                }
                // A synchronous search applies it once it has chosen.
                if is_committed && self.run.plan().strategy.is_synchronous() {
                    let basis = trajectory.basis_of(outcome.verdict);
                    trajectory.check_again(outcome.line, outcome.verdict.score, basis)?;
                }
                self.run.settle(id, trajectory, outcome, elapsed_ms, &mut self.effects);
            }
            RunInput::Failed { id, reason, usage } => {
                let trajectory = self.take(id)?;
                self.run.fail(id, trajectory, (reason, usage), elapsed_ms, &mut self.effects);
            }
            RunInput::JudgedBy(basis) => self.run.set_judged_by(basis),
            RunInput::Stopped { ending } => self.run.stop(ending, &mut self.effects),
        }

        self.absorb();
        Ok(())
    }

    /// The run as it is after the last event.
    pub fn finish(self) -> Replayed {
        if let Some(outcome) = self.outcome {
            return Replayed::Over(outcome);
        }

        let mut waiting: Vec<_> = self.waiting.into_iter().collect();
        // A map has no order, and turns must be resumed in the same one every time.
        waiting.sort_by_key(|(id, _)| id.trajectory);

        Replayed::Open(Box::new(SuspendedRun {
            run: self.run,
            waiting,
            held: Vec::new(),
            holds: 0,
            elapsed_ms: self.elapsed_ms,
        }))
    }
}
