//! The Executor's work: proposes a line and applies it to a copy of the state. If the run
//! speculates, the next proposal starts as soon as it is known which state this one leads to.

use std::sync::Arc;

use super::Work;
use super::look_ahead::look_ahead;
use crate::messages::{Judge, Propose};
use crate::speculation::{self, Asker, TimedProposal};
use crate::turn::TurnBody;
use prime_protocol::Role;
use prime_roles::{AgentError, AgentReply, Agents, Executor, Failure, Proposal};

pub struct Execute(Arc<dyn Executor>);

impl Work for Execute {
    type In = Propose;
    type Out = Judge;
    type Output = Proposal;
    const ROLE: Role = Role::Executor;
    const NEXT: Role = Role::Verifier;

    fn new(agents: &dyn Agents) -> Self {
        Self(agents.executor())
    }

    #[inline]
    fn ask<'a>(&'a self, turn: &'a mut TurnBody) -> AgentReply<'a, Proposal> {
        if turn.lookahead.is_some() || turn.speculation.is_some() {
            return AgentReply::Later(Box::pin(propose(&self.0, turn)));
        }
        self.0.propose(&turn.trajectory, turn.sampling)
    }

    #[inline]
    fn finish(&self, turn: &mut TurnBody, proposal: Proposal) {
        turn.proposal = proposal;
        turn.apply();
        if turn.lookahead.is_none() {
            return;
        }
        if !turn.is_unanswered {
            look_ahead(turn, || Asker::here(&self.0));
        } else if let Some(lookahead) = &mut turn.lookahead {
            lookahead.asker = Some(Asker::here(&self.0));
        }
    }
}

/// The turn's proposal: the one that was started early if it still fits, else a new one.
///
/// # Errors
/// The error of a new proposal, or that the turn's round is over.
async fn propose(
    executor: &Arc<dyn Executor>,
    turn: &mut TurnBody,
) -> Result<Proposal, AgentError> {
    if turn
        .speculation
        .as_ref()
        .is_some_and(|early| !early.matches(executor, &turn.trajectory, turn.sampling))
    {
        turn.discard_speculation();
    }

    if let Some(early) = turn.speculation.take() {
        // Counted in advance: if this turn is lost while it waits, so is the proposal.
        turn.speculations.wasted += 1;

        if let Some((TimedProposal { proposed: Ok(proposal), has_waited }, copy)) =
            early.take().await
        {
            turn.speculations.wasted -= 1;
            turn.speculations.used += 1;
            if let Some(lookahead) = &mut turn.lookahead {
                (lookahead.has_waited, lookahead.copy) = (has_waited, Some(copy));
            }
            return Ok(proposal);
        }

        if turn.lookahead.as_ref().is_some_and(|lookahead| lookahead.is_round_over()) {
            // Nobody waits for this turn any more: do not ask the model again.
            return Err(AgentError::new(
                "executor",
                Failure::Overloaded,
                "the turn's round is over",
            ));
        }
    }

    let TimedProposal { proposed, has_waited } =
        speculation::propose(executor.as_ref(), &turn.trajectory, turn.sampling).await;

    if let Some(lookahead) = &mut turn.lookahead {
        (lookahead.has_waited, lookahead.copy) = (has_waited, None);
    }
    proposed
}
