//! Parses a program's answers strictly: an unknown field, a wrong type or a value out of range
//! invalidates the answer.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::fault::{ProcessFault, quoted};
use crate::{Failure, Proposal, Ruling};
use prime_bench::tasks::Severity;
use prime_protocol::{Decision, Score, Usage, Verdict};

/// The largest score of a verdict.
const SCORE_MAX: f64 = 1_000.0;
/// Maximum violations of a verdict.
const VIOLATIONS_MAX: usize = 64;
/// Maximum bytes of a violation's name.
const NAME_BYTES_MAX: usize = 200;
/// Maximum tokens of a turn.
const TOKENS_MAX: u64 = 1_000_000_000_000;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UsageFields {
    prompt: u64,
    completion: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutorAnswer {
    #[serde(rename = "id")]
    _id: u64,
    error: Option<String>,
    retry: Option<bool>,
    action: Option<String>,
    derivation: Option<String>,
    logprob: Option<f64>,
    usage: Option<UsageFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifierAnswer {
    #[serde(rename = "id")]
    _id: u64,
    error: Option<String>,
    retry: Option<bool>,
    score: Option<f64>,
    valid: Option<bool>,
    violations: Option<Vec<String>>,
    feedback: Option<String>,
    logprob: Option<f64>,
    usage: Option<UsageFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CoordinatorAnswer {
    #[serde(rename = "id")]
    _id: u64,
    error: Option<String>,
    retry: Option<bool>,
    decision: Option<Decision>,
    usage: Option<UsageFields>,
}

fn parse<A: DeserializeOwned>(line: &[u8]) -> Result<A, ProcessFault> {
    serde_json::from_slice(line).map_err(|error| malformed(line, error))
}

fn malformed(line: &[u8], why: impl std::fmt::Display) -> ProcessFault {
    ProcessFault::new(
        Failure::Malformed,
        format!("it gave an invalid answer: {why}; it wrote {}", quoted(line)),
    )
}

/// Returns the error if the answer is one.
fn check_error(
    line: &[u8],
    error: Option<String>,
    retry: Option<bool>,
    has_more: bool,
) -> Result<(), ProcessFault> {
    match (error, retry) {
        (Some(_), _) if has_more => Err(malformed(line, "it has both an `error` and an answer")),
        (Some(error), retry) => {
            // A program that says nothing about a retry may do better the next time.
            let failure =
                if retry == Some(false) { Failure::Unsupported } else { Failure::ServerError };
            Err(ProcessFault::new(failure, format!("it said: {error}")))
        }
        (None, Some(_)) => Err(malformed(line, "`retry` without an `error`")),
        (None, None) => Ok(()),
    }
}

fn usage(line: &[u8], spent: Option<UsageFields>) -> Result<Usage, ProcessFault> {
    let UsageFields { prompt, completion } = spent.unwrap_or_default();
    if prompt.max(completion) > TOKENS_MAX {
        return Err(malformed(line, "`usage` has implausibly many tokens"));
    }
    Ok(Usage::new(prompt, completion))
}

fn logprob(line: &[u8], value: Option<f64>) -> Result<Option<f32>, ProcessFault> {
    match value {
        Some(value) if value > 0.0 => Err(malformed(line, "`logprob` is above 0")),
        // A value below the range of single precision becomes its lowest, not infinity.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "single precision is intended; the bounds hold"
        )]
        value => Ok(value.map(|value| value.max(f64::from(f32::MIN)) as f32)),
    }
}

pub(super) fn proposal(line: &[u8]) -> Result<Proposal, ProcessFault> {
    let answer: ExecutorAnswer = parse(line)?;
    check_error(line, answer.error, answer.retry, answer.action.is_some())?;
    let Some(action) = answer.action else { return Err(malformed(line, "`action` is missing")) };

    if action.contains(['\n', '\r']) {
        return Err(malformed(line, "`action` is more than one line"));
    }

    Ok(Proposal {
        line: action,
        derivation: answer.derivation.unwrap_or_default(),
        usage: usage(line, answer.usage)?,
        logprobs: logprob(line, answer.logprob)?.into_iter().collect(),
        ..Proposal::default()
    })
}

pub(super) fn verdict(line: &[u8]) -> Result<Verdict, ProcessFault> {
    let answer: VerifierAnswer = parse(line)?;

    let violations = answer.violations.unwrap_or_default();
    check_error(
        line,
        answer.error,
        answer.retry,
        answer.score.is_some() || answer.valid.is_some(),
    )?;

    let score = match (answer.score, answer.valid) {
        (Some(value), None) if (0.0..=SCORE_MAX).contains(&value) => Score::from_value(value),
        (Some(_), None) => {
            return Err(malformed(line, format!("`score` must be from 0 to {SCORE_MAX}")));
        }
        (None, Some(true)) => Some(Score::ZERO),
        (None, Some(false)) => Some(Score::from_tenths(Severity::Critical.tenths())),
        (None, None) => return Err(malformed(line, "`score` or `valid` is missing")),
        (Some(_), Some(_)) => return Err(malformed(line, "it has both `score` and `valid`")),
    };

    let score = score.expect("invariant: the range was just checked");
    if score == Score::ZERO && !violations.is_empty() {
        return Err(malformed(line, "it names `violations` but finds nothing wrong"));
    }

    let is_name = |name: &String| {
        !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control)
    };
    if violations.len() > VIOLATIONS_MAX || !violations.iter().all(is_name) {
        let why = format!(
            "`violations` must be up to {VIOLATIONS_MAX} names of 1 to {NAME_BYTES_MAX} bytes"
        );
        return Err(malformed(line, why));
    }

    Ok(Verdict {
        score,
        violations: violations.into_iter().map(Into::into).collect(),
        feedback: answer.feedback,
        logprob: logprob(line, answer.logprob)?,
        usage: usage(line, answer.usage)?,
        ..Verdict::default()
    })
}

pub(super) fn ruling(line: &[u8]) -> Result<Ruling, ProcessFault> {
    let answer: CoordinatorAnswer = parse(line)?;
    check_error(line, answer.error, answer.retry, answer.decision.is_some())?;
    let Some(decision) = answer.decision else {
        return Err(malformed(line, "`decision` is missing"));
    };
    Ok(Ruling { usage: usage(line, answer.usage)?, ..decision.into() })
}
