//! Verifier `reference`: exact supervision of the process, by the task's own algorithm. It gives the algorithm away, so it is
//! for training and for measuring other verifiers, and every result that it led to says so.

use async_trait::async_trait;

use super::{AgentError, Failure, Verifier, rules};
use crate::protocol::{Trajectory, Verdict};
use crate::tasks::{Kind, Kinds, Machine};

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
pub struct ExactVerifier;

/// Steps that the algorithm takes from here to a right answer; `None` if there are more than `most`, or it comes to none.
fn remaining(mut machine: Box<dyn Machine>, most: u64) -> Option<u64> {
    for steps in 0..=most {
        if machine.ended() {
            return machine.answer().filter(|answer| machine.problem().accepts(answer)).map(|_| steps);
        }
        if !machine.follow_reference() {
            return None;
        }
    }
    None
}

/// Whether a choice that is not the prescribed one is as good.
fn is_as_good(machine: &dyn Machine, line: &str) -> bool {
    let is_choice = machine.choices().is_some_and(|choices| choices.iter().any(|choice| choice == line));
    if !is_choice {
        return false;
    }
    let Some(prescribed) = remaining(machine.fork(), machine.problem().steps_max()) else { return false };
    let mut after = machine.fork();
    after.replay(line).is_ok() && prescribed.checked_sub(1).is_some_and(|most| remaining(after, most).is_some())
}

/// Whether a step is right as [`ExactVerifier`] has it. The line is the machine's candidate, or was refused; the problem must
/// have an algorithm.
pub fn is_right(machine: &dyn Machine, line: &str) -> bool {
    let checked = Kinds::from_iter([Kind::Format, Kind::Invariant, Kind::Terminal]);
    machine.violations(Kinds::ALL).is_empty() || (machine.violations(checked).is_empty() && is_as_good(machine, line))
}

#[async_trait]
impl Verifier for ExactVerifier {
    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let machine = trajectory.machine.as_ref();
        if !machine.problem().has_reference() {
            return Err(AgentError::new(
                "verifier `reference`",
                Failure::Unsupported,
                "it compares with a task's algorithm, and a client's own problem has none: use verifier `rules`, or one \
                 that is a language model",
            ));
        }
        Ok(rules::broken(machine, Kinds::ALL).filter(|_| !is_right(machine, line)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
