//! Executor `uniform`: draws uniformly among the valid choices of the state. It knows nothing, so
//! whatever it solves, the search alone solves. It is the baseline for the results of models.

use super::{AgentError, AgentReply, Executor, Failure, Proposal, Sampling};
use prime_bench::tasks::TaskRng;
use prime_protocol::Trajectory;

/// Draws from the seed of each turn.
pub struct UniformExecutor;

/// A choice of the state that was not rejected there; an exhausted proposal if none is left.
///
/// # Errors
/// The choices of the task cannot be listed.
fn draw(trajectory: &Trajectory, seed: u64) -> Result<Proposal, AgentError> {
    let Some(choices) = trajectory.machine.choices() else {
        return Err(AgentError::new(
            "executor `uniform`",
            Failure::Unsupported,
            "the choices of this task cannot be listed: it serves tasks that search, such as \
             24-game, n-queens and n-queens-last-queen",
        ));
    };

    let top = trajectory.stack.top();
    let is_left = |choice: &String| top.avoided().all(|line| line != choice);
    let mut left: Vec<String> = choices.into_iter().filter(is_left).collect();
    if left.is_empty() {
        return Ok(Proposal { is_exhausted: true, ..Proposal::default() });
    }

    let at = TaskRng::new(seed).index(left.len());
    #[expect(clippy::cast_precision_loss, reason = "there are few choices")]
    let logprob = -(left.len() as f32).ln();
    Ok(Proposal { line: left.swap_remove(at), logprobs: vec![logprob], ..Proposal::default() })
}

impl Executor for UniformExecutor {
    fn propose<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        sampling: Sampling,
    ) -> AgentReply<'a, Proposal> {
        AgentReply::now(draw(trajectory, sampling.seed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use prime_bench::tasks::{self, Difficulty};
    use prime_protocol::{Decision, Limits, Verdict};

    const LIMITS: Limits =
        Limits { attempts_max: 100, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };

    fn started(slug: &str) -> Trajectory {
        let problem = tasks::find(slug).unwrap().generate(Difficulty::Easy, 1);
        Trajectory::new(problem.start(), &LIMITS)
    }

    #[test]
    fn each_choice_is_drawn_about_equally_often() {
        let trajectory = started("n-queens");
        let choices = trajectory.machine.choices().unwrap();
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for seed in 0..2_000 {
            *counts.entry(draw(&trajectory, seed).unwrap().line).or_default() += 1;
        }

        assert_eq!(counts.len(), choices.len());
        // Four standard deviations around the mean.
        let mean = 2_000.0 / choices.len() as f64;
        assert!(
            counts.values().all(|count| (f64::from(*count) - mean).abs() < 4.0 * mean.sqrt()),
            "{counts:?}"
        );
    }

    #[test]
    fn rejected_choices_are_not_drawn_again_until_none_is_left() {
        let mut trajectory = started("n-queens");
        let choices = trajectory.machine.choices().unwrap();
        for (at, choice) in choices.iter().enumerate() {
            for seed in 0..50 {
                assert!(!choices[..at].contains(&draw(&trajectory, seed).unwrap().line));
            }
            trajectory.settle(choice, false, &Verdict::default(), Decision::Backtrack, &LIMITS);
        }
        assert!(draw(&trajectory, 1).unwrap().is_exhausted);
    }

    #[test]
    fn a_task_without_listed_choices_is_refused_by_name() {
        let error = draw(&started("bubble-sort"), 1).unwrap_err();
        assert_eq!(error.failure, Failure::Unsupported);
        assert!(error.reason.contains("cannot be listed"), "{error}");
    }
}
