//! Single-step accuracy: how often an executor, decoding greedily at a state of a reference trace,
//! proposes the reference step.

use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;

use prime_agent_set::{Executor, Sampling};
use prime_bench::interval::Proportion;
use prime_bench::tasks::sampling::state_on_trace;
use prime_bench::tasks::{AnyTask, Difficulty, TaskRng};
use prime_protocol::{Limits, Trajectory};

/// Concurrent proposals.
const IN_FLIGHT: usize = 64;

/// Step accuracy on one task and level.
#[derive(Clone, Debug, Serialize)]
pub struct StepRow {
    pub task: &'static str,
    pub difficulty: Difficulty,
    /// Proposals equal to the reference step.
    pub accuracy: Proportion,
    /// Mean completion tokens of a step.
    pub completion_tokens: f64,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedStep {
    /// The proposal is the reference step.
    pub is_right: bool,
    pub completion_tokens: u64,
}

impl StepRow {
    /// The row of steps of a task and level.
    #[expect(clippy::cast_precision_loss, reason = "a mean for display")]
    pub fn of(task: &'static str, difficulty: Difficulty, steps: &[AskedStep]) -> Self {
        let right = steps.iter().filter(|step| step.is_right).count() as u64;
        let tokens: u64 = steps.iter().map(|step| step.completion_tokens).sum();
        Self {
            task,
            difficulty,
            accuracy: Proportion::new(right, steps.len() as u64),
            completion_tokens: tokens as f64 / steps.len().max(1) as f64,
        }
    }
}

/// Asks for `count` steps, drawn from the thousand base seeds that start at `base_seed`, and calls
/// `on_step` after each.
///
/// # Errors
/// The executor's.
pub async fn step_accuracy(
    executor: &dyn Executor,
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
    count: u32,
    base_seed: u64,
    on_step: &dyn Fn(AskedStep),
) -> Result<StepRow, String> {
    let limits =
        Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };
    let sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 0 };
    let mut rng = TaskRng::new(base_seed);

    let states: Vec<_> =
        (0..count).map(|_| state_on_trace(task, difficulty, base_seed, &mut rng)).collect();

    let answers: Vec<_> = stream::iter(states)
        .map(|machine| async {
            let reference = machine.reference();
            let trajectory = Trajectory::new(machine, &limits);
            let proposal = executor.propose(&trajectory, sampling).await?;
            let step = AskedStep {
                is_right: Some(&proposal.line) == reference.as_ref(),
                completion_tokens: proposal.usage.completion,
            };
            on_step(step);
            Ok(step)
        })
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;

    let steps: Vec<AskedStep> = answers
        .into_iter()
        .collect::<Result<_, prime_agent_set::AgentError>>()
        .map_err(|error| format!("{}: {error}", task.spec().slug))?;
    Ok(StepRow::of(task.spec().slug, difficulty, &steps))
}
