//! The load on the ring: null agents in this process, so that only coordination is measured.

use std::sync::Arc;

use futures::future::join_all;

use super::error::LoadError;
use super::in_process::{InProcess, greedy};
use super::null_agents;
use super::plan::Plan;
use super::watch::is_solved;
use prime_agent_set::{AgentSet, Names};
use prime_agent_set::{NullExecutor, null_problem};
use prime_loadtest::measure as measure_load;
use prime_loadtest::report::Point;
use prime_protocol::RunPlan;
use prime_runtime::{RunHandle, Runtime, RuntimePlan, Silent, Submission};

/// A closed loop on the ring.
#[derive(Clone, Copy, Debug)]
pub struct RingLoad {
    /// Concurrent trajectories.
    pub trajectories: u32,
    /// Number of steps per trajectory.
    pub steps: u64,
}

/// The agents' names in a report.
pub fn names() -> Names {
    null_agents::names("null", "rules", "threshold")
}

/// The null agents, with the load's faults injected.
pub(super) fn agents(plan: &Plan, names: Names) -> std::io::Result<AgentSet> {
    let payload = plan.payload_bytes;
    null_agents::agents(
        names,
        &plan.faults,
        move || Arc::new(NullExecutor::with_payload(payload)),
        || Arc::new(null_agents::verifier()),
        || Arc::new(null_agents::coordinator()),
    )
}

/// Measures a closed loop without a warm-up. Must be called within an actix system.
pub async fn ring(load: RingLoad, runtime: &RuntimePlan) -> Result<Point, LoadError> {
    measure(&Plan::steps(load.steps), load.trajectories, runtime).await
}

/// Measures a load on the ring. Must be called within an actix system.
///
/// # Errors
/// If a run fails, which invalidates the measurement.
pub async fn measure(
    plan: &Plan,
    trajectories: u32,
    runtime: &RuntimePlan,
) -> Result<Point, LoadError> {
    with_agents(plan, trajectories, runtime, agents(plan, names())?).await
}

/// Like [`measure`], with other agents for the null problem.
pub(super) async fn with_agents(
    plan: &Plan,
    trajectories: u32,
    runtime: &RuntimePlan,
    agents: AgentSet,
) -> Result<Point, LoadError> {
    let steps = plan.run_steps(trajectories)?;
    let runtime_cells = runtime.cells.max(1);
    let runtime = Runtime::start(
        &RuntimePlan { in_flight_max: u32::MAX, ..runtime.clone() },
        Arc::new(agents),
    );
    start_cells(&runtime, runtime_cells).await;

    let problem = null_problem(steps);
    let next = |run| (Arc::clone(&problem), RunPlan::single(steps + 1), greedy(run));
    let measurement = plan.measurement(trajectories);

    let measured = measure_load(&measurement, &InProcess::new(&runtime, is_solved, next)).await;

    // Frees the cells' memory before the next load is measured.
    runtime.close();

    Ok(measured?.point(None)?)
}

/// Executes a run on each cell, so that no agent is created and nothing allocated for the first
/// time later.
async fn start_cells(runtime: &Runtime, cells: usize) {
    let submission = |seed| Submission {
        problem: null_problem(1),
        plan: RunPlan::single(2),
        sampling: greedy(seed),
        observer: Arc::new(Silent),
        suspended: None,
    };

    let mut handles: Vec<_> =
        (0..cells as u64).map(|seed| runtime.submit(submission(seed))).collect();

    // Ignores failures: the load's own runs report them.
    join_all(handles.iter_mut().map(RunHandle::outcome)).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use prime_agent_set::{AgentError, AsyncExecutor, Executor, Proposal, Sampling};
    use prime_loadtest::report::Length;
    use prime_protocol::Trajectory;
    use prime_runtime::{Placement, RestartLimit};

    #[global_allocator]
    static ALLOCATOR: prime_allocator::Counting = prime_allocator::Counting;

    /// Stalls once, for 200 ms.
    struct Stalling {
        executor: NullExecutor,
        turns: AtomicU64,
    }

    #[async_trait]
    impl AsyncExecutor for Stalling {
        async fn propose(
            &self,
            trajectory: &Trajectory,
            sampling: Sampling,
        ) -> Result<Proposal, AgentError> {
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
            hang_after: None,
            in_flight_max: 1,
        }
    }

    fn with_a_stall(rate: Option<f64>) -> Point {
        let load_plan = Plan { rate, ..Plan::steps(1_000) };

        let stalling =
            || Stalling { executor: NullExecutor::with_payload(0), turns: AtomicU64::new(0) };
        let agents = null_agents::agents(
            names(),
            &load_plan.faults,
            move || Arc::new(stalling()),
            || Arc::new(null_agents::verifier()),
            || Arc::new(null_agents::coordinator()),
        );

        let load = async { with_agents(&load_plan, 1, &plan(), agents?).await };
        actix::System::new().block_on(load).expect("a point")
    }

    #[test]
    fn a_stall_is_hidden_by_a_closed_loop_and_not_by_an_open_one() {
        let closed = with_a_stall(None);
        assert!(closed.latency.max_us >= 199_000.0, "{:?}", closed.latency);
        assert!(
            closed.latency.p99_us * 10.0 < closed.latency.max_us,
            "one step of a thousand waited: {closed:?}"
        );

        // 200 of the thousand steps were due meanwhile, the first of them at the start of the
        // stall. A slow machine only adds to these latencies.
        let open = with_a_stall(Some(1_000.0));
        assert_eq!(open.steps, 1_000);
        assert!(open.latency.p99_us > 150_000.0, "{:?}", open.latency);
        assert!(open.latency.p90_us > 80_000.0, "{:?}", open.latency);
    }

    #[test]
    fn idle_trajectories_use_memory() {
        let load = RingLoad { trajectories: 100, steps: 5 };
        let point = actix::System::new().block_on(ring(load, &plan())).expect("a point");
        assert_eq!((point.trajectories, point.steps), (100, 500));

        let bytes = point.bytes_per_trajectory.expect("tests use the counting allocator");
        assert!(bytes > 0.0, "{bytes}");
    }

    #[test]
    fn a_load_whose_agents_fail_is_an_error() {
        let load_plan = Plan { length: Length::Seconds(60.0), ..Plan::steps(1) };
        let agents = null_agents::agents(
            names(),
            &load_plan.faults,
            || Arc::new(NullExecutor::with_payload(0)),
            || Arc::new(null_agents::verifier()),
            || panic!("no coordinator today"),
        );

        let load = async { with_agents(&load_plan, 2, &plan(), agents?).await };

        let error = actix::System::new().block_on(load).expect_err("the agents fail").to_string();
        for part in ["trajectory", "agent_failed", "no coordinator today"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
