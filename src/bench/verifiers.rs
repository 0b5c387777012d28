//! How often a verifier is wrong about single steps, and what its verdicts cost.

use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;
use tokio::time::Instant;

use super::wrong_steps::{Label, Labelled};
use crate::agents::Verifier;
use prime_bench::interval::Proportion;
use prime_protocol::{Score, Usage, Verdict};

/// Steps that wait for the verifier at the same time.
const IN_FLIGHT: usize = 64;

/// V with which a verdict of a single token calls a step wrong.
const CALLED_WRONG: Score = Score::from_tenths(10);

/// What a verifier said of one step.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    label: Label,
    /// V = 0; or why there is no verdict.
    accepts: Result<bool, String>,
    /// The probability that the step is right, where the verdict gives one.
    probability: Option<f64>,
    usage: Usage,
}

/// The verdicts of a verifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    said: Vec<Said>,
    /// Wall time of all of them, side by side.
    seconds: f64,
}

/// What the log-probability of a verdict is that of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogProbability {
    /// Of the verdict itself: a single token, `0` or `1`.
    Verdict,
    /// Of the step, whatever the verdict.
    Step,
}

/// The probability that the step is right, as the verdict gives it.
fn probability(verdict: &Verdict, of: LogProbability) -> Option<f64> {
    let given = f64::from(verdict.logprob?).exp();
    let calls_it_wrong = of == LogProbability::Verdict && verdict.score >= CALLED_WRONG;
    Some(if calls_it_wrong { 1.0 - given } else { given })
}

impl Verdicts {
    /// Lets a verifier judge steps; `logprob` says how its log-probabilities are read, where it gives any.
    pub async fn of(verifier: &dyn Verifier, logprob: LogProbability, steps: &[Labelled]) -> Self {
        let started = Instant::now();
        let said = stream::iter(steps)
            .map(|step| async move {
                match verifier.judge(&step.trajectory, &step.line).await {
                    Ok(verdict) => Said {
                        label: step.label,
                        accepts: Ok(verdict.score == Score::ZERO),
                        probability: probability(&verdict, logprob),
                        usage: verdict.usage,
                    },
                    Err(error) => Said {
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
        Self { said, seconds: started.elapsed().as_secs_f64() }
    }

    /// Adds those of further steps.
    pub fn add(&mut self, other: Self) {
        self.said.extend(other.said);
        self.seconds += other.seconds;
    }

    /// Of the verdicts on steps of this label, those that accept, or those that do not.
    fn share(&self, label: Label, accept: bool) -> Proportion {
        let verdicts = || self.said.iter().filter(|said| said.label == label).flat_map(|said| &said.accepts);
        let count = verdicts().filter(|accepts| **accepts == accept).count();
        Proportion::new(count as u64, verdicts().count() as u64)
    }

    fn probability(&self, of: impl Fn(Label) -> bool) -> Option<f64> {
        let given: Vec<f64> =
            self.said.iter().filter(|said| of(said.label)).filter_map(|said| said.probability).collect();
        let count = given.len() as f64;
        (count > 0.0).then(|| given.iter().sum::<f64>() / count)
    }
}

/// What a verifier is worth, on one task or on all of them together.
#[derive(Clone, Debug, Serialize)]
pub struct VerifierRow {
    pub verifier: String,
    /// Null for all tasks together.
    pub task: Option<&'static str>,
    /// Right steps that were rejected (V > 0), of those with a verdict.
    pub false_rejects: Proportion,
    /// Wrong steps that can be carried out and were accepted (V = 0), of those with a verdict.
    pub false_accepts: Proportion,
    /// The same of lines that are no action or cannot be carried out.
    pub false_accepts_garbage: Proportion,
    /// Steps without a verdict, with the first one's reason.
    pub failed: u64,
    pub failure: Option<String>,
    /// Wall time of a step, where several wait for their verdicts at the same time.
    pub micros_per_step: f64,
    /// Means over steps.
    pub prompt_tokens: f64,
    pub completion_tokens: f64,
    /// Mean of the probability that a step is right, where verdicts give one, for right and for wrong steps.
    pub probability_right: Option<f64>,
    pub probability_wrong: Option<f64>,
}

impl VerifierRow {
    /// Counts verdicts; `task` is `None` where they are those of all tasks.
    pub fn new(verifier: &str, task: Option<&'static str>, verdicts: &Verdicts) -> Self {
        let failures = || verdicts.said.iter().filter_map(|said| said.accepts.as_ref().err());
        let count = verdicts.said.len().max(1) as f64;
        let mean = |of: fn(&Usage) -> u64| verdicts.said.iter().map(|said| of(&said.usage)).sum::<u64>() as f64 / count;
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
