//! The figures of a verifier's card, from its verdicts.

use std::collections::BTreeMap;

use super::{JudgedStep, JudgedTrace, Verdicts};
use prime_agent_set::card::{
    CardRow, ErrorRate, FirstErrorScore, RunRates, StepRates, VerdictCost,
};
use prime_bench::interval::Proportion;
use prime_bench::judge::ErrorType;
use prime_bench::judge::labelled::{Origin, TraceEnd};
use prime_bench::tasks::Difficulty;

/// The share of these verdicts that are `wanted`.
fn share(verdicts: impl Iterator<Item = bool>, wanted: bool) -> Proportion {
    let (mut count, mut of) = (0, 0);
    for verdict in verdicts {
        count += u64::from(verdict == wanted);
        of += 1;
    }
    Proportion::new(count, of)
}

/// What was accepted of each kind of error.
fn by_error(verdicts: impl Iterator<Item = (Origin, ErrorType, bool)>) -> Vec<ErrorRate> {
    let mut accepted: BTreeMap<(Origin, ErrorType), (u64, u64)> = BTreeMap::new();
    for (origin, error, accepts) in verdicts {
        let (count, of) = accepted.entry((origin, error)).or_default();
        *count += u64::from(accepts);
        *of += 1;
    }
    let rate = |((origin, error), (count, of))| ErrorRate {
        origin,
        error,
        false_accepts: Proportion::new(count, of),
    };
    accepted.into_iter().map(rate).collect()
}

fn step_rates(steps: &[JudgedStep]) -> StepRates {
    let accepts = |of: fn(&JudgedStep) -> bool| {
        steps
            .iter()
            .filter(move |step| of(step))
            .filter_map(|step| step.accepts.as_ref().ok().copied())
    };
    let mean = |is_right: bool| {
        let of = steps.iter().filter(|step| step.error.is_none() == is_right);
        let given: Vec<f64> = of.filter_map(|step| step.probability).collect();
        (!given.is_empty()).then(|| given.iter().sum::<f64>() / given.len() as f64)
    };
    let failures = || steps.iter().filter_map(|step| step.accepts.as_ref().err());

    StepRates {
        false_rejects: share(accepts(|step| step.error.is_none()), false),
        false_accepts: share(accepts(|step| step.error.is_some() && step.applies), true),
        false_accepts_garbage: share(accepts(|step| step.error.is_some() && !step.applies), true),
        by_error: by_error(
            steps
                .iter()
                .filter_map(|step| Some((step.origin, step.error?, *step.accepts.as_ref().ok()?))),
        ),
        failed: failures().count() as u64,
        failure: failures().next().cloned(),
        probability_right: mean(true),
        probability_wrong: mean(false),
    }
}

/// True if the trace is complete and every step of it is right.
fn is_right(trace: &JudgedTrace) -> bool {
    trace.first_error.is_none() && trace.end == TraceEnd::Right
}

/// Whether no step was rejected; `None` without a verdict.
fn passes(trace: &JudgedTrace) -> Option<bool> {
    trace.rejected_at.as_ref().ok().map(Option::is_none)
}

fn run_rates(traces: &[JudgedTrace], too_long: u64) -> RunRates {
    let wrong = || traces.iter().filter(|trace| trace.end == TraceEnd::Wrong);
    let right = traces.iter().filter(|trace| is_right(trace));
    let failures = || traces.iter().filter_map(|trace| trace.rejected_at.as_ref().err());

    RunRates {
        false_rejects: share(right.filter_map(passes), false),
        false_accepts: share(wrong().filter_map(passes), true),
        by_error: by_error(
            wrong().filter_map(|trace| Some((trace.origin, trace.first_error?.1, passes(trace)?))),
        ),
        failed: failures().count() as u64,
        failure: failures().next().cloned(),
        too_long,
    }
}

fn first_error(traces: &[JudgedTrace]) -> FirstErrorScore {
    let found = |trace: &JudgedTrace| {
        let (at, _) = trace.first_error?;
        Some(*trace.rejected_at.as_ref().ok()? == Some(at))
    };
    FirstErrorScore::new(
        share(traces.iter().filter_map(found), true),
        share(traces.iter().filter(|trace| is_right(trace)).filter_map(passes), true),
    )
}

impl Verdicts {
    /// The figures; `None` stands for all tasks and for all levels.
    pub fn row(&self, task: Option<&str>, difficulty: Option<Difficulty>) -> CardRow {
        let asked = self.asked.max(1) as f64;
        CardRow {
            task: task.map(str::to_owned),
            difficulty,
            steps: step_rates(&self.steps),
            runs: run_rates(&self.traces, self.too_long),
            first_error: first_error(&self.traces),
            cost: VerdictCost {
                prompt_tokens: self.usage.prompt as f64 / asked,
                completion_tokens: self.usage.completion as f64 / asked,
                micros_per_step: self.seconds * 1e6 / asked,
            },
        }
    }
}
