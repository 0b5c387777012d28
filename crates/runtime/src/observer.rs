//! The events of a run, and their observers.

use std::sync::Arc;

use tracing::Span;

use super::turn_timing::StageTimes;
use prime_protocol::{
    Ballot, Basis, Chosen, Decision, End, Ending, Located, Outcome, Reward, Role, RoleTimes,
    RunSnapshot, Speculations, TurnId, Usage, Verdict,
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
        id: TurnId,
        /// Milliseconds since the start of the run.
        elapsed_ms: u64,
        /// Committed steps below the proposal.
        depth: usize,
        proposal: &'a Proposal,
        is_applicable: bool,
        verdict: &'a Verdict,
        decision: Decision,
        /// What a locator found in the steps before, if it was asked.
        located: Option<&'a Located>,
        /// Usage of the three agents, discarded proposals included.
        usage: Usage,
        /// Proposals that were started early: this one, the next one.
        speculations: Speculations,
        /// How long the step waited for each agent.
        waited: RoleTimes,
        /// Present if [`Observer::wants_timing`].
        timing: Option<&'a StageTimes>,
    },
    /// An agent failed at a turn, which is retried.
    Mishap {
        id: TurnId,
        elapsed_ms: u64,
        role: Role,
        error: &'a AgentError,
        /// Mishaps of this turn, including this one.
        mishaps: u32,
    },
    /// An agent failed at a turn for good: its trajectory ends.
    TurnFailed {
        id: TurnId,
        elapsed_ms: u64,
        role: Role,
        /// The kind of the last failure.
        failure: Failure,
        reason: &'a str,
        /// What its attempts cost.
        usage: Usage,
    },
    /// The run was ended from outside: by the clock, by its owner, or because an agent keeps
    /// failing.
    Stopped {
        ending: &'a Ending,
        elapsed_ms: u64,
    },
    TrajectoryEnded {
        id: TurnId,
        end: &'a End,
        reward: &'a Reward,
    },
    /// A step was taken by vote.
    Chosen {
        round: u32,
        chosen: &'a Chosen,
    },
    Voted {
        round: u32,
        winner: Option<&'a Ballot>,
        agreement: f64,
    },
    Finished(&'a Outcome),
}

/// Resumes a run that waited for its observer.
pub type Wake = Box<dyn FnOnce() + Send>;

/// Sees the events of a run. It is called on the cell's thread, so it must return quickly and must
/// not panic.
pub trait Observer: Send + Sync {
    fn observe(&self, event: &Event<'_>);

    /// Receives the run's span before the first event, if a subscriber listens to spans. Its field
    /// `run` is empty.
    fn attach(&self, _span: &Span) {}

    /// Whether the stages of each turn should be timed, at about nine clock readings per step.
    fn wants_timing(&self) -> bool {
        false
    }

    /// Whether a snapshot is due: the run's turns are then gathered, each between two proposals.
    fn wants_snapshot(&self) -> bool {
        false
    }

    /// Whoever wants to hear what a model writes for a turn; asked when an agent may have to wait.
    /// What is heard is no event: it comes from any thread, and ends with the turn's next event.
    fn listener(&self, _id: TurnId, _role: Role) -> Option<Listener> {
        None
    }

    /// Receives the run as it is after the events so far.
    fn save_snapshot(&self, _snapshot: RunSnapshot) {}

    /// Whether it cannot keep up: the run then makes no proposals until it is woken.
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
/// answers for spans, snapshots and backlog.
pub struct Watched<W> {
    watcher: W,
    keeper: Arc<dyn Observer>,
}

impl<W> Watched<W> {
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
