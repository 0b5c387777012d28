//! Step labels by Monte Carlo: a step is called wrong where none of k rollouts from it comes to a
//! right answer (Math-Shepherd, arXiv 2312.08935), against labels that are known.

use futures::{StreamExt as _, stream};
use serde::Serialize;

use super::comparison::Instances;
use prime_agent_set::{AgentError, Executor, Sampling};
use prime_bench::judge::labelled::{LabelledStep, labelled_steps};
use prime_bench::tasks::{AnyTask, TaskRng};
use prime_protocol::{Basis, End, Limits, Next, Score, Trajectory, TurnId, turn_seed};

/// Concurrent rollouts.
const IN_FLIGHT: usize = 64;

/// Steps of a rollout, in multiples of what the reference needs from there.
const STEPS_FACTOR: u64 = 4;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2_000;

/// How rollouts are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Rollouts {
    /// Rollouts of each step, at least 1.
    pub count: u32,
    /// Temperature of the draws; 0 is greedy.
    pub temperature: f32,
    /// Nucleus of the draws, 0 to 1.
    pub top_p: f32,
    /// Seed of the draws.
    pub seed: u64,
}

/// A step with what its rollouts came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledStep {
    /// Index of its instance. The steps of one instance are resampled together.
    pub instance: u32,
    /// True if the step is known to be right.
    pub is_right: bool,
    /// Rollouts that came to a right answer.
    pub successes: u32,
    /// Proposals of all of them.
    pub proposals: u64,
}

/// A share with its 95 % interval, by a bootstrap over instances; 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The share of all steps together.
    pub value: f64,
    /// The 2.5th percentile of the resampled shares.
    pub low: f64,
    /// The 97.5th percentile of the resampled shares.
    pub high: f64,
}

/// What labels by k rollouts are worth on one task and level.
#[derive(Clone, Debug, Serialize)]
pub struct RolloutRow {
    /// The task's slug.
    pub task: &'static str,
    /// `easy`, `medium` or `hard`.
    pub difficulty: &'static str,
    /// Rollouts of each step: k.
    pub rollouts: u32,
    /// Steps that are right, and wrong ones that can be carried out.
    pub right: u64,
    /// Number of wrong steps that can be carried out.
    pub wrong: u64,
    /// Share of the steps called wrong that are wrong; null if none is called wrong.
    pub precision: Option<Share>,
    /// Share of the wrong steps that are called wrong; null if there are none.
    pub recall: Option<Share>,
    /// Mean proposals of k rollouts.
    pub proposals: f64,
}

/// The probability that `k` of `count` rollouts, drawn without replacement, have none of the
/// `successes`.
fn none_of(successes: u32, count: u32, k: u32) -> f64 {
    (0..k)
        .map(|drawn| {
            let failures = count.saturating_sub(successes).saturating_sub(drawn);
            f64::from(failures) / f64::from(count - drawn)
        })
        .product()
}

/// Precision and recall of "wrong" by `k` of the rollouts.
fn worth(steps: &[RolledStep], count: u32, k: u32) -> (Option<f64>, Option<f64>) {
    let (mut flagged, mut hits, mut wrong) = (0.0, 0.0, 0.0);
    for step in steps {
        let flag = none_of(step.successes, count, k);
        flagged += flag;
        if !step.is_right {
            hits += flag;
            wrong += 1.0;
        }
    }
    ((flagged > 0.0).then(|| hits / flagged), (wrong > 0.0).then(|| hits / wrong))
}

/// The middle 95 % of some values.
fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let at = |tenths: usize| values.get((values.len().saturating_sub(1) * tenths + 500) / 1_000);
    Some((*at(25)?, *at(975)?))
}

impl RolloutRow {
    /// The rows of 1, 2, 4, … and all of `count` rollouts of these steps.
    #[expect(clippy::cast_precision_loss, reason = "a mean for display")]
    pub fn all(
        task: &'static str,
        difficulty: &'static str,
        steps: &[RolledStep],
        count: u32,
    ) -> Vec<Self> {
        let doubled = std::iter::successors(Some(1_u32), |k| k.checked_mul(2));
        let ks = doubled.take_while(|k| *k < count).chain([count]);
        let proposals: u64 = steps.iter().map(|step| step.proposals).sum();
        let right = steps.iter().filter(|step| step.is_right).count() as u64;

        ks.map(|k| {
            let (precision, recall) = worth(steps, count, k);
            let (precisions, recalls) = resampled(steps, count, k);
            let share = |value: Option<f64>, values| {
                let ((low, high), value) = (interval(values)?, value?);
                Some(Share { value, low, high })
            };
            Self {
                task,
                difficulty,
                rollouts: k,
                right,
                wrong: steps.len() as u64 - right,
                precision: share(precision, precisions),
                recall: share(recall, recalls),
                proposals: proposals as f64 * f64::from(k)
                    / (f64::from(count) * steps.len().max(1) as f64),
            }
        })
        .collect()
    }
}

/// Precisions and recalls of resamples of the instances.
fn resampled(steps: &[RolledStep], count: u32, k: u32) -> (Vec<f64>, Vec<f64>) {
    let groups: Vec<&[RolledStep]> =
        steps.chunk_by(|one, other| one.instance == other.instance).collect();
    let (mut precisions, mut recalls) = (Vec::new(), Vec::new());
    if groups.is_empty() {
        return (precisions, recalls);
    }

    let mut rng = TaskRng::new(u64::from(k));
    let mut drawn = Vec::with_capacity(steps.len());
    for _ in 0..RESAMPLES {
        drawn.clear();
        for _ in 0..groups.len() {
            drawn.extend_from_slice(groups[rng.index(groups.len())]);
        }
        let (precision, recall) = worth(&drawn, count, k);
        precisions.extend(precision);
        recalls.extend(recall);
    }
    (precisions, recalls)
}

/// One rollout after a step: whether it comes to a right answer, and its proposals.
async fn rollout(
    executor: &dyn Executor,
    step: &LabelledStep,
    rollouts: Rollouts,
    number: u32,
) -> Result<(bool, u64), AgentError> {
    let mut machine = step.machine.fork();
    let problem = machine.problem();
    if machine.replay(&step.line).is_err() {
        return Ok((false, 0));
    }
    if let Some(answer) = machine.answer() {
        return Ok((problem.accepts(&answer), 0));
    }

    let left = problem.reference().steps.saturating_sub(step.step);
    let most = left.saturating_mul(STEPS_FACTOR).saturating_add(8);
    let mut trajectory = Trajectory::new(machine, &Limits::DEFAULT);
    for proposals in 0..most {
        // Each step and each rollout has seeds of its own.
        let at = rollouts.seed ^ (u64::from(step.id.index) << 32) ^ step.step;
        let id = TurnId { round: number, trajectory: 0 };
        let seed = turn_seed(at, id, proposals);
        let Rollouts { temperature, top_p, .. } = rollouts;
        let proposal = executor.propose(&trajectory, Sampling { temperature, top_p, seed }).await?;

        if trajectory.machine.propose(&proposal.line).is_err() {
            return Ok((false, proposals + 1));
        }
        trajectory.machine.commit();
        trajectory.count(true);
        match trajectory.push(&proposal.line, Score::ZERO, Basis::NONE) {
            Next::Propose => {}
            Next::Ended(End::Answered(answer)) => {
                return Ok((problem.accepts(&answer), proposals + 1));
            }
            Next::Ended(_) => return Ok((false, proposals + 1)),
        }
    }
    Ok((false, most))
}

/// Labels steps whose labels are known, of as many instances as are asked for: for each, the right
/// step and wrong ones that can be carried out. Calls `on_step` after each.
///
/// # Errors
/// The executor's.
pub async fn rollout_labels(
    executor: &dyn Executor,
    task: &'static dyn AnyTask,
    instances: Instances,
    rollouts: Rollouts,
    on_step: &dyn Fn(RolledStep),
) -> Result<Vec<RolledStep>, AgentError> {
    let Instances { difficulty, count, base_seed, .. } = instances;
    let steps = labelled_steps(task, difficulty, count, base_seed);
    let steps: Vec<LabelledStep> = steps.into_iter().filter(|step| step.applies).collect();

    let mut rolled = Vec::new();
    for step in &steps {
        let mut ends = stream::iter(0..rollouts.count)
            .map(|number| rollout(executor, step, rollouts, number))
            .buffer_unordered(IN_FLIGHT);
        let mut found = RolledStep {
            instance: step.id.index,
            is_right: step.error.is_none(),
            successes: 0,
            proposals: 0,
        };
        while let Some(end) = ends.next().await {
            let (is_right, proposals) = end?;
            found.successes += u32::from(is_right);
            found.proposals += proposals;
        }
        on_step(found);
        rolled.push(found);
    }
    Ok(rolled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_agent_set::{ReferenceExecutor, ScriptedExecutor};
    use prime_bench::tasks::{self, Difficulty};

    const ROLLOUTS: Rollouts = Rollouts { count: 8, temperature: 0.7, top_p: 1.0, seed: 3 };

    async fn rolled(executor: &dyn Executor, slug: &str) -> Vec<RolledStep> {
        let task = tasks::find(slug).unwrap();
        let difficulty = Difficulty::Easy;
        let instances = Instances { difficulty, count: 10, base_seed: 7, concurrent: 1 };
        rollout_labels(executor, task, instances, ROLLOUTS, &|_| ()).await.unwrap()
    }

    #[test]
    fn fewer_rollouts_miss_more() {
        // Two of four come to the answer: the share of pairs that has neither is 1 of 6.
        assert!((none_of(2, 4, 2) - 1.0 / 6.0).abs() < 1e-12);
        assert_eq!((none_of(0, 4, 4), none_of(1, 4, 4), none_of(4, 4, 1)), (1.0, 0.0, 0.0));
        assert_eq!(none_of(1, 4, 1), 0.75);

        // A right step with one success of two, a wrong one with none, a wrong one with two.
        let step = |instance, is_right, successes| RolledStep {
            instance,
            is_right,
            successes,
            proposals: 6,
        };
        let steps = [step(0, true, 1), step(0, false, 0), step(1, false, 2)];
        let rows = RolloutRow::all("t", "easy", &steps, 2);
        let figures = |row: &RolloutRow| {
            (row.rollouts, row.precision.unwrap().value, row.recall.unwrap().value, row.proposals)
        };
        // With one rollout: 0.5 of the right step and 1 of the wrong ones are flagged.
        assert_eq!(figures(&rows[0]), (1, 1.0 / 1.5, 0.5, 3.0));
        assert_eq!(figures(&rows[1]), (2, 1.0, 0.5, 6.0));
        assert_eq!((rows.len(), rows[0].right, rows[0].wrong), (2, 1, 2));
    }

    #[tokio::test]
    async fn a_faultless_executor_never_calls_a_right_step_wrong() {
        let steps = rolled(&ReferenceExecutor, "gcd-euclidean").await;
        let right: Vec<&RolledStep> = steps.iter().filter(|step| step.is_right).collect();
        assert_eq!(right.len(), 10);
        assert!(right.iter().all(|step| step.successes == 8), "{right:?}");
        assert!(steps.len() > 10, "there are wrong ones");
    }

    #[tokio::test]
    async fn an_executor_that_only_errs_calls_every_step_wrong_but_the_last() {
        let steps = rolled(&ScriptedExecutor::new(1.0), "gcd-euclidean").await;
        let unfinished: Vec<_> = steps.iter().filter(|step| step.proposals > 0).collect();
        assert!(!unfinished.is_empty());
        assert!(unfinished.iter().all(|step| step.successes == 0), "{unfinished:?}");
    }
}
