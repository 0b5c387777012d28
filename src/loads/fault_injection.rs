//! Injects delays and failures into agents.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use prime_agent_set::{
    AgentError, AsyncCoordinator, AsyncExecutor, AsyncVerifier, Basis, Coordinator, Executor,
    Failure, Proposal, Ruling, Sampling, Verifier,
};
use prime_bench::tasks::Spec;
use prime_loadtest::PreciseTimer;
use prime_protocol::{Role, Trajectory, Verdict};

/// The faults of one agent.
pub struct Fault {
    role: Role,
    delay: Duration,
    timer: PreciseTimer,
    failures: f64,
    /// Trajectories whose current turn has failed and does not fail again, by address, which is
    /// stable.
    failed: Mutex<HashSet<usize>>,
}

impl Fault {
    /// Each turn is delayed by `delay`, and a share of `failures` of them fails once.
    pub fn new(role: Role, delay: Duration, failures: f64, timer: PreciseTimer) -> Self {
        Self { role, delay, timer, failures, failed: Mutex::default() }
    }

    fn fails(&self, trajectory: &Trajectory) -> bool {
        if self.failures <= 0.0 {
            return false;
        }

        let address = std::ptr::from_ref(trajectory).addr();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        // The retry of a turn that failed takes the address out again, and succeeds.
        !failed.remove(&address) && rand::random_bool(self.failures) && failed.insert(address)
    }

    async fn inject(&self, trajectory: &Trajectory) -> Result<(), AgentError> {
        if !self.delay.is_zero() {
            self.timer.sleep(self.delay).await;
        }

        if self.fails(trajectory) {
            let agent = format!("{} `null`", self.role);
            return Err(AgentError::new(agent, Failure::ServerError, "injected failure"));
        }
        Ok(())
    }
}

/// An agent with injected faults.
pub struct Faulty<A: ?Sized>(pub Fault, pub Arc<A>);

#[async_trait]
impl AsyncExecutor for Faulty<dyn Executor> {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        self.0.inject(trajectory).await?;
        self.1.propose(trajectory, sampling).await
    }
}

#[async_trait]
impl AsyncVerifier for Faulty<dyn Verifier> {
    fn basis(&self, task: &Spec) -> Basis {
        self.1.basis(task)
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        self.0.inject(trajectory).await?;
        self.1.judge(trajectory, line).await
    }
}

#[async_trait]
impl AsyncCoordinator for Faulty<dyn Coordinator> {
    async fn decide(
        &self,
        trajectory: &Trajectory,
        line: &str,
        verdict: &Verdict,
    ) -> Result<Ruling, AgentError> {
        self.0.inject(trajectory).await?;
        self.1.decide(trajectory, line, verdict).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_agent_set::null_problem;
    use prime_protocol::Limits;

    #[tokio::test]
    async fn a_turn_fails_once() {
        let limits =
            Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };

        let trajectories = [0, 1].map(|_| Trajectory::new(null_problem(9).start(), &limits));
        let timer = PreciseTimer::start().unwrap();
        let always = Fault::new(Role::Verifier, Duration::ZERO, 1.0, timer.clone());

        let never = Fault::new(Role::Verifier, Duration::ZERO, 0.0, timer);

        for _ in 0..3 {
            for is_first in [true, false] {
                for trajectory in &trajectories {
                    let error = always.inject(trajectory).await.err();
                    assert_eq!(error.is_some(), is_first);
                    assert!(
                        error.is_none_or(
                            |error| error.is_transient && error.agent == "verifier `null`"
                        )
                    );
                    assert_eq!(never.inject(trajectory).await, Ok(()));
                }
            }
        }
    }
}
