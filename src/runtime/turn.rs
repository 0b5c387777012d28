//! A turn: a trajectory on its way round the ring. If whoever holds it dies, it goes back to its Supervisor by itself.

use actix::Addr;

use super::laps::{Laps, Leg};
use super::messages::Returned;
use super::speculation::{Foresight, Speculation};
use super::supervisor::Supervisor;
use crate::agents::{AgentError, Proposal, Ruling, Sampling};
use crate::protocol::{Decision, Role, Speculations, Trajectory, TurnId, Usage, Verdict};

/// Names a run within its cell.
pub type RunKey = u64;

/// What a turn carries.
pub struct TurnBody {
    pub run: RunKey,
    pub id: TurnId,
    pub trajectory: Box<Trajectory>,
    pub sampling: Sampling,
    /// Whose work comes next; a turn that was lost goes on there.
    pub stage: Role,
    pub proposal: Proposal,
    /// The proposed line could be carried out: the machine holds its candidate.
    pub is_applicable: bool,
    /// The line was rejected at this state before; it is not judged again.
    pub is_repeated: bool,
    pub verdict: Verdict,
    pub ruling: Ruling,
    /// Panics and errors of agents while they worked on this very turn.
    pub mishaps: u32,
    /// How many of them the run's observer has been told of.
    pub mishaps_told: u32,
    pub last_error: Option<AgentError>,
    /// What its successor can be foreseen from, where that is to be begun early.
    pub foresight: Option<Box<Foresight>>,
    /// The proposal that was begun early: this turn's before its executor has it, then its successor's.
    pub speculation: Option<Box<Speculation>>,
    pub speculations: Speculations,
    /// What was spent on proposals that were thrown away.
    pub wasted: Usage,
    /// Where the run's observer wants them.
    pub laps: Option<Box<Laps>>,
}

impl TurnBody {
    /// A turn that waits for its proposal.
    pub fn new(run: RunKey, id: TurnId, trajectory: Box<Trajectory>, sampling: Sampling) -> Self {
        Self {
            run,
            id,
            trajectory,
            sampling,
            stage: Role::Executor,
            proposal: Proposal::default(),
            is_applicable: false,
            is_repeated: false,
            verdict: Verdict::default(),
            ruling: Decision::Proceed.into(),
            mishaps: 0,
            mishaps_told: 0,
            last_error: None,
            foresight: None,
            speculation: None,
            speculations: Speculations::default(),
            wasted: Usage::default(),
            laps: None,
        }
    }

    /// Notes the end of a leg, where somebody wants to know.
    pub fn end(&mut self, leg: Leg) {
        if let Some(laps) = &mut self.laps {
            laps.end(leg);
        }
    }

    /// Throws away what was begun early, if there is something.
    pub fn give_up_speculation(&mut self) {
        if let Some(early) = self.speculation.take() {
            self.speculations.wasted += 1;
            self.wasted.add(early.give_up());
        }
    }

    /// What the three agents spent on it, and on proposals that were thrown away.
    pub fn usage(&self) -> Usage {
        let mut usage = self.proposal.usage;
        usage.add(self.verdict.usage);
        usage.add(self.ruling.usage);
        usage.add(self.wasted);
        usage
    }
}

/// A [`TurnBody`] in flight. Dropping it anywhere but in [`Turn::land`] sends the body home.
pub struct Turn {
    body: Option<Box<TurnBody>>,
    home: Addr<Supervisor>,
}

impl Turn {
    pub fn new(body: Box<TurnBody>, home: Addr<Supervisor>) -> Self {
        Self { body: Some(body), home }
    }

    pub fn body(&mut self) -> &mut TurnBody {
        self.body.as_mut().expect("invariant: a turn in flight has its body")
    }

    /// Takes the body out: the turn has come home.
    pub fn land(mut self) -> Box<TurnBody> {
        self.body.take().expect("invariant: a turn in flight has its body")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Runs while an actor that panicked is torn down: `do_send` does not panic, not even when home is gone.
        if let Some(body) = self.body.take() {
            self.home.do_send(Returned(body));
        }
    }
}
