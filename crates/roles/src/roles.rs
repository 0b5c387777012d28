//! The three roles. An agent that never waits implements [`Executor`], [`Verifier`] or
//! [`Coordinator`] and returns [`AgentReply::now`]; an agent that waits implements the `Async…`
//! trait of its role with an `async fn`.

use async_trait::async_trait;

use super::{AgentError, AgentReply, Basis, Proposal, Ruling, Sampling};
use prime_bench::tasks::Spec;
use prime_protocol::{Decision, Trajectory, Verdict};

/// Proposes the next step of a trajectory.
pub trait Executor: Send + Sync {
    /// # Errors
    /// When it cannot propose anything.
    fn propose<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        sampling: Sampling,
    ) -> AgentReply<'a, Proposal>;
}

/// Scores the violations of a proposed step: the machine holds it as its candidate, or has refused
/// it.
pub trait Verifier: Send + Sync {
    /// What its verdicts on a task rest on. Results show it, so it must not claim more than the
    /// verifier looks at.
    fn basis(&self, task: &Spec) -> Basis;

    /// Returns whether it judges constraints that a client wrote in words.
    fn reads_words(&self) -> bool {
        false
    }

    /// True if it follows a task's reference algorithm, which a client's problem or task does not
    /// have.
    fn needs_algorithm(&self) -> bool {
        false
    }

    /// # Errors
    /// When it cannot give a verdict.
    fn judge<'a>(&'a self, trajectory: &'a Trajectory, line: &'a str) -> AgentReply<'a, Verdict>;
}

/// Decides what happens to a judged step.
pub trait Coordinator: Send + Sync {
    /// # Errors
    /// When it cannot decide.
    fn decide<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        line: &'a str,
        verdict: &'a Verdict,
    ) -> AgentReply<'a, Ruling>;

    /// Decides at a state where the executor has no line left. The search leaves such a state in
    /// any case; a coordinator can add where the fault lies.
    ///
    /// # Errors
    /// When it cannot decide.
    fn leave<'a>(&'a self, _: &'a Trajectory) -> AgentReply<'a, Ruling> {
        AgentReply::now(Ok(Decision::Backtrack.into()))
    }
}

/// An [`Executor`] that waits: for a model, a process, a person.
#[async_trait]
pub trait AsyncExecutor: Send + Sync {
    /// # Errors
    /// When it cannot propose anything.
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError>;
}

/// A [`Verifier`] that waits.
#[async_trait]
pub trait AsyncVerifier: Send + Sync {
    /// See [`Verifier::basis`].
    fn basis(&self, task: &Spec) -> Basis;

    /// See [`Verifier::reads_words`].
    fn reads_words(&self) -> bool {
        false
    }

    /// See [`Verifier::needs_algorithm`].
    fn needs_algorithm(&self) -> bool {
        false
    }

    /// # Errors
    /// When it cannot give a verdict.
    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError>;
}

/// A [`Coordinator`] that waits.
#[async_trait]
pub trait AsyncCoordinator: Send + Sync {
    /// # Errors
    /// When it cannot decide.
    async fn decide(
        &self,
        trajectory: &Trajectory,
        line: &str,
        verdict: &Verdict,
    ) -> Result<Ruling, AgentError>;
}

impl<A: AsyncExecutor + ?Sized> Executor for A {
    fn propose<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        sampling: Sampling,
    ) -> AgentReply<'a, Proposal> {
        AgentReply::Later(AsyncExecutor::propose(self, trajectory, sampling))
    }
}

impl<A: AsyncVerifier + ?Sized> Verifier for A {
    fn basis(&self, task: &Spec) -> Basis {
        AsyncVerifier::basis(self, task)
    }

    fn reads_words(&self) -> bool {
        AsyncVerifier::reads_words(self)
    }

    fn needs_algorithm(&self) -> bool {
        AsyncVerifier::needs_algorithm(self)
    }

    fn judge<'a>(&'a self, trajectory: &'a Trajectory, line: &'a str) -> AgentReply<'a, Verdict> {
        AgentReply::Later(AsyncVerifier::judge(self, trajectory, line))
    }
}

impl<A: AsyncCoordinator + ?Sized> Coordinator for A {
    fn decide<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        line: &'a str,
        verdict: &'a Verdict,
    ) -> AgentReply<'a, Ruling> {
        AgentReply::Later(AsyncCoordinator::decide(self, trajectory, line, verdict))
    }
}
