//! Single-step accuracy: how often an executor, decoding greedily at a state of a reference trace,
//! proposes the reference step.

use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;

use super::comparison::Instances;
use super::own_task::hinted_states;

use prime_agent_set::{Executor, Sampling, ScriptedExecutor};
use prime_bench::interval::Proportion;
use prime_bench::tasks::sampling::state_on_trace;
use prime_bench::tasks::{AnyTask, Machine, TaskRng};
use prime_protocol::{Basis, Limits, Next, Score, Trajectory};

/// Concurrent proposals.
const IN_FLIGHT: usize = 64;

/// Step accuracy on one task and level.
#[derive(Clone, Debug, Serialize)]
pub struct StepRow {
    /// The task's slug.
    pub task: &'static str,
    /// `easy`, `medium` or `hard`; `given` for the inputs of a user's task.
    pub difficulty: &'static str,
    /// Proposals equal to the reference step.
    pub accuracy: Proportion,
    /// Mean completion tokens of a step.
    pub completion_tokens: f64,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedStep {
    /// The proposal is the reference step.
    pub is_right: bool,
    /// Tokens of the completion.
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

/// A walk from the start of an instance, as a trajectory that errs would make it.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Number of steps of the walk.
    pub steps: u32,
    /// Share of its steps that are wrong, though they can be carried out; 0 to 1.
    pub error_rate: f64,
}

/// Draws of an instance until a walk does not end early, and of a wrong line until one applies.
const DRAWS_MAX: u32 = 200;

const LIMITS: Limits =
    Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };

impl Walk {
    /// A trajectory after such a walk, at a state whose right step is known; `None` where the walk
    /// ends early.
    async fn taken(&self, machine: Box<dyn Machine>, rng: &mut TaskRng) -> Option<Trajectory> {
        let mut trajectory = Trajectory::new(machine, &LIMITS);
        for _ in 0..self.steps {
            let right = trajectory.machine.reference()?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and a million"
            )]
            let errs = rng.chance((self.error_rate * 1e6).round() as u64, 1_000_000);
            let line = if errs { wrong_step(&trajectory, &right, rng).await? } else { right };
            trajectory.machine.replay(&line).ok()?;
            if trajectory.push(&line, Score::ZERO, Basis::NONE) != Next::Propose {
                return None;
            }
        }
        trajectory.machine.reference()?;
        Some(trajectory)
    }
}

/// A wrong line that can be carried out, close to the right one.
async fn wrong_step(trajectory: &Trajectory, right: &str, rng: &mut TaskRng) -> Option<String> {
    let erring = ScriptedExecutor::new(1.0);
    for _ in 0..DRAWS_MAX {
        let sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: rng.below(u64::MAX) };
        let proposal = erring.propose(trajectory, sampling).await.ok()?;
        let applies = trajectory.machine.fork().propose(&proposal.line).is_ok();
        if applies && proposal.line != right {
            return Some(proposal.line);
        }
    }
    None
}

/// Trajectories after walks on fresh instances.
///
/// # Errors
/// There are no such walks.
async fn walked(
    task: &'static dyn AnyTask,
    instances: Instances,
    walk: Walk,
) -> Result<Vec<Trajectory>, String> {
    if task.given().is_some() {
        return Err(format!("{}: walks are for tasks of the benchmark", task.spec().slug));
    }

    let Instances { difficulty, count, base_seed, .. } = instances;
    let mut rng = TaskRng::new(base_seed);
    let (mut found, mut misses, mut index) = (Vec::new(), 0, 0);
    while found.len() < count as usize {
        let machine = task.instance(difficulty, base_seed, index).start();
        index += 1;
        match walk.taken(machine, &mut rng).await {
            Some(trajectory) => {
                misses = 0;
                found.push(trajectory);
            }
            None => misses += 1,
        }
        if misses == DRAWS_MAX {
            return Err(format!(
                "{}: {DRAWS_MAX} instances in turn have no walk of {} steps with these errors that \
                 leaves a step to ask for: choose a shorter one, or another level",
                task.spec().slug,
                walk.steps
            ));
        }
    }
    Ok(found)
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
    // As for the benchmark's tasks: an instance first, then one of its states.
    let draw = |_| {
        let states = &traces[rng.index(traces.len())];
        states[rng.index(states.len())].fork()
    };
    Ok((0..count).map(draw).collect())
}

/// Asks for as many steps as there are instances, at states of reference traces or after walks, and
/// calls `on_step` after each.
///
/// # Errors
/// The executor's, and those of a user's own task, which may give no hints.
pub async fn step_accuracy(
    executor: &dyn Executor,
    task: &'static dyn AnyTask,
    instances: Instances,
    walk: Option<Walk>,
    on_step: &dyn Fn(AskedStep),
) -> Result<StepRow, String> {
    let sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 0 };
    let trajectories = match walk {
        Some(walk) => walked(task, instances, walk).await?,
        None => {
            let states = states(task, instances).await?;
            states.into_iter().map(|machine| Trajectory::new(machine, &LIMITS)).collect()
        }
    };

    let answers: Vec<_> = stream::iter(trajectories)
        .map(|trajectory| async move {
            let reference = trajectory.machine.reference();
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

#[cfg(test)]
mod tests {
    use super::*;
    use prime_agent_set::ReferenceExecutor;
    use prime_bench::tasks::{self, Difficulty};

    fn instances(count: u32) -> Instances {
        Instances { difficulty: Difficulty::Easy, count, base_seed: 7, concurrent: 1 }
    }

    /// Steps of walks that the reference would not have taken.
    async fn wrong_steps(error_rate: f64) -> usize {
        let task = tasks::find("union-find").unwrap();
        let walk = Walk { steps: 6, error_rate };
        let mut wrong = 0;
        for trajectory in walked(task, instances(20), walk).await.unwrap() {
            assert_eq!(trajectory.stack.depth(), 6);
            let mut machine = trajectory.machine.problem().start();
            for line in trajectory.stack.lines() {
                wrong += usize::from(machine.reference().as_deref() != Some(line));
                machine.replay(line).unwrap();
            }
            assert_eq!(machine.state(), trajectory.machine.state());
        }
        wrong
    }

    #[tokio::test]
    async fn a_walk_errs_as_often_as_it_is_asked_to() {
        assert_eq!(wrong_steps(0.0).await, 0);
        assert_eq!(wrong_steps(1.0).await, 6 * 20);
        // Half of 120, within four standard deviations.
        assert!((38..=82).contains(&wrong_steps(0.5).await));
    }

    #[tokio::test]
    async fn the_right_step_after_errors_is_that_of_the_state() {
        let task = tasks::find("union-find").unwrap();
        let walk = Some(Walk { steps: 6, error_rate: 0.5 });
        let row = step_accuracy(&ReferenceExecutor, task, instances(20), walk, &|_| ()).await;
        assert_eq!((row.unwrap().accuracy.count), 20);

        let endless = Some(Walk { steps: 100_000, error_rate: 0.0 });
        let refused = step_accuracy(&ReferenceExecutor, task, instances(1), endless, &|_| ()).await;
        assert!(refused.unwrap_err().contains("choose a shorter one"));
    }
}
