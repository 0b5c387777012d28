//! Verifier accuracy on labelled steps, and the cost of verdicts.

use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;
use tokio::time::Instant;

use super::labelled_steps::{Label, Labelled};
use prime_agent_set::Verifier;
use prime_bench::interval::Proportion;
use prime_protocol::{Score, Usage, Verdict};

/// Steps judged concurrently.
const IN_FLIGHT: usize = 64;

/// V of a single-token verdict that rejects a step.
const REJECTED: Score = Score::from_tenths(10);

/// A verdict on one labelled step.
#[derive(Clone, Debug, PartialEq)]
struct LabelledVerdict {
    label: Label,
    /// V = 0, or the reason for no verdict.
    accepts: Result<bool, String>,
    /// The probability that the step is right, if the verdict carries one.
    probability: Option<f64>,
    usage: Usage,
}

/// The verdicts of a verifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    steps: Vec<LabelledVerdict>,
    /// Wall time of all verdicts, which are concurrent.
    seconds: f64,
}

/// What a verdict's log-probability refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogProbability {
    /// The verdict, a single token `0` or `1`.
    Verdict,
    /// The step, whatever the verdict.
    Step,
}

/// The probability that the step is right.
fn probability(verdict: &Verdict, of: LogProbability) -> Option<f64> {
    let given = f64::from(verdict.logprob?).exp();
    let calls_it_wrong = of == LogProbability::Verdict && verdict.score >= REJECTED;
    Some(if calls_it_wrong { 1.0 - given } else { given })
}

impl Verdicts {
    /// Has a verifier judge steps; `logprob` says how to read its log-probabilities, if it gives
    /// any.
    pub async fn of(verifier: &dyn Verifier, logprob: LogProbability, steps: &[Labelled]) -> Self {
        let started = Instant::now();
        let steps = stream::iter(steps)
            .map(|step| async move {
                match verifier.judge(&step.trajectory, &step.line).await {
                    Ok(verdict) => LabelledVerdict {
                        label: step.label,
                        accepts: Ok(verdict.score == Score::ZERO),
                        probability: probability(&verdict, logprob),
                        usage: verdict.usage,
                    },
                    Err(error) => LabelledVerdict {
                        label: step.label,
                        accepts: Err(error.to_string()),
                        probability: None,
                        usage: Usage::default(),
                    },
                }
            })
            .buffer_unordered(IN_FLIGHT)
            .collect()
            .await;

        Self { steps, seconds: started.elapsed().as_secs_f64() }
    }

    /// Appends the verdicts on more steps.
    pub fn add(&mut self, other: Self) {
        self.steps.extend(other.steps);
        self.seconds += other.seconds;
    }

    /// The share of verdicts on steps with this label that accept, or that reject.
    fn share(&self, label: Label, accept: bool) -> Proportion {
        let verdicts =
            || self.steps.iter().filter(|said| said.label == label).flat_map(|said| &said.accepts);

        let count = verdicts().filter(|accepts| **accepts == accept).count();
        Proportion::new(count as u64, verdicts().count() as u64)
    }

    fn probability(&self, of: impl Fn(Label) -> bool) -> Option<f64> {
        let given: Vec<f64> = self
            .steps
            .iter()
            .filter(|said| of(said.label))
            .filter_map(|said| said.probability)
            .collect();

        let count = given.len() as f64;
        (count > 0.0).then(|| given.iter().sum::<f64>() / count)
    }
}

/// A verifier's error rates, on one task or on all tasks.
#[derive(Clone, Debug, Serialize)]
pub struct VerifierRow {
    pub verifier: String,
    /// Null: all tasks.
    pub task: Option<&'static str>,
    /// Right steps that were rejected (V > 0), of those with a verdict.
    pub false_rejects: Proportion,
    /// Wrong but applicable steps that were accepted (V = 0), of those with a verdict.
    pub false_accepts: Proportion,
    /// The same for lines that do not parse or cannot be applied.
    pub false_accepts_garbage: Proportion,
    /// Steps without a verdict, and the first reason.
    pub failed: u64,
    pub failure: Option<String>,
    /// Wall time per step; several are judged concurrently.
    pub micros_per_step: f64,
    /// Means over steps.
    pub prompt_tokens: f64,
    pub completion_tokens: f64,
    /// Mean probability that a step is right, for right and for wrong steps, if verdicts carry one.
    pub probability_right: Option<f64>,
    pub probability_wrong: Option<f64>,
}

impl VerifierRow {
    /// Summarizes verdicts; `task` is `None` for all tasks.
    pub fn new(verifier: &str, task: Option<&'static str>, verdicts: &Verdicts) -> Self {
        let failures = || verdicts.steps.iter().filter_map(|said| said.accepts.as_ref().err());
        let count = verdicts.steps.len().max(1) as f64;
        let mean = |of: fn(&Usage) -> u64| {
            verdicts.steps.iter().map(|said| of(&said.usage)).sum::<u64>() as f64 / count
        };

        Self {
            verifier: verifier.to_owned(),
            task,
            false_rejects: verdicts.share(Label::Right, false),
            false_accepts: verdicts.share(Label::Applicable, true),
            false_accepts_garbage: verdicts.share(Label::Garbage, true),
            failed: failures().count() as u64,
            failure: failures().next().cloned(),
            micros_per_step: verdicts.seconds * 1e6 / count,
            prompt_tokens: mean(|usage| usage.prompt),
            completion_tokens: mean(|usage| usage.completion),
            probability_right: verdicts.probability(|label| label == Label::Right),
            probability_wrong: verdicts.probability(|label| label != Label::Right),
        }
    }
}

#[cfg(test)]
mod tests;
