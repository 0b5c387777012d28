//! A turn: a trajectory on its way round the ring. If whoever holds it dies, it goes back to its Supervisor by itself.

use actix::Addr;

use super::messages::Returned;
use super::supervisor::Supervisor;
use crate::agents::{AgentError, Proposal, Ruling, Sampling};
use crate::protocol::{Role, Trajectory, TurnId, Usage, Verdict};

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
}

impl TurnBody {
    /// What the three agents spent on it.
    pub fn usage(&self) -> Usage {
        let mut usage = self.proposal.usage;
        usage.add(self.verdict.usage);
        usage.add(self.ruling.usage);
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
