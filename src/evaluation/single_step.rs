//! Single-step accuracy: how often an executor, decoding greedily at a state of a reference trace,
//! proposes the reference step.

use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;

use super::comparison::Instances;
use super::own_task::hinted_states;

use prime_agent_set::{Executor, Sampling};
use prime_bench::interval::Proportion;
use prime_bench::tasks::sampling::state_on_trace;
use prime_bench::tasks::{AnyTask, Machine, TaskRng};
use prime_protocol::{Limits, Trajectory};

/// Concurrent proposals.
const IN_FLIGHT: usize = 64;

/// Step accuracy on one task and level.
#[derive(Clone, Debug, Serialize)]
pub struct StepRow {
    pub task: &'static str,
    /// `easy`, `medium` or `hard`; `given` for the inputs of a user's task.
    pub difficulty: &'static str,
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
    pub fn of(task: &'static str, difficulty: &'static str, steps: &[AskedStep]) -> Self {
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

/// States at which a task's next step is known: `count` of them, drawn from the thousand base seeds
/// that start at the instances' one; of a task of the user's own, on the traces of its hints.
///
/// # Errors
/// The task gives no hints, or its program no answer.
async fn states(
    task: &'static dyn AnyTask,
    instances: Instances,
) -> Result<Vec<Box<dyn Machine>>, String> {
    let Instances { difficulty, count, base_seed, .. } = instances;
    let mut rng = TaskRng::new(base_seed);
    let Some(given) = task.given() else {
        let draw = |_| state_on_trace(task, difficulty, base_seed, &mut rng);
        return Ok((0..count).map(draw).collect());
    };

    let slug = task.spec().slug;
    let mut traces = Vec::new();
    for index in 0..given {
        let problem = task.instance(difficulty, base_seed, index);
        let source = task.source_of(index).unwrap_or_else(|| format!("input {index}"));
        let states = hinted_states(problem.as_ref()).await;
        let states = states.map_err(|error| format!("{slug}: {source}: {error}"))?;
        if states.is_empty() {
            return Err(format!(
                "{slug}: {source}: the task gives no `hint` for the start, so that nobody \
                 knows which step is right; `bench solve` needs no hints"
            ));
        }
        traces.push(states);
    }
    // As of the benchmark's tasks: an instance first, then one of its states.
    let draw = |_| {
        let states = &traces[rng.index(traces.len())];
        states[rng.index(states.len())].fork()
    };
    Ok((0..count).map(draw).collect())
}

/// Asks for as many steps as there are instances, and calls `on_step` after each.
///
/// # Errors
/// The executor's; and those of a task of the user's own, which may give no hints.
pub async fn step_accuracy(
    executor: &dyn Executor,
    task: &'static dyn AnyTask,
    instances: Instances,
    on_step: &dyn Fn(AskedStep),
) -> Result<StepRow, String> {
    let limits =
        Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };
    let sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 0 };
    let states = states(task, instances).await?;

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
    Ok(StepRow::of(task.spec().slug, instances.level(task), &steps))
}
