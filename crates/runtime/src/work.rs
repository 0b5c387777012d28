//! The work of each role on a turn. It knows agents and turns, not actors.

mod execute;
mod look_ahead;

use std::future::Future;
use std::sync::Arc;

use actix::Message;

use super::messages::{Decide, Decided, Judge};
use super::turn::{TurnBody, Turns};
use prime_bench::tasks::Unanswered;
use prime_protocol::{Decision, Role, Score, Verdict};
use prime_roles::{AgentError, AgentReply, Agents, Coordinator, Failure, Ruling, Verifier};

use look_ahead::look_ahead;

pub use execute::Execute;

/// One role: its agent, and the messages that bring a turn and pass it on.
pub trait Work: Send + Sync + 'static {
    type In: Message<Result = ()> + Send + 'static;
    type Out: Message<Result = ()> + From<Turns> + Send + 'static;
    type Output: Send;
    const ROLE: Role;
    const NEXT: Role;

    /// Makes the role's agent.
    fn new(agents: &dyn Agents) -> Self;

    fn ask<'a>(&'a self, turn: &'a mut TurnBody) -> AgentReply<'a, Self::Output>;

    /// Writes what the agent replied into the turn.
    fn finish(&self, turn: &mut TurnBody, output: Self::Output);

    /// Does the work if the agent replies now; otherwise does nothing and returns `None`.
    #[inline]
    fn work_now(&self, turn: &mut TurnBody) -> Option<Result<(), AgentError>> {
        // An output is large: each `map` would move it once more.
        let AgentReply::Now(reply) = self.ask(turn) else { return None };
        match reply.into_inner() {
            Ok(output) => {
                self.finish(turn, output);
                Some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn work(&self, turn: &mut TurnBody) -> impl Future<Output = Result<(), AgentError>> + Send {
        async move {
            let output = self.ask(turn).await?;
            self.finish(turn, output);
            Ok(())
        }
    }
}

/// Scores what the proposed line did.
pub struct Verify(Arc<dyn Verifier>);

/// Decides whether the step stays.
pub struct Coordinate(Arc<dyn Coordinator>);

/// The verdict on a proposal that needs no verifier.
fn rejected(feedback: &str) -> Verdict {
    Verdict {
        // 1.0, the worst score.
        score: Score::from_tenths(10),
        feedback: Some(feedback.to_owned()),
        ..Verdict::default()
    }
}

/// Asks the task's program about the proposed line, then the verifier. If the program fails, the
/// turn is tried again here, with the proposal that it has.
async fn judge_answered(
    verifier: &dyn Verifier,
    turn: &mut TurnBody,
) -> Result<Verdict, AgentError> {
    if let Some(foresight) = turn.trajectory.machine.foresee(&turn.proposal.line) {
        foresight.await.map_err(of_task)?;
    }
    turn.apply();

    // Only now is the state known in which the next proposal is made.
    if let Some(asker) = turn.lookahead.as_mut().and_then(|lookahead| lookahead.asker.take()) {
        look_ahead(turn, || asker);
    }
    verifier.judge(&turn.trajectory, &turn.proposal.line).await
}

fn of_task(Unanswered { error, .. }: Unanswered) -> AgentError {
    match error.downcast::<AgentError>() {
        Ok(error) => *error,
        Err(error) => AgentError::new("task", Failure::Unsupported, error.to_string()),
    }
}

impl Work for Verify {
    type In = Judge;
    type Out = Decide;
    type Output = Verdict;
    const ROLE: Role = Role::Verifier;
    const NEXT: Role = Role::Coordinator;

    fn new(agents: &dyn Agents) -> Self {
        Self(agents.verifier())
    }

    #[inline]
    fn ask<'a>(&'a self, turn: &'a mut TurnBody) -> AgentReply<'a, Verdict> {
        if turn.proposal.is_exhausted {
            return AgentReply::now(Ok(rejected(
                "every action that the grammar permits was rejected in this state",
            )));
        }
        if turn.is_repeated {
            return AgentReply::now(Ok(rejected("this action was rejected in this state before")));
        }
        if turn.is_unanswered {
            return AgentReply::Later(Box::pin(judge_answered(self.0.as_ref(), turn)));
        }
        self.0.judge(&turn.trajectory, &turn.proposal.line)
    }

    #[inline]
    fn finish(&self, turn: &mut TurnBody, verdict: Verdict) {
        turn.verdict = verdict;
        // A line that was cut off cannot be applied because of that: the reason tells the executor
        // more than the verifier's complaint.
        if let Some(reason) = turn.proposal.unfinished.take().filter(|_| !turn.is_applicable) {
            turn.verdict.feedback = Some(reason.into());
        }
    }
}

impl Work for Coordinate {
    type In = Decide;
    type Out = Decided;
    type Output = Ruling;
    const ROLE: Role = Role::Coordinator;
    const NEXT: Role = Role::Executor;

    fn new(agents: &dyn Agents) -> Self {
        Self(agents.coordinator())
    }

    #[inline]
    fn ask<'a>(&'a self, turn: &'a mut TurnBody) -> AgentReply<'a, Ruling> {
        // The verdict is the runtime's own, so that there is nothing for a coordinator to weigh.
        if turn.proposal.is_exhausted {
            return self.0.leave(&turn.trajectory);
        }
        if turn.is_repeated {
            return AgentReply::now(Ok(Decision::Backtrack.into()));
        }
        self.0.decide(&turn.trajectory, &turn.proposal.line, &turn.verdict)
    }

    #[inline]
    fn finish(&self, turn: &mut TurnBody, ruling: Ruling) {
        turn.ruling = ruling;
    }
}
