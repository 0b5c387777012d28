//! A turn: a trajectory on its way around the ring. If its holder dies, it returns to its
//! Supervisor by itself.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use actix::{Message, Recipient};
use tracing::Span;

use super::speculation::{Lookahead, Speculation};
use super::submission::RunId;
use super::turn_timing::{Stage, StageTimes};
use prime_bench::tasks::Refusal;
use prime_protocol::{
    Approval, Decision, Role, RoleTimes, Speculations, Trajectory, TurnId, Usage, Verdict,
};
use prime_roles::{AgentError, AgentSetId, Proposal, Ruling, Sampling};

/// A turn whose holder died, or gave it up with an error.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Returned(pub Box<TurnBody>);

/// Holds a turn's trajectory; empty only between two turns.
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

/// What a turn carries. The allocation of a finished turn is reused for the next one.
pub struct TurnBody {
    supervisor: Recipient<Returned>,
    pub run: RunId,
    /// The set that its run's agents belong to.
    pub agents: AgentSetId,
    pub id: TurnId,
    pub trajectory: Carried,
    pub sampling: Sampling,
    /// The role whose work comes next; a lost turn continues there.
    pub stage: Role,
    /// True if its work begins only when no other turn waits.
    pub is_deferrable: bool,

    pub proposal: Proposal,
    /// True if the proposed line can be applied: the machine holds its candidate.
    pub is_applicable: bool,
    /// True if the line was already rejected at this state; it is not judged again.
    pub is_repeated: bool,
    /// True if the task's program has to be asked about the line before it can be judged.
    pub is_unanswered: bool,
    pub verdict: Verdict,
    pub ruling: Ruling,
    /// What a reviewer decided about its step.
    pub approval: Option<Box<Approval>>,

    /// Panics and errors of agents while they worked on this turn.
    pub mishaps: u32,
    /// Number of them that the run's observer knows about.
    pub mishaps_reported: u32,
    pub last_error: Option<AgentError>,

    /// Input of the next proposal, if it is to start before the verdict.
    pub lookahead: Option<Box<Lookahead>>,
    /// A proposal that was started early: this turn's own until its executor takes it, then the
    /// next turn's.
    pub speculation: Option<Box<Speculation>>,
    pub speculations: Speculations,
    /// Usage of discarded proposals, and of answers that could not be used.
    pub wasted: Usage,

    /// How long it waited for each agent.
    pub waited: RoleTimes,
    /// The span of its run; `None` if nobody listens to spans.
    pub span: Option<Arc<Span>>,
    /// Present if the run's observer wants it.
    pub timing: Option<Box<StageTimes>>,
}

impl TurnBody {
    /// A turn that waits for its proposal.
    pub fn new(
        supervisor: Recipient<Returned>,
        (run, agents): (RunId, AgentSetId),
        id: TurnId,
        trajectory: Box<Trajectory>,
        sampling: Sampling,
    ) -> Self {
        Self {
            supervisor,
            run,
            agents,
            id,
            trajectory: Carried(Some(trajectory)),
            sampling,
            stage: Role::Executor,
            is_deferrable: false,
            proposal: Proposal::default(),
            is_applicable: false,
            is_repeated: false,
            is_unanswered: false,
            verdict: Verdict::default(),
            ruling: Decision::Proceed.into(),
            approval: None,
            mishaps: 0,
            mishaps_reported: 0,
            last_error: None,
            lookahead: None,
            speculation: None,
            speculations: Speculations::default(),
            wasted: Usage::default(),
            waited: RoleTimes::default(),
            span: None,
            timing: None,
        }
    }

    /// Drops what a finished turn still holds of its run.
    // Kept in a spare body, these would outlive the run.
    pub fn clear(&mut self) {
        (self.lookahead, self.speculation, self.timing, self.span) = (None, None, None, None);
        self.approval = None;
    }

    /// Makes a finished turn equal to a new one, in the same allocation. What agents always
    /// overwrite is kept.
    #[inline]
    pub fn reuse(
        &mut self,
        (run, agents): (RunId, AgentSetId),
        id: TurnId,
        trajectory: Box<Trajectory>,
        sampling: Sampling,
    ) {
        (self.run, self.agents, self.id, self.sampling) = (run, agents, id, sampling);
        self.trajectory = Carried(Some(trajectory));
        self.stage = Role::Executor;
        self.is_deferrable = false;

        // A turn may fail before its agents have set these: another turn's usage must not be
        // reported.
        self.proposal.usage = Usage::default();
        self.verdict.usage = Usage::default();
        self.ruling.usage = Usage::default();
        (self.mishaps, self.mishaps_reported, self.last_error) = (0, 0, None);
        (self.speculations, self.wasted, self.waited) = Default::default();
    }

    /// Applies the proposed line to a copy of the state.
    pub fn apply(&mut self) {
        let trajectory = &mut *self.trajectory;
        // An exhausted proposal's line is empty, which some machine might accept.
        let has_line = !self.proposal.is_exhausted;
        (self.is_applicable, self.is_unanswered) = (false, false);
        if has_line {
            match trajectory.machine.propose(&self.proposal.line) {
                Ok(()) => self.is_applicable = true,
                Err(refusal) => self.is_unanswered = refusal == Refusal::Unanswered,
            }
        }
        self.is_repeated = trajectory.excludes(&self.proposal.line);
    }

    /// Takes the trajectory out at the end of the turn.
    pub fn take_trajectory(&mut self) -> Box<Trajectory> {
        self.trajectory.0.take().expect("invariant: a turn under way carries its trajectory")
    }

    pub fn end_stage(&mut self, stage: Stage) {
        if let Some(timing) = &mut self.timing {
            timing.end(stage);
        }
    }

    /// Discards a proposal that was started early, if there is one.
    pub fn discard_speculation(&mut self) {
        if let Some(speculation) = self.speculation.take() {
            self.speculations.wasted += 1;
            self.wasted.add(speculation.discard());
        }
    }

    /// Usage of the three agents, discarded proposals included.
    #[inline]
    pub fn usage(&self) -> Usage {
        let mut usage = self.proposal.usage;
        usage.add(self.verdict.usage);
        usage.add(self.ruling.usage);
        usage.add(self.wasted);
        usage
    }
}

/// The turns of one message.
pub type Turns = Vec<Turn>;

/// A [`TurnBody`] in flight. Dropped anywhere but in [`Turn::land`], it sends the body to its
/// Supervisor.
pub struct Turn(Option<Box<TurnBody>>);

impl Turn {
    pub fn new(body: Box<TurnBody>) -> Self {
        Self(Some(body))
    }

    pub fn body(&mut self) -> &mut TurnBody {
        self.0.as_mut().expect("invariant: a turn in flight has its body")
    }

    /// Takes the body out: the turn has reached its Supervisor.
    pub fn land(mut self) -> Box<TurnBody> {
        self.0.take().expect("invariant: a turn in flight has its body")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Runs while an actor unwinds: `do_send` must not panic, and does not, even if the
        // Supervisor is dead.
        if let Some(body) = self.0.take() {
            let supervisor = body.supervisor.clone();
            supervisor.do_send(Returned(body));
        }
    }
}
