//! A turn: a trajectory on its way round the ring. If whoever holds it dies, it goes back to its Supervisor by itself.

use std::ops::{Deref, DerefMut};

use actix::Addr;

use super::messages::Returned;
use super::speculation::{Foresight, Speculation};
use super::supervisor::Supervisor;
use super::turn_timing::{Stage, StageTimes};
use crate::agents::{AgentError, Proposal, Ruling, Sampling};
use prime_protocol::{Decision, Role, Speculations, Trajectory, TurnId, Usage, Verdict};

/// Names a run within its cell.
pub type RunKey = u64;

/// The place of a turn's trajectory: empty between two turns only.
pub struct Carried(Option<Box<Trajectory>>);

impl Deref for Carried {
    type Target = Trajectory;

    fn deref(&self) -> &Trajectory {
        self.0.as_ref().expect("invariant: a turn under way carries its trajectory")
    }
}

impl DerefMut for Carried {
    fn deref_mut(&mut self) -> &mut Trajectory {
        self.0.as_mut().expect("invariant: a turn under way carries its trajectory")
    }
}

/// What a turn carries. When it is over, the next turn may have its place in memory.
pub struct TurnBody {
    home: Addr<Supervisor>,
    pub run: RunKey,
    pub id: TurnId,
    pub trajectory: Carried,
    pub sampling: Sampling,
    /// Whose work comes next; a turn that was lost goes on there.
    pub stage: Role,
    /// The executor takes it when there is nothing else to do for it.
    pub gives_way: bool,
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
    pub laps: Option<Box<StageTimes>>,
}

impl TurnBody {
    /// A turn that waits for its proposal.
    pub fn new(
        home: Addr<Supervisor>,
        run: RunKey,
        id: TurnId,
        trajectory: Box<Trajectory>,
        sampling: Sampling,
    ) -> Self {
        Self {
            home,
            run,
            id,
            trajectory: Carried(Some(trajectory)),
            sampling,
            stage: Role::Executor,
            gives_way: false,
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

    /// Gives up what it still holds of others, when it is over.
    pub fn clear(&mut self) {
        (self.foresight, self.speculation, self.laps) = (None, None, None);
    }

    /// The place of a turn that is over, for one that waits for its proposal; as [`TurnBody::new`] makes it. What the
    /// agents always set anew is left as it is.
    pub fn again(&mut self, run: RunKey, id: TurnId, trajectory: Box<Trajectory>, sampling: Sampling) {
        (self.run, self.id, self.sampling) = (run, id, sampling);
        self.trajectory = Carried(Some(trajectory));
        self.stage = Role::Executor;
        self.gives_way = false;
        // Of a turn that fails before an agent has set them, nobody may be told another's.
        self.proposal.usage = Usage::default();
        self.verdict.usage = Usage::default();
        self.ruling.usage = Usage::default();
        (self.mishaps, self.mishaps_told, self.last_error) = (0, 0, None);
        (self.speculations, self.wasted) = (Speculations::default(), Usage::default());
    }

    /// Carries the proposed line out on a copy of the state.
    pub fn apply(&mut self) {
        let trajectory = &mut *self.trajectory;
        self.is_applicable = trajectory.machine.propose(&self.proposal.line).is_ok();
        self.is_repeated = trajectory.excludes(&self.proposal.line);
    }

    /// Takes its trajectory out: the turn is over.
    pub fn take_trajectory(&mut self) -> Box<Trajectory> {
        self.trajectory.0.take().expect("invariant: a turn under way carries its trajectory")
    }

    /// Notes the end of a leg, where somebody wants to know.
    pub fn end(&mut self, leg: Stage) {
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

/// Turns that go the same way in one message.
pub type Turns = Vec<Turn>;

/// A [`TurnBody`] in flight. Dropping it anywhere but in [`Turn::land`] sends the body home.
pub struct Turn(Option<Box<TurnBody>>);

impl Turn {
    pub fn new(body: Box<TurnBody>) -> Self {
        Self(Some(body))
    }

    pub fn body(&mut self) -> &mut TurnBody {
        self.0.as_mut().expect("invariant: a turn in flight has its body")
    }

    /// Takes the body out: the turn has come home.
    pub fn land(mut self) -> Box<TurnBody> {
        self.0.take().expect("invariant: a turn in flight has its body")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Runs while an actor that panicked is torn down: `do_send` does not panic, not even when home is gone.
        if let Some(body) = self.0.take() {
            let home = body.home.clone();
            home.do_send(Returned(body));
        }
    }
}
