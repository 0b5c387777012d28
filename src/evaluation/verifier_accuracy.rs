//! Verifier accuracy on labelled steps and traces, and the cost of verdicts.

mod figures;
#[cfg(test)]
mod tests;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;

use prime_agent_set::Verifier;
use prime_bench::judge::ErrorType;
use prime_bench::judge::labelled::{LabelledStep, LabelledTrace, LabelledTraces, Origin, TraceEnd};
use prime_protocol::{Decision, Limits, Next, Score, Trajectory, Usage, Verdict};

/// Steps or traces judged concurrently.
const IN_FLIGHT: usize = 64;

/// V of a single-token verdict that rejects a step.
const REJECTED: Score = Score::from_tenths(10);

/// Nothing but the verifier decides how far a trace is followed.
const LIMITS: Limits =
    Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 64, ..Limits::DEFAULT };

/// What was said of one labelled step.
#[derive(Clone, Debug, PartialEq)]
struct JudgedStep {
    origin: Origin,
    /// `None`: it is right.
    error: Option<ErrorType>,
    applies: bool,
    /// V = 0, or the reason for no verdict.
    accepts: Result<bool, String>,
    /// The probability that the step is right, if the verdict carries one.
    probability: Option<f64>,
}

/// What was said of one labelled trace.
#[derive(Clone, Debug, PartialEq)]
struct JudgedTrace {
    origin: Origin,
    first_error: Option<(usize, ErrorType)>,
    end: TraceEnd,
    /// The first step that was rejected, if one was; or the reason for no verdict.
    rejected_at: Result<Option<usize>, String>,
    /// Steps that were judged.
    steps: u64,
    usage: Usage,
}

/// The verdicts of a verifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    steps: Vec<JudgedStep>,
    traces: Vec<JudgedTrace>,
    too_long: u64,
    /// Verdicts that were asked for, and the tokens that they cost.
    asked: u64,
    usage: Usage,
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

async fn judge_step(
    verifier: &dyn Verifier,
    logprob: LogProbability,
    step: &LabelledStep,
) -> (JudgedStep, Usage) {
    let mut trajectory = Trajectory::new(step.machine.fork(), &LIMITS);
    // Refused lines are judged too: a verifier must not accept them.
    let applies = trajectory.machine.propose(&step.line).is_ok();
    debug_assert_eq!(applies, step.applies, "{}", step.line);
    let said = verifier.judge(&trajectory, &step.line).await;

    let usage = said.as_ref().map(|verdict| verdict.usage).unwrap_or_default();
    let judged = JudgedStep {
        origin: step.origin,
        error: step.error.as_ref().map(|error| error.error),
        applies: step.applies,
        probability: said.as_ref().ok().and_then(|verdict| probability(verdict, logprob)),
        accepts: said
            .map(|verdict| verdict.score == Score::ZERO)
            .map_err(|error| error.to_string()),
    };
    (judged, usage)
}

async fn judge_trace(verifier: &dyn Verifier, trace: &LabelledTrace) -> JudgedTrace {
    let mut judged = JudgedTrace {
        origin: trace.origin,
        first_error: trace.first_error.as_ref().map(|(at, error)| (*at, error.error)),
        end: trace.end,
        rejected_at: Ok(None),
        steps: 0,
        usage: Usage::default(),
    };

    let mut trajectory = Trajectory::new(trace.problem.start(), &LIMITS);
    for (at, line) in trace.lines.iter().enumerate() {
        let applies = trajectory.machine.propose(line).is_ok();
        judged.steps += 1;
        let verdict = match verifier.judge(&trajectory, line).await {
            Ok(verdict) => verdict,
            Err(error) => {
                judged.rejected_at = Err(error.to_string());
                break;
            }
        };

        judged.usage.add(verdict.usage);
        if verdict.score > Score::ZERO {
            judged.rejected_at = Ok(Some(at));
            break;
        }
        let next = trajectory.settle(line, applies, &verdict, Decision::Proceed, &LIMITS);
        if !matches!(next, Next::Propose) {
            break;
        }
    }
    judged
}

impl Verdicts {
    /// Has a verifier judge steps and traces, the latter up to the first rejected step; `logprob`
    /// says how to read its log-probabilities, if it gives any.
    pub async fn of(
        verifier: &dyn Verifier,
        logprob: LogProbability,
        steps: &[LabelledStep],
        traces: &LabelledTraces,
    ) -> Self {
        let started = Instant::now();
        // In order, so that figures and the first failure are the same every time.
        let steps: Vec<_> = stream::iter(steps)
            .map(|step| judge_step(verifier, logprob, step))
            .buffered(IN_FLIGHT)
            .collect()
            .await;
        let judged: Vec<JudgedTrace> = stream::iter(&traces.traces)
            .map(|trace| judge_trace(verifier, trace))
            .buffered(IN_FLIGHT)
            .collect()
            .await;
        let seconds = started.elapsed().as_secs_f64();

        let asked = steps.len() as u64 + judged.iter().map(|trace| trace.steps).sum::<u64>();
        let mut usage = Usage::default();
        steps.iter().for_each(|(_, own)| usage.add(*own));
        judged.iter().for_each(|trace| usage.add(trace.usage));

        Self {
            steps: steps.into_iter().map(|(step, _)| step).collect(),
            traces: judged,
            too_long: traces.too_long,
            asked,
            usage,
            seconds,
        }
    }

    /// Appends the verdicts on more steps and traces.
    pub fn add(&mut self, other: Self) {
        self.steps.extend(other.steps);
        self.traces.extend(other.traces);
        self.too_long += other.too_long;
        self.asked += other.asked;
        self.usage.add(other.usage);
        self.seconds += other.seconds;
    }
}
