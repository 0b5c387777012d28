//! The events of a run, and their observers.

use std::sync::Arc;

use tracing::Span;

use super::turn_timing::StageTimes;
use prime_protocol::{
    Approval, Ballot, Basis, Chosen, Decision, End, Ending, Located, Outcome, Reward, Role,
    RoleTimes, RunSnapshot, Speculations, TurnId, Usage, Verdict,
};
use prime_roles::live::Listener;
use prime_roles::{AgentError, Failure, Proposal};

/// An event of a run. It borrows, so that an observer that ignores it costs nothing.
pub enum Event<'a> {
    /// The run's first turns are about to be sent.
    Started {
        /// On what the verdicts of its verifier rest.
        basis: Basis,
    },
    /// A proposal was judged, and its fate decided.
    Step {
        /// The trajectory of the step.
        id: TurnId,
        /// Milliseconds since the start of the run.
        elapsed_ms: u64,
        /// Committed steps below the proposal.
        depth: usize,
        /// The proposal.
        proposal: &'a Proposal,
        /// True if the task can carry out the proposed line.
        is_applicable: bool,
        /// The verdict on it.
        verdict: &'a Verdict,
        /// What the coordinator decided.
        decision: Decision,
        /// What a locator found in the steps before, if it was asked.
        located: Option<&'a Located>,
        /// What a reviewer decided about it, if it waited for approval.
        approval: Option<&'a Approval>,
        /// Usage of the three agents, discarded proposals included.
        usage: Usage,
        /// Proposals that were started early: this one, the next one.
        speculations: Speculations,
        /// How long the step waited for each agent.
        waited: RoleTimes,
        /// Present if [`Observer::wants_timing`].
        timing: Option<&'a StageTimes>,
    },
    /// A step is about to be committed, and waits for approval.
    Waiting {
        /// Number of the approval in its run, from 1.
        number: u32,
        /// The step, an [`Event::Step`].
        step: &'a Event<'a>,
    },
    /// An agent failed at a turn, which is retried.
    Mishap {
        /// The trajectory of the turn.
        id: TurnId,
        /// Milliseconds since the start of the run.
        elapsed_ms: u64,
        /// The role that failed.
        role: Role,
        /// The failure.
        error: &'a AgentError,
        /// Mishaps of this turn, including this one.
        mishaps: u32,
    },
    /// An agent failed at a turn for good: its trajectory ends.
    TurnFailed {
        /// The trajectory of the turn.
        id: TurnId,
        /// Milliseconds since the start of the run.
        elapsed_ms: u64,
        /// The role that failed.
        role: Role,
        /// The kind of the last failure.
        failure: Failure,
        /// What happened and what to do.
        reason: &'a str,
        /// What its attempts cost.
        usage: Usage,
    },
    /// The run was ended from outside: by the clock, by its owner, or because an agent keeps
    /// failing.
    Stopped {
        /// What ended it.
        ending: &'a Ending,
        /// Milliseconds since the start of the run.
        elapsed_ms: u64,
    },
    /// A trajectory ended.
    TrajectoryEnded {
        /// The trajectory.
        id: TurnId,
        /// How it ended.
        end: &'a End,
        /// Its reward, in parts.
        reward: &'a Reward,
    },
    /// A step was taken by vote.
    Chosen {
        /// The round, from 1.
        round: u32,
        /// The step, with its votes.
        chosen: &'a Chosen,
    },
    /// The answers of a round were counted.
    Voted {
        /// The round, from 1.
        round: u32,
        /// The answer with most votes; `None` without votes.
        winner: Option<&'a Ballot>,
        /// Share of the round's trajectories that voted for it, 0 to 1.
        agreement: f64,
    },
    /// The run ended.
    Finished(&'a Outcome),
}

/// Resumes a run that waited for its observer.
pub type Wake = Box<dyn FnOnce() + Send>;

/// Sees the events of a run. It is called on the cell's thread, so it must return quickly and must
/// not panic.
pub trait Observer: Send + Sync {
    /// Receives an event.
    fn observe(&self, event: &Event<'_>);

    /// Receives the run's span before the first event, if a subscriber listens to spans. Its field
    /// `run` is empty.
    fn attach(&self, _span: &Span) {}

    /// True if the stages of each turn should be timed, at about nine clock readings per step.
    fn wants_timing(&self) -> bool {
        false
    }

    /// True if it may hold steps for approval. Asked once, when the run begins.
    fn may_hold(&self) -> bool {
        false
    }

    /// True if this step, which is about to be committed, must be approved first. Asked only if it
    /// [may hold](Observer::may_hold) steps.
    fn holds(&self, _step: &Event<'_>) -> bool {
        false
    }

    /// All trajectories wait for approval: the run leaves the runtime without an outcome.
    fn suspended(&self) {}

    /// True if a snapshot is due: the run's turns are then gathered, each between two proposals.
    fn wants_snapshot(&self) -> bool {
        false
    }

    /// The listener for what a model writes for a turn, if there is one; asked for when an agent
    /// may have to wait. What it hears is not an event: it comes from any thread, and ends with the
    /// turn's next event.
    fn listener(&self, _id: TurnId, _role: Role) -> Option<Listener> {
        None
    }

    /// Receives the run as it is after the events so far.
    fn save_snapshot(&self, _snapshot: RunSnapshot) {}

    /// True if it cannot keep up: the run then makes no proposals until it is woken.
    fn is_behind(&self) -> bool {
        false
    }

    /// Calls `wake` once it is no longer behind, which may be now.
    fn wake_when_free(&self, wake: Wake) {
        wake();
    }
}

/// Ignores all events.
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _: &Event<'_>) {}
}

/// Shows the events to a watcher before they reach the observer that keeps them, which alone
/// answers for spans, approvals, snapshots and backlog.
pub struct Watched<W> {
    watcher: W,
    keeper: Arc<dyn Observer>,
}

impl<W> Watched<W> {
    /// Shows events to `watcher`, then to `keeper`.
    pub fn new(watcher: W, keeper: Arc<dyn Observer>) -> Self {
        Self { watcher, keeper }
    }
}

impl<W: Observer> Observer for Watched<W> {
    fn observe(&self, event: &Event<'_>) {
        self.watcher.observe(event);
        self.keeper.observe(event);
    }

    fn attach(&self, span: &Span) {
        self.keeper.attach(span);
    }

    fn wants_timing(&self) -> bool {
        self.watcher.wants_timing() || self.keeper.wants_timing()
    }

    fn listener(&self, id: TurnId, role: Role) -> Option<Listener> {
        self.watcher.listener(id, role).or_else(|| self.keeper.listener(id, role))
    }

    fn may_hold(&self) -> bool {
        self.keeper.may_hold()
    }

    fn holds(&self, step: &Event<'_>) -> bool {
        self.keeper.holds(step)
    }

    fn suspended(&self) {
        self.keeper.suspended();
    }

    fn wants_snapshot(&self) -> bool {
        self.keeper.wants_snapshot()
    }

    fn save_snapshot(&self, snapshot: RunSnapshot) {
        self.keeper.save_snapshot(snapshot);
    }

    fn is_behind(&self) -> bool {
        self.keeper.is_behind()
    }

    fn wake_when_free(&self, wake: Wake) {
        self.keeper.wake_when_free(wake);
    }
}
