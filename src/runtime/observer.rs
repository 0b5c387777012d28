//! What a run lets others see while it goes on.

use std::sync::Arc;

use super::turn_timing::StageTimes;
use crate::agents::{AgentError, Failure, Proposal};
use prime_protocol::{
    Ballot, Chosen, Decision, End, Ending, Outcome, Reward, Role, RunSnapshot, Speculations, TurnId, Usage, Verdict,
};

/// Something happened in a run; borrowed, so that nobody watching costs nothing.
pub enum Event<'a> {
    /// The run's first turns are on their way.
    Started,
    /// A proposal was judged and decided on.
    Step {
        id: TurnId,
        /// Milliseconds that the run had been under way.
        elapsed_ms: u64,
        /// Committed steps below the proposal.
        depth: usize,
        proposal: &'a Proposal,
        is_applicable: bool,
        verdict: &'a Verdict,
        decision: Decision,
        /// What the three agents spent, on proposals that were thrown away too.
        usage: Usage,
        /// Proposals that were begun early: this one, the one after it.
        speculations: Speculations,
        /// Where [`Observer::wants_laps`].
        laps: Option<&'a StageTimes>,
    },
    /// An agent could not do a turn this time; it is tried again.
    Mishap {
        id: TurnId,
        elapsed_ms: u64,
        role: Role,
        error: &'a AgentError,
        /// Mishaps of this turn so far, this one included.
        mishaps: u32,
    },
    /// An agent could not do a turn, for good: its trajectory ends.
    TurnFailed {
        id: TurnId,
        elapsed_ms: u64,
        role: Role,
        /// What kind of failure the last one was.
        failure: Failure,
        reason: &'a str,
    },
    /// The run is ended from outside: by the clock, by its owner, or because an agent is gone.
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

/// Lets a run that was held go on.
pub type Wake = Box<dyn FnOnce() + Send>;

/// Sees the events of a run, on the cell's thread: must return at once and must not panic.
pub trait Observer: Send + Sync {
    fn observe(&self, event: &Event<'_>);

    /// Whether the parts of each turn's way should be timed, at about nine readings of the clock a step.
    fn wants_laps(&self) -> bool {
        false
    }

    /// Whether the run should be saved: its turns are then gathered, each between two proposals.
    fn wants_saved(&self) -> bool {
        false
    }

    /// The run as it was after the events so far.
    fn save(&self, _saved: RunSnapshot) {}

    /// Whether it cannot keep up: the run then makes no further proposals until it is woken.
    fn is_behind(&self) -> bool {
        false
    }

    /// Calls `wake` when it is no longer behind; at once, if that is now.
    fn wake_when_free(&self, wake: Wake) {
        wake();
    }
}

/// Sees nothing.
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _: &Event<'_>) {}
}

/// Lets a second observer see the events, before the one that keeps them.
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

    fn wants_laps(&self) -> bool {
        self.watcher.wants_laps() || self.keeper.wants_laps()
    }

    fn wants_saved(&self) -> bool {
        self.keeper.wants_saved()
    }

    fn save(&self, saved: RunSnapshot) {
        self.keeper.save(saved);
    }

    fn is_behind(&self) -> bool {
        self.keeper.is_behind()
    }

    fn wake_when_free(&self, wake: Wake) {
        self.keeper.wake_when_free(wake);
    }
}
