//! A coordinator that asks a stronger verifier, the locator, where the fault of a refuted
//! trajectory lies.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use super::{AgentError, AgentReply, Coordinator, Ruling, Verifier};
use prime_protocol::budget::Left;
use prime_protocol::{Basis, Decision, Fault, Limits, Located, Score, Trajectory, Usage, Verdict};

/// Steps between two pauses, so that a long trajectory does not keep the other turns of its thread
/// waiting.
const STEPS_AT_ONCE: usize = 64;

/// Decides as another coordinator does. Where the decision refutes a state whose steps were all
/// clean, a stronger verifier judges these steps, each once, until it finds one that is wrong.
pub struct LocatingCoordinator {
    coordinator: Arc<dyn Coordinator>,
    /// The locator's name in messages.
    name: String,
    locator: Arc<dyn Verifier>,
}

impl LocatingCoordinator {
    /// Wraps `coordinator`. `name` is the locator's name in messages.
    pub fn new(coordinator: Arc<dyn Coordinator>, name: &str, locator: Arc<dyn Verifier>) -> Self {
        Self { coordinator, name: name.to_owned(), locator }
    }

    /// Asks the locator if this ruling on a line refutes the steps before it.
    fn refined<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        line: &'a str,
        ruling: Ruling,
    ) -> AgentReply<'a, Ruling> {
        match trajectory.suspects(line, ruling.decision) {
            Some(suspects) => {
                AgentReply::Later(Box::pin(self.locate(trajectory, line, suspects, ruling)))
            }
            None => AgentReply::now(Ok(ruling)),
        }
    }

    /// Adds to a ruling what the locator finds in the steps of these depths.
    async fn locate(
        &self,
        trajectory: &Trajectory,
        line: &str,
        suspects: Range<usize>,
        mut ruling: Ruling,
    ) -> Result<Ruling, AgentError> {
        let budget = trajectory.locator_budget;
        let machine = trajectory.machine.problem().start();
        let mut copy = Trajectory::new(machine, &Limits::DEFAULT);
        copy.index = trajectory.index;

        let mut located = Located { clean: suspects.start, ..Located::default() };
        let mut usage = Usage::default();
        let lines = trajectory.stack.lines().chain([line]).take(suspects.end);
        for (depth, line) in lines.enumerate() {
            if depth % STEPS_AT_ONCE == STEPS_AT_ONCE - 1 {
                pause().await;
            }
            // What the trajectory has committed can be applied again.
            if copy.machine.propose(line).is_err() {
                break;
            }

            if depth >= suspects.start {
                if budget.is_some_and(|left| is_spent(left, usage)) {
                    break;
                }
                let verdict = self.judge(&copy, line).await?;
                usage.add(verdict.usage);
                located.judged += 1;
                if verdict.score > Score::ZERO {
                    located.fault = Some(fault(line, &verdict));
                    break;
                }
                located.clean = depth + 1;
            }
            copy.machine.commit();
            copy.push(line, Score::ZERO, Basis::NONE);
        }

        ruling.usage.add(usage);
        ruling.located = Some(Box::new(located));
        Ok(ruling)
    }

    async fn judge(&self, copy: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        self.locator.judge(copy, line).await.map_err(|error| AgentError {
            reason: format!("locator `{}`: {}", self.name, error.reason),
            ..error
        })
    }
}

impl Coordinator for LocatingCoordinator {
    fn decide<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        line: &'a str,
        verdict: &'a Verdict,
    ) -> AgentReply<'a, Ruling> {
        match self.coordinator.decide(trajectory, line, verdict) {
            AgentReply::Now(reply) => match reply.into_inner() {
                Ok(ruling) => self.refined(trajectory, line, ruling),
                Err(error) => AgentReply::now(Err(error)),
            },
            AgentReply::Later(reply) => AgentReply::Later(Box::pin(async move {
                let ruling = reply.await?;
                self.refined(trajectory, line, ruling).await
            })),
        }
    }

    fn leave<'a>(&'a self, trajectory: &'a Trajectory) -> AgentReply<'a, Ruling> {
        let ruling = Ruling::from(Decision::Backtrack);
        match trajectory.suspects_of_exhausted() {
            Some(suspects) => {
                AgentReply::Later(Box::pin(self.locate(trajectory, "", suspects, ruling)))
            }
            None => AgentReply::now(Ok(ruling)),
        }
    }
}

/// Returns whether the run has no tokens or no money left after this usage.
fn is_spent(left: Left, usage: Usage) -> bool {
    left.tokens.is_some_and(|most| usage.total() >= most)
        || left.completion_tokens.is_some_and(|most| usage.completion >= most)
        || left.cost.is_some_and(|most| usage.cost.is_some_and(|cost| cost >= most))
}

fn fault(line: &str, verdict: &Verdict) -> Fault {
    let violations = || (!verdict.violations.is_empty()).then(|| verdict.violations.join(", "));
    let reason = verdict.feedback.clone().or_else(violations);
    Fault { action: line.to_owned(), reason }
}

/// Lets other work of the thread go first.
async fn pause() {
    let mut has_paused = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests;
