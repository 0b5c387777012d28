//! The load on the ring: null agents within the process, so that what is left is coordination.

use std::sync::Arc;

use futures::future::join_all;

use super::drive;
use super::error::LoadError;
use super::in_process::{InProcess, greedy};
use super::null;
use super::plan::Plan;
use super::report::Point;
use super::watch::is_solved;
use crate::agents::{AgentSet, Names};
use crate::evaluation::{NullExecutor, null_problem};
use crate::runtime::{RunHandle, Runtime, RuntimePlan, Silent, Submission};
use prime_protocol::RunPlan;

/// A closed loop on the ring.
#[derive(Clone, Copy, Debug)]
pub struct RingLoad {
    /// Trajectories that go round at the same time.
    pub trajectories: u32,
    /// Steps of each.
    pub steps: u64,
}

/// What the null agents are called.
pub fn names() -> Names {
    null::names("null", "rules", "threshold")
}

/// The null agents, with the flaws of the load.
pub(super) fn null_agents(plan: &Plan, names: Names) -> std::io::Result<AgentSet> {
    let payload = plan.payload_bytes;
    null::agents(
        names,
        &plan.flaws,
        move || Arc::new(NullExecutor::with_payload(payload)),
        || Arc::new(null::verifier()),
        || Arc::new(null::coordinator()),
    )
}

/// A closed loop without a warm-up. Must be called within an actix system.
///
/// # Errors
/// As [`measure`].
pub async fn ring(load: RingLoad, runtime: &RuntimePlan) -> Result<Point, LoadError> {
    measure(&Plan::steps(load.steps), load.trajectories, runtime).await
}

/// Measures a load on the ring. Must be called within an actix system.
///
/// # Errors
/// When a run does not end as it should, which would make the figures worthless.
pub async fn measure(plan: &Plan, trajectories: u32, runtime: &RuntimePlan) -> Result<Point, LoadError> {
    with_agents(plan, trajectories, runtime, null_agents(plan, names())?).await
}

/// As [`measure`], with agents that take the steps of the null problem.
///
/// # Errors
/// As [`measure`].
pub(super) async fn with_agents(
    plan: &Plan,
    trajectories: u32,
    runtime: &RuntimePlan,
    agents: AgentSet,
) -> Result<Point, LoadError> {
    let steps = plan.run_steps(trajectories)?;
    let runtime_cells = runtime.cells.max(1);
    let runtime = Runtime::start(&RuntimePlan { in_flight_max: u32::MAX, ..runtime.clone() }, agents);
    start_cells(&runtime, runtime_cells).await;
    let problem = null_problem(steps);
    let next = |run| (Arc::clone(&problem), RunPlan::single(steps + 1), greedy(run));
    let measured = drive::measure(plan, trajectories, is_solved, &InProcess::new(&runtime, next)).await;
    // What the cells held must be given back before another load is weighed.
    runtime.close();
    measured?.point()
}

/// Lets each cell carry out a run, so that its agents are there and nothing is made for the first time later.
async fn start_cells(runtime: &Runtime, cells: usize) {
    let submission = |seed| Submission {
        problem: null_problem(1),
        plan: RunPlan::single(2),
        sampling: greedy(seed),
        observer: Arc::new(Silent),
        resting: None,
    };
    let mut handles: Vec<_> = (0..cells as u64).map(|seed| runtime.submit(submission(seed))).collect();
    // Whatever comes of it: the load's own runs say what is wrong.
    join_all(handles.iter_mut().map(RunHandle::outcome)).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::agents::{AgentError, Executor, Proposal, Sampling};
    use crate::loadtest::report::Length;
    use crate::runtime::{Placement, RestartLimit};
    use prime_protocol::Trajectory;

    /// Stops once, for 200 ms.
    struct Stalling {
        executor: NullExecutor,
        turns: AtomicU64,
    }

    #[async_trait]
    impl Executor for Stalling {
        async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
            if self.turns.fetch_add(1, Ordering::Relaxed) == 100 {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            self.executor.propose(trajectory, sampling).await
        }
    }

    fn plan() -> RuntimePlan {
        RuntimePlan {
            cells: 1,
            placement: Placement::Shared,
            restart_limit: RestartLimit { restarts_max: 0, window: Duration::from_secs(1) },
            in_flight_max: 1,
        }
    }

    fn with_a_stall(rate: Option<f64>) -> Point {
        let plan_of_load = Plan { rate, ..Plan::steps(1_000) };
        let stalling = || Stalling { executor: NullExecutor::with_payload(0), turns: AtomicU64::new(0) };
        let agents = null::agents(
            names(),
            &plan_of_load.flaws,
            move || Arc::new(stalling()),
            || Arc::new(null::verifier()),
            || Arc::new(null::coordinator()),
        );
        let load = async { with_agents(&plan_of_load, 1, &plan(), agents?).await };
        actix::System::new().block_on(load).expect("a point")
    }

    #[test]
    fn a_stall_is_hidden_by_a_closed_loop_and_not_by_an_open_one() {
        let closed = with_a_stall(None);
        assert!(closed.latency.max_us >= 199_000.0, "{:?}", closed.latency);
        assert!(closed.latency.p99_us < 100_000.0, "one step of a thousand waited: {:?}", closed.latency);
        // 200 of the thousand steps were due meanwhile, the first of them 200 ms before its time came.
        let open = with_a_stall(Some(1_000.0));
        assert_eq!(open.steps, 1_000);
        assert!(open.latency.p99_us > 150_000.0, "{:?}", open.latency);
        assert!(open.latency.p90_us > 80_000.0, "{:?}", open.latency);
    }

    #[test]
    fn an_idle_trajectory_has_a_size() {
        let load = RingLoad { trajectories: 100, steps: 5 };
        let point = actix::System::new().block_on(ring(load, &plan())).expect("a point");
        assert_eq!((point.trajectories, point.steps), (100, 500));
        let bytes = point.bytes_per_trajectory.expect("tests have the counting allocator");
        assert!(bytes > 0.0, "{bytes}");
    }

    #[test]
    fn a_load_that_ends_too_early_has_no_figures() {
        let plan_of_load = Plan { length: Length::Seconds(60.0), ..Plan::steps(1) };
        let agents = null::agents(
            names(),
            &plan_of_load.flaws,
            || Arc::new(NullExecutor::with_payload(0)),
            || Arc::new(null::verifier()),
            || panic!("no coordinator today"),
        );
        let load = async { with_agents(&plan_of_load, 2, &plan(), agents?).await };
        let error = actix::System::new().block_on(load).expect_err("it ends").to_string();
        for part in ["trajectory", "agent_failed", "no coordinator today"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
