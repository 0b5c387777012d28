//! Verifier `reference`: exact supervision of the process, by the task's own algorithm. It gives the algorithm away, so it is
//! for training and for measuring other verifiers, and every result that it led to says so.

use super::{AgentError, AgentReply, Failure, Verifier, rules};
use prime_bench::judge::is_right;
use prime_bench::tasks::Kinds;
use prime_protocol::{Trajectory, Verdict};

/// V = 0 for the step that the algorithm prescribes, and for one that is as good; every other step breaks `next-step` beside
/// what else it breaks.
///
/// Rejected is every line that is no action or cannot be carried out, and every step but the one that
/// [`Machine::reference`] prescribes in the state before it. Where the algorithm prescribes nothing, because wrong steps
/// were let through, every step is.
///
/// A task that is a search ([`Machine::choices`]) has several right steps. There a choice that breaks no other constraint is
/// as good as the prescribed one if the algorithm, going on from the state after it, comes to a right answer, in no more
/// steps than it still needs with its own choice. A choice that leads into a dead end, or round about, is rejected, but for
/// the algorithm's own. So the reference trace is never rejected.
pub struct ReferenceVerifier;

impl Verifier for ReferenceVerifier {
    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    fn judge<'a>(&'a self, trajectory: &'a Trajectory, line: &'a str) -> AgentReply<'a, Verdict> {
        let machine = trajectory.machine.as_ref();
        if !machine.problem().has_reference() {
            return AgentReply::now(Err(AgentError::new(
                "verifier `reference`",
                Failure::Unsupported,
                "it compares with a task's algorithm, and a client's own problem has none: use verifier `rules`, or one \
                 that is a language model",
            )));
        }
        AgentReply::now(Ok(rules::broken(machine, Kinds::ALL).filter(|_| !is_right(machine, line)).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests;
