//! Agents that are slow or fail on purpose.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::alarm::Alarm;
use crate::agents::{AgentError, Coordinator, Executor, Failure, Proposal, Ruling, Sampling, Verifier};
use prime_bench::tasks::Kinds;
use prime_protocol::{Role, Trajectory, Verdict};

/// What is wrong with one agent.
pub struct Flaw {
    role: Role,
    delay: Duration,
    alarm: Alarm,
    failures: f64,
    /// Trajectories whose present turn has failed: it does not fail again. By their addresses, which they keep.
    failed: Mutex<HashSet<usize>>,
}

impl Flaw {
    /// Each turn waits for `delay`; a share of `failures` of them fail once.
    pub fn new(role: Role, delay: Duration, failures: f64, alarm: Alarm) -> Self {
        Self { role, delay, alarm, failures, failed: Mutex::default() }
    }

    fn fails(&self, trajectory: &Trajectory) -> bool {
        if self.failures <= 0.0 {
            return false;
        }
        let address = std::ptr::from_ref(trajectory).addr();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        !failed.remove(&address) && rand::random_bool(self.failures) && failed.insert(address)
    }

    async fn suffer(&self, trajectory: &Trajectory) -> Result<(), AgentError> {
        if !self.delay.is_zero() {
            self.alarm.sleep(self.delay).await;
        }
        if self.fails(trajectory) {
            let agent = format!("{} `null`", self.role);
            return Err(AgentError::new(agent, Failure::ServerError, "fails on purpose"));
        }
        Ok(())
    }
}

/// An agent with a flaw.
pub struct Flawed<A: ?Sized>(pub Flaw, pub Arc<A>);

#[async_trait]
impl Executor for Flawed<dyn Executor> {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        self.0.suffer(trajectory).await?;
        self.1.propose(trajectory, sampling).await
    }
}

#[async_trait]
impl Verifier for Flawed<dyn Verifier> {
    fn kinds(&self) -> Kinds {
        self.1.kinds()
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        self.0.suffer(trajectory).await?;
        self.1.judge(trajectory, line).await
    }
}

#[async_trait]
impl Coordinator for Flawed<dyn Coordinator> {
    async fn decide(&self, trajectory: &Trajectory, line: &str, verdict: &Verdict) -> Result<Ruling, AgentError> {
        self.0.suffer(trajectory).await?;
        self.1.decide(trajectory, line, verdict).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::null_problem;
    use prime_protocol::Limits;

    #[tokio::test]
    async fn a_turn_fails_once_and_is_then_done() {
        let limits = Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1 };
        let trajectories = [0, 1].map(|_| Trajectory::new(null_problem(9).start(), &limits));
        let alarm = Alarm::start().unwrap();
        let always = Flaw::new(Role::Verifier, Duration::ZERO, 1.0, alarm.clone());
        let never = Flaw::new(Role::Verifier, Duration::ZERO, 0.0, alarm);
        for _ in 0..3 {
            for is_first in [true, false] {
                for trajectory in &trajectories {
                    let error = always.suffer(trajectory).await.err();
                    assert_eq!(error.is_some(), is_first);
                    assert!(error.is_none_or(|error| error.is_transient && error.agent == "verifier `null`"));
                    assert_eq!(never.suffer(trajectory).await, Ok(()));
                }
            }
        }
    }
}
