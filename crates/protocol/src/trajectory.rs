//! One trajectory: a machine, its state stack, and what a decision does to them. The steps are
//! those of Algorithm 1, with Retry, Backtrack and Pop as docs/paper-decisions.md defines them.

mod retake;

use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::budget::Left;
use super::coordination::Decision;
use super::judges::Judges;
use super::located::Fault;
use super::progress::Progress;
use super::rejection::{Rejection, StuckAt};
use super::retreat::Retreat;
use super::score::Score;
use super::stack::StateStack;
use prime_bench::tasks::{Machine, Unanswered};

pub use super::end::{End, Next};
pub use super::limits::Limits;
pub use super::verdict::{Opinion, Usage, Verdict};

/// Counters of a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All proposals.
    pub proposals: u64,
    /// Proposals that matched the grammar and could be applied.
    pub applicable: u64,
    /// Steps that were committed, those that were undone later included.
    pub committed: u64,
    /// Decisions to retry.
    pub retries: u64,
    /// Decisions to backtrack.
    pub backtracks: u64,
    /// States that were popped.
    pub pops: u64,
}

/// The state of a trajectory, except for its machine and its stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryState {
    counts: Counts,
    usage: Usage,
    feedback: Option<String>,
    last_score: Score,
    tolerated: Vec<(usize, Score)>,
    #[serde(default)]
    judges: Judges,
    #[serde(default)]
    retreat: Retreat,
    progress: Progress,
    completion_max: Option<u32>,
}

/// What a run keeps of a trajectory that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Σ V over the committed steps.
    pub score: Score,
    /// The weakest basis on which a committed step was judged.
    #[serde(default)]
    pub basis: Basis,
    /// V of the last judged step.
    pub last_score: Score,
    /// Committed steps.
    pub steps: u64,
    /// All proposals.
    pub proposals: u64,
    /// Proposals that could be applied.
    pub applicable: u64,
    /// Identifies the committed lines ([`StateStack::digest`]).
    pub trace: u64,
}

impl Summary {
    /// The summary of a trajectory.
    pub fn of(trajectory: &Trajectory) -> Self {
        Self {
            score: trajectory.score(),
            basis: trajectory.judges.weakest(),
            last_score: trajectory.last_score,
            steps: trajectory.stack.depth() as u64,
            proposals: trajectory.counts.proposals,
            applicable: trajectory.counts.applicable,
            trace: trajectory.stack.digest(),
        }
    }
}

/// One attempt at a problem. It moves with its turn and is never shared.
pub struct Trajectory {
    /// Its place among the trajectories of its round, from 0. Agents may vary with it.
    pub index: u32,
    /// The machine, which holds the current state and the candidate.
    pub machine: Box<dyn Machine>,
    /// The committed lines, and what was rejected at each state.
    pub stack: StateStack,
    /// Counts of what happened so far.
    pub counts: Counts,
    /// Tokens spent so far. Hidden from agents: the next proposal may start before all of it is
    /// known.
    pub(super) usage: Usage,
    /// Feedback on the last proposal at this state, shown to the executor.
    pub feedback: Option<String>,
    /// Most completion tokens of the next proposal, if the run's budget limits them.
    pub completion_max: Option<u32>,
    /// V of the last judged step; also hidden from agents.
    pub(super) last_score: Score,
    /// T_max of the problem.
    steps_max: u64,
    /// Tolerated scores above zero, by depth.
    tolerated: Vec<(usize, Score)>,
    /// The basis of verdicts that do not state their own, on this problem.
    pub(super) judged_by: Basis,
    judges: Judges,
    pub(super) retreat: Retreat,
    /// What a locator found at this turn.
    pub(super) fault: Option<Fault>,
    /// What a locator may spend at this turn; `None` where the run never goes back.
    pub locator_budget: Option<Left>,
    progress: Progress,
}

impl Trajectory {
    /// A trajectory at the machine's first state.
    pub fn new(machine: Box<dyn Machine>, limits: &Limits) -> Self {
        let problem = machine.problem();
        // A pop must not ask a program again for the steps since a snapshot.
        let snapshot_every = if problem.is_asked() { 1 } else { limits.snapshot_every_frames };
        let stack = StateStack::new(machine.as_ref(), snapshot_every);
        let steps_max = problem.steps_max();

        Self {
            index: 0,
            machine,
            steps_max,
            stack,
            counts: Counts::default(),
            usage: Usage::default(),
            feedback: None,
            completion_max: None,
            last_score: Score::ZERO,
            tolerated: Vec::new(),
            judged_by: Basis::NONE,
            judges: Judges::default(),
            retreat: Retreat::default(),
            fault: None,
            locator_budget: None,
            progress: Progress::default(),
        }
    }

    /// T_max of the problem.
    pub(super) fn steps_max(&self) -> u64 {
        self.steps_max
    }

    /// The state, for [`Trajectory::set_state`].
    pub fn state(&self) -> TrajectoryState {
        TrajectoryState {
            counts: self.counts,
            usage: self.usage,
            feedback: self.feedback.clone(),
            last_score: self.last_score,
            tolerated: self.tolerated.clone(),
            judges: self.judges.clone(),
            retreat: self.retreat.clone(),
            progress: self.progress.clone(),
            completion_max: self.completion_max,
        }
    }

    /// Restores what [`Trajectory::state`] returned.
    pub fn set_state(&mut self, state: TrajectoryState) {
        let TrajectoryState {
            counts,
            usage,
            feedback,
            last_score,
            tolerated,
            judges,
            retreat,
            progress,
            completion_max,
        } = state;

        (self.counts, self.usage, self.feedback) = (counts, usage, feedback);
        (self.last_score, self.tolerated, self.progress) = (last_score, tolerated, progress);
        (self.judges, self.retreat, self.completion_max) = (judges, retreat, completion_max);
    }

    /// The state at which the trajectory got stuck. Call it when the trajectory has ended.
    pub(super) fn take_stuck_at(&mut self) -> Option<StuckAt> {
        self.progress.take_stuck_at()
    }

    /// Applies what other trajectories learned at the present state.
    pub(super) fn learn(&mut self, known: &StuckAt) {
        for Rejection { line, reason } in &known.rejected {
            self.stack.top_mut().exclude(line, reason.as_deref());
        }
    }

    /// Σ V over the committed steps. Zero means that the verifier found nothing wrong with any of
    /// them.
    fn score(&self) -> Score {
        self.tolerated.iter().fold(Score::ZERO, |sum, (_, score)| sum.plus(*score))
    }

    /// Returns whether this line was already rejected at the current state, so that it need not be
    /// judged again.
    #[inline]
    pub fn excludes(&self, line: &str) -> bool {
        self.stack.top().excludes(line)
    }

    /// Applies a decision on the line that the machine holds as its candidate, or has refused.
    pub fn settle(
        &mut self,
        line: &str,
        applicable: bool,
        verdict: &Verdict,
        decision: Decision,
        limits: &Limits,
    ) -> Next {
        self.begin(verdict);
        self.counts.applicable += u64::from(applicable);

        match decision {
            // No check for being stuck: steps without rejections lead deeper.
            Decision::Proceed if applicable => return self.commit(line, verdict, limits),
            // No verifier objected to a line that cannot be applied: the state stays as it is.
            Decision::Proceed => {
                if self.is_spent(limits) {
                    return self.stuck();
                }
            }
            Decision::Retry => {
                self.counts.retries += 1;
                self.stack.top_mut().retries += 1;
                self.feedback.clone_from(&verdict.feedback);
            }
            Decision::Backtrack => {
                self.counts.backtracks += 1;
                self.feedback.clone_from(&verdict.feedback);
                if self.machine.candidate_ends() {
                    self.retreat.refuted(self.stack.depth());
                }
                self.stack.top_mut().exclude(line, verdict.feedback.as_deref());
                if let Some(next) = self.go_back_to_fault(limits) {
                    return next;
                }
            }
        }

        self.climb_on(limits, false)
    }

    /// Notes whether a refused line would have ended the trace, where the machine does not hold it
    /// as its candidate.
    ///
    /// # Errors
    /// The task's program does not answer.
    pub(super) fn try_end(&mut self, line: &str) -> Result<(), Unanswered> {
        self.machine.foresee_blocking(line)?;
        if self.machine.propose(line).is_ok() && self.machine.candidate_ends() {
            self.retreat.refuted(self.stack.depth());
        }
        // No task has an empty line: this leaves no candidate that could be taken for the state.
        drop(self.machine.propose(""));
        Ok(())
    }

    /// Counts a proposal at the current state.
    #[inline]
    fn begin(&mut self, verdict: &Verdict) {
        self.counts.proposals += 1;
        self.stack.top_mut().proposals += 1;
        self.progress.proposed();
        self.last_score = verdict.score;
        self.feedback = None;
    }

    /// Climbs, unless there was no progress for too long.
    pub(super) fn climb_on(&mut self, limits: &Limits, is_exhausted: bool) -> Next {
        match self.climb(limits, is_exhausted) {
            Next::Propose if self.progress.idle_proposals() >= limits.stuck_after => self.stuck(),
            next => next,
        }
    }

    fn stuck(&mut self) -> Next {
        self.note_stuck();
        Next::Ended(End::Stuck)
    }

    #[cold]
    fn note_stuck(&mut self) {
        let stuck =
            || StuckAt::new(self.stack.depth(), self.machine.state(), &self.stack.top().excluded);
        self.progress.note_stuck_at(self.stack.depth(), stuck);
    }

    /// Leaves a state where every line that the executor can write was rejected. Like a state
    /// without choices, it is popped, and the action that led there is excluded below. `verdict` is
    /// the one that says so.
    pub fn settle_exhausted(&mut self, verdict: &Verdict, limits: &Limits) -> Next {
        self.begin(verdict);
        self.counts.backtracks += 1;
        if let Some(next) = self.go_back_to_fault(limits) {
            return next;
        }
        self.climb_on(limits, true)
    }

    /// A copy at the same state.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.state();
        let mut fork = Self {
            index: self.index,
            machine: self.machine.fork(),
            stack: self.stack.clone(),
            counts: Counts::default(),
            usage: Usage::default(),
            feedback: None,
            completion_max: None,
            last_score: Score::ZERO,
            steps_max: self.steps_max,
            tolerated: Vec::new(),
            judged_by: self.judged_by,
            judges: Judges::default(),
            retreat: Retreat::default(),
            fault: None,
            locator_budget: self.locator_budget,
            progress: Progress::default(),
        };

        fork.set_state(state);
        fork
    }

    /// Counts a proposal of a synchronous search, which decides on it later.
    pub fn count(&mut self, applicable: bool) {
        self.counts.proposals += 1;
        self.counts.applicable += u64::from(applicable);
        self.stack.top_mut().proposals += 1;
    }

    /// The basis of a verdict on this problem.
    #[inline]
    pub(super) fn basis_of(&self, verdict: &Verdict) -> Basis {
        let own = |basis: Basis| basis.on(self.machine.problem().as_ref());
        verdict.basis.map_or(self.judged_by, own)
    }

    #[inline]
    fn commit(&mut self, line: &str, verdict: &Verdict, limits: &Limits) -> Next {
        let basis = self.basis_of(verdict);
        self.machine.commit();
        match self.push(line, verdict.score, basis) {
            Next::Ended(End::StepsSpent) => self.overlong(limits),
            next => next,
        }
    }

    /// Goes back from T_max: no valid trace is that long, so an earlier step was wrong.
    #[cold]
    fn overlong(&mut self, limits: &Limits) -> Next {
        if let Some(next) = self.go_back_to_fault(limits) {
            return next;
        }
        let depth = self.stack.depth();
        self.retreat.refuted(depth);
        let spent = Next::Ended(End::StepsSpent);
        if self.counts.pops >= limits.pops_max {
            return spent;
        }
        let Some(further) = self.retreat.further(depth) else { return spent };

        self.counts.pops += 1;
        self.leave(1 + further);
        Next::Propose
    }

    /// Records the line that led to the machine's current state as a committed step, with its V and
    /// the basis of its verdict.
    #[inline]
    pub fn push(&mut self, line: &str, score: Score, basis: Basis) -> Next {
        self.judges.push(self.stack.depth(), basis.of_step_to(self.machine.as_ref()));
        self.stack.push(line, self.machine.as_ref());

        self.counts.committed += 1;
        self.progress.reaches(self.stack.depth());
        self.last_score = score;
        if score > Score::ZERO {
            self.tolerated.push((self.stack.depth(), score));
        }

        match self.machine.answer() {
            Some(answer) => Next::Ended(End::Answered(answer)),
            None if self.stack.depth() as u64 >= self.steps_max => Next::Ended(End::StepsSpent),
            None => Next::Propose,
        }
    }

    /// The choices left at the current state; `None` if they are not finite.
    fn choices_left(&self) -> Option<usize> {
        let choices = self.machine.choices()?;
        Some(choices.iter().filter(|choice| !self.stack.top().excludes(choice)).count())
    }

    fn is_spent(&self, limits: &Limits) -> bool {
        let (top, limit) = (self.stack.top(), limits.attempts_max.min(limits.repetitions_max));
        // In a finite search, trying each choice once does not use up attempts.
        top.repetitions() >= limit
            || (top.proposals >= limits.attempts_max && self.machine.choices().is_none())
    }

    /// Pops states with no choices or no attempts left. `is_exhausted` says that the executor has no
    /// line left at the top.
    fn climb(&mut self, limits: &Limits, mut is_exhausted: bool) -> Next {
        loop {
            let is_left = std::mem::take(&mut is_exhausted);

            // An abandoned line may have been right, so a state with one is not a proven dead end.
            let dead_end = (is_left && self.stack.top().abandoned.is_empty())
                || self.choices_left() == Some(0);

            if !dead_end && !is_left && !self.is_spent(limits) {
                return Next::Propose;
            }

            if !dead_end {
                self.note_stuck();
            }

            if self.stack.depth() == 0 {
                return Next::Ended(if dead_end { End::Exhausted } else { End::Stuck });
            }
            if self.counts.pops >= limits.pops_max {
                return Next::Ended(End::PopsSpent);
            }

            self.counts.pops += 1;
            let depth = self.stack.depth();

            // Taken before the pop, which replaces the top.
            let rejected = std::mem::take(&mut self.stack.top_mut().excluded);
            let line = self
                .stack
                .pop(self.machine.as_mut())
                .expect("invariant: the stack is not at its bottom");

            self.tolerated.retain(|(at, _)| *at < depth);
            self.judges.truncate(depth - 1);
            self.retreat.truncate(depth - 1);
            self.feedback = None;

            if dead_end {
                self.progress.proved();
                self.stack.top_mut().exclude(&line, Some("leads to a dead end"));
            } else {
                self.stack.top_mut().abandon(line, rejected);
                if let Some(further) = self.retreat.further(depth) {
                    self.leave(further);
                }
            }
        }
    }

    /// Leaves this many states, which must exist. Returns the line of the lowest step that is
    /// undone.
    pub(super) fn leave(&mut self, states: usize) -> Option<Box<str>> {
        let mut line = None;
        for _ in 0..states {
            line = self.stack.pop(self.machine.as_mut());
        }

        let now = self.stack.depth();
        self.tolerated.retain(|(at, _)| *at <= now);
        self.judges.truncate(now);
        self.retreat.truncate(now);
        self.progress.retreats(now);
        line
    }
}
