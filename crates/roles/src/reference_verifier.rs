//! Verifier `reference`: exact process supervision by the task's own algorithm. It gives the
//! algorithm away, so it is for training and for evaluating other verifiers; every result says so.

use prime_bench::tasks::Spec;

use super::{AgentError, AgentReply, Basis, Failure, Verifier};
use prime_bench::judge::is_right;
use prime_bench::tasks::Kinds;
use prime_protocol::{Trajectory, Verdict};

/// V = 0 for the step that the algorithm prescribes or an equally good one; any other step violates
/// `next-step`, besides its other violations.
///
/// It rejects lines that are not applicable actions, and every step except the one that
/// [`reference`](prime_bench::tasks::Machine::reference) prescribes in the state before it. Where
/// the algorithm prescribes nothing, because wrong steps were accepted, it rejects every step.
///
/// A search task ([`choices`](prime_bench::tasks::Machine::choices)) has several right steps. A
/// choice that violates no other constraint is as good as the prescribed one if the algorithm,
/// continuing from there, reaches a right answer in no more steps than with its own choice. Dead
/// ends and detours are rejected, except the algorithm's own, so the reference trace is never
/// rejected.
pub struct ReferenceVerifier;

impl Verifier for ReferenceVerifier {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::reference()
    }

    fn needs_algorithm(&self) -> bool {
        true
    }

    fn judge<'a>(&'a self, trajectory: &'a Trajectory, line: &'a str) -> AgentReply<'a, Verdict> {
        let machine = trajectory.machine.as_ref();
        // Nothing to compare with: an error, because any verdict would be made up.
        if !machine.problem().has_reference() {
            return AgentReply::now(Err(without_reference("reference")));
        }

        // The constraints only explain a rejection; `is_right` alone decides.
        AgentReply::now(Ok(Verdict::by_rules(machine, Kinds::ALL)
            .filter(|_| !is_right(machine, line))
            .unwrap_or_default()))
    }
}

/// The error of a verifier that needs the task's algorithm.
pub(super) fn without_reference(verifier: &str) -> AgentError {
    AgentError::new(
        format!("verifier `{verifier}`"),
        Failure::Unsupported,
        "a client's problem has no reference algorithm: use verifier `rules`, or a language model",
    )
}

#[cfg(test)]
mod tests;
