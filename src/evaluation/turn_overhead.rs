//! The cost of an agent's turn without a model, sequentially and concurrently.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

use prime_agent_set::{AgentError, Executor, Sampling, Verifier};
use prime_bench::tasks::{AnyTask, Difficulty};
use prime_protocol::{Limits, Role, Trajectory};

/// Turns before the clock starts: processes are up and connections open.
const WARM_UP: u32 = 4;

/// The agent under measurement.
#[derive(Clone)]
pub enum Worker {
    /// An executor, which is asked for a proposal.
    Executor(Arc<dyn Executor>),
    /// A verifier, which is asked to judge the reference step.
    Verifier(Arc<dyn Verifier>),
}

impl Worker {
    fn role(&self) -> Role {
        match self {
            Self::Executor(_) => Role::Executor,
            Self::Verifier(_) => Role::Verifier,
        }
    }

    async fn turn(&self, scene: &Scene, seed: u64) -> Result<(), AgentError> {
        match self {
            Self::Executor(executor) => {
                let sampling = Sampling { temperature: 0.7, top_p: 0.95, seed };
                executor.propose(&scene.trajectory, sampling).await.map(drop)
            }
            Self::Verifier(verifier) => {
                verifier.judge(&scene.trajectory, &scene.line).await.map(drop)
            }
        }
    }
}

/// The state of every turn, with the reference step proposed.
pub struct Scene {
    trajectory: Trajectory,
    /// The reference step's action line.
    pub line: String,
}

impl Scene {
    /// The first step of a task's first easy instance. `None` if the trace is empty.
    pub fn of(task: &dyn AnyTask) -> Option<Self> {
        let problem = task.generate(Difficulty::Easy, task.spec().seed(0, Difficulty::Easy, 0));

        let limits =
            Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };
        let mut trajectory = Trajectory::new(problem.start(), &limits);

        let line = trajectory.machine.reference()?;
        trajectory.machine.propose(&line).ok()?;
        Some(Self { trajectory, line })
    }
}

/// How many turns are measured.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// Number of turns of each measurement.
    pub count: u32,
    /// Turns in flight in the concurrent measurement.
    pub side_by_side: u32,
}

/// The cost of a turn of one kind of agent.
#[derive(Clone, Debug, Serialize)]
pub struct OverheadRow {
    /// The role of the agent.
    pub role: Role,
    /// The agent's kind, such as `process`.
    pub kind: String,
    /// Turns in flight; 1: sequential.
    pub side_by_side: u32,
    /// Number of turns measured.
    pub turns: u32,
    /// Microseconds from request to answer; null if nothing was measured.
    pub p50_us: Option<f64>,
    /// 99th percentile of the same; null if nothing was measured.
    pub p99_us: Option<f64>,
    /// Turns per second of wall time; null if nothing was measured.
    pub turns_per_second: Option<f64>,
    /// Why nothing was measured.
    pub failure: Option<String>,
}

impl OverheadRow {
    /// The row of an agent that could not be constructed, or that failed.
    pub fn failed(role: Role, kind: &str, failure: String) -> Self {
        let kind = kind.to_owned();
        let failure = Some(failure);
        Self {
            role,
            kind,
            side_by_side: 1,
            turns: 0,
            p50_us: None,
            p99_us: None,
            turns_per_second: None,
            failure,
        }
    }
}

async fn measured(
    worker: &Worker,
    kind: &str,
    scene: &Scene,
    turns: u32,
    abreast: u32,
) -> Result<OverheadRow, AgentError> {
    let started = Instant::now();

    let all = stream::iter(0..turns).map(|turn| async move {
        let asked = Instant::now();
        worker.turn(scene, u64::from(turn)).await.map(|()| asked.elapsed())
    });
    // Collected before any is recorded: only the turns are timed.
    let all: Vec<_> = all.buffer_unordered(abreast.max(1) as usize).collect().await;
    let seconds = started.elapsed().as_secs_f64();

    // 1 ns to 1,000 s, three significant digits.
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 1_000_000_000_000, 3)
        .expect("invariant: the bounds are valid");

    for elapsed in all {
        histogram.saturating_record(u64::try_from(elapsed?.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    let at = |quantile| Some(histogram.value_at_quantile(quantile) as f64 / 1e3);
    Ok(OverheadRow {
        role: worker.role(),
        kind: kind.to_owned(),
        side_by_side: abreast,
        turns,
        p50_us: at(0.5),
        p99_us: at(0.99),
        turns_per_second: Some(f64::from(turns) / seconds.max(1e-9)),
        failure: None,
    })
}

/// Measures the turns sequentially, then concurrently. An agent that fails is one row with the
/// reason.
pub async fn turn_overhead(
    worker: &Worker,
    kind: &str,
    scene: &Scene,
    turns: Turns,
) -> Vec<OverheadRow> {
    let both = async {
        for seed in 0..WARM_UP {
            worker.turn(scene, u64::from(seed)).await?;
        }

        let one_by_one = measured(worker, kind, scene, turns.count, 1).await?;

        Ok(vec![one_by_one, measured(worker, kind, scene, turns.count, turns.side_by_side).await?])
    };

    both.await.unwrap_or_else(|error: AgentError| {
        vec![OverheadRow::failed(worker.role(), kind, error.to_string())]
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use prime_agent_set::{AsyncExecutor, Failure, Proposal};
    use prime_bench::tasks;

    /// Takes this long for every turn, and fails at the turn of this number.
    struct Slow(Duration, AtomicU32, u32);

    #[async_trait]
    impl AsyncExecutor for Slow {
        async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
            if self.1.fetch_add(1, Ordering::SeqCst) == self.2 {
                return Err(AgentError::new("executor `slow`", Failure::Died, "it died"));
            }

            tokio::time::sleep(self.0).await;
            Ok(Proposal::default())
        }
    }

    async fn rows(executor: Arc<dyn Executor>, turns: Turns) -> Vec<OverheadRow> {
        let scene = Scene::of(tasks::find("tower-of-hanoi").unwrap()).unwrap();
        turn_overhead(&Worker::Executor(executor), "slow", &scene, turns).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_takes_what_it_takes() {
        let slow = Arc::new(Slow(Duration::from_millis(5), AtomicU32::new(0), u32::MAX));
        let rows = rows(Arc::<Slow>::clone(&slow), Turns { count: 100, side_by_side: 10 }).await;

        assert_eq!(slow.1.load(Ordering::SeqCst), WARM_UP + 200);
        assert_eq!(rows.iter().map(|row| row.side_by_side).collect::<Vec<_>>(), [1, 10]);

        // 5 ms a turn: 200 of them a second, and ten times as many side by side.
        for (row, rate) in rows.iter().zip([200.0, 2_000.0]) {
            for micros in [row.p50_us, row.p99_us] {
                assert!((micros.unwrap() - 5_000.0).abs() < 10.0, "{row:?}");
            }
            assert!((row.turns_per_second.unwrap() - rate).abs() < rate / 100.0, "{row:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_fails_is_a_row_that_says_so() {
        for turn in [0, WARM_UP + 3] {
            let slow = Arc::new(Slow(Duration::ZERO, AtomicU32::new(0), turn));
            let rows = rows(slow, Turns { count: 10, side_by_side: 2 }).await;

            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].failure.as_deref(), Some("executor `slow`: it died"));
            assert_eq!((rows[0].turns, rows[0].p50_us), (0, None));
        }
    }
}
