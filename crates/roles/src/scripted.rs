//! Executor `scripted`: the reference algorithm with errors of a given probability, drawn from the
//! seed. It is the test double for anything that needs a fallible executor, a slow one, or
//! log-probabilities.
//!
//! With error rate e a right line has ln p = ln(1 − e), a wrong one ln(e / 9), as if nine wrong
//! lines were equally likely. A proposal has one log-probability for the whole line.

use std::time::Duration;

use super::{AgentReply, Executor, Proposal, Sampling};
use prime_bench::tasks::TaskRng;
use prime_protocol::Trajectory;

/// The reference algorithm with seeded errors.
pub struct ScriptedExecutor {
    /// Probability of an error at each proposal, in millionths.
    error_millionths: u64,
    /// ln p of a right line and of a wrong one.
    right_logprob: f32,
    wrong_logprob: f32,
    /// How long a proposal takes.
    latency: Duration,
}

/// Number of wrong lines that the log-probability assumes to be equally likely.
const WRONG_LINES: f64 = 9.0;

impl ScriptedExecutor {
    /// `error_rate` between 0 and 1.
    pub fn new(error_rate: f64) -> Self {
        let rate = error_rate.clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1, or its logarithm"
        )]
        Self {
            error_millionths: (rate * 1e6).round() as u64,
            right_logprob: (1.0 - rate).ln() as f32,
            wrong_logprob: (rate / WRONG_LINES).ln() as f32,
            latency: Duration::ZERO,
        }
    }

    /// The same executor with slow proposals.
    #[must_use]
    pub fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }
}

/// A wrong line close to the right one: a changed digit, or no action at all.
fn corrupted(line: &str, rng: &mut TaskRng) -> String {
    let digits: Vec<_> =
        line.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();

    if digits.is_empty() || rng.chance(1, 8) {
        return "no action".to_owned();
    }

    // Digits are one byte each, so that byte offsets do. Adding 1 to 9 always gives another digit.
    let at = digits[rng.index(digits.len())];
    let old = line.as_bytes()[at] - b'0';
    let new = (u64::from(old) + 1 + rng.below(9)) % 10;
    format!("{}{new}{}", &line[..at], &line[at + 1..])
}

impl Executor for ScriptedExecutor {
    fn propose<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        sampling: Sampling,
    ) -> AgentReply<'a, Proposal> {
        let right = match super::reference::next(trajectory, "scripted") {
            Ok(line) => line,
            Err(error) => return AgentReply::now(Err(error)),
        };

        // The turn's seed decides, so that a turn that is repeated errs in the same way.
        let mut rng = TaskRng::new(sampling.seed);
        let errs = rng.chance(self.error_millionths, 1_000_000);
        let (line, logprob) = if errs {
            (corrupted(&right, &mut rng), self.wrong_logprob)
        } else {
            (right, self.right_logprob)
        };
        let proposal = Proposal { line, logprobs: vec![logprob], ..Proposal::default() };

        // An immediate reply costs the runtime no task.
        if self.latency.is_zero() {
            return AgentReply::now(Ok(proposal));
        }

        AgentReply::Later(Box::pin(async move {
            tokio::time::sleep(self.latency).await;
            Ok(proposal)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};
    use prime_protocol::Limits;

    #[tokio::test]
    async fn lines_have_the_log_probabilities_of_the_error_rate() {
        let problem = tasks::find("bubble-sort").unwrap().generate(Difficulty::Easy, 1);
        let limits =
            Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };
        let trajectory = Trajectory::new(problem.start(), &limits);

        let right = trajectory.machine.reference().unwrap();

        let mut seen = [0, 0];
        for seed in 0..40 {
            let sampling = Sampling { temperature: 0.0, top_p: 1.0, seed };
            let proposal = ScriptedExecutor::new(0.4).propose(&trajectory, sampling).await.unwrap();

            let is_right = proposal.line == right;
            // ln 0.6 and ln(0.4 / 9)
            let expected = if is_right { -0.510_825_6_f32 } else { -3.113_515_3 };
            assert!((proposal.logprobs[0] - expected).abs() < 1e-6, "{proposal:?}");
            assert_eq!(proposal.logprobs.len(), 1);

            seen[usize::from(is_right)] += 1;
        }
        assert!(seen[0] > 8 && seen[1] > 8, "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_proposal_takes_its_latency() {
        let problem = tasks::find("bubble-sort").unwrap().generate(Difficulty::Easy, 1);
        let limits =
            Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };
        let trajectory = Trajectory::new(problem.start(), &limits);

        let sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 1 };
        let start = tokio::time::Instant::now();
        let executor = ScriptedExecutor::new(0.0).with_latency(Duration::from_millis(40));
        let proposal = executor.propose(&trajectory, sampling).await.unwrap();

        // The timer rounds up to milliseconds.
        assert!(start.elapsed() >= Duration::from_millis(40));
        assert_eq!(proposal.line, trajectory.machine.reference().unwrap());
    }

    #[tokio::test]
    async fn without_errors_a_line_is_certain() {
        let problem = tasks::find("bubble-sort").unwrap().generate(Difficulty::Easy, 1);
        let limits =
            Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };

        let trajectory = Trajectory::new(problem.start(), &limits);

        for (rate, expected) in [(0.0, 0.0_f32), (1.0, -2.197_224_6)] {
            let sampling = Sampling { temperature: 0.7, top_p: 1.0, seed: 3 };
            let proposal =
                ScriptedExecutor::new(rate).propose(&trajectory, sampling).await.unwrap();
            assert!((proposal.logprobs[0] - expected).abs() < 1e-6, "{rate}: {proposal:?}");
        }
    }
}
