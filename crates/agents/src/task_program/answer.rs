//! Parses a program's answers about a task, as strictly as the answers of agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::declaration::check_name;
use super::limits::{LINE_BYTES_MAX, STEPS_MAX, STEPS_MAX_DEFAULT, TEXT_BYTES_MAX, VIOLATIONS_MAX};
use super::node::{Found, digest_of};
use crate::Failure;
use prime_bench::tasks::{Constraint, Kind, Severity, Spec};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(rename = "id")]
    _id: u64,
    error: Option<String>,
    retry: Option<bool>,
    refused: Option<String>,
    state: Option<Value>,
    choices: Option<Vec<String>>,
    steps_max: Option<u64>,
    view: Option<String>,
    hint: Option<String>,
    violations: Option<Vec<Violation>>,
    done: Option<bool>,
    answer: Option<Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Violation {
    name: String,
    severity: Option<Severity>,
    message: Option<String>,
}

/// What a request was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Start,
    Step,
}

/// A program's answer about a start or a step.
#[derive(Debug)]
pub(super) struct Answer {
    /// Equal for equal answers.
    pub digest: u64,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Refused(String),
    State(Box<State>),
}

#[derive(Debug)]
pub(super) struct State {
    pub value: Value,
    pub found: Vec<Found>,
    pub choices: Option<Vec<String>>,
    pub view: Option<String>,
    pub hint: Option<String>,
    pub steps_max: u64,
    pub answer: Option<Value>,
}

/// Why a line is not an answer, as a clause whose subject is the program.
#[derive(Debug)]
pub(super) struct BadAnswer {
    pub failure: Failure,
    pub reason: String,
}

fn malformed(reason: impl std::fmt::Display) -> BadAnswer {
    BadAnswer {
        failure: Failure::Malformed,
        reason: format!("it gave an invalid answer: {reason}"),
    }
}

/// A program's text as a verdict shows it, at most a few KiB of it.
fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", prime_printable::printable(&text[..end]))
}

fn check_line(what: &str, line: &str) -> Result<(), BadAnswer> {
    if line.is_empty() || line.len() > LINE_BYTES_MAX || line.chars().any(char::is_control) {
        return Err(malformed(format!(
            "`{what}` has {:?}, which is not a line: write 1 to {LINE_BYTES_MAX} bytes without \
             control characters",
            shown(line)
        )));
    }
    Ok(())
}

/// A constraint as a task declares it.
#[derive(Clone, Copy)]
pub(super) struct Rule<'r> {
    pub kind: Kind,
    pub severity: Severity,
    pub meaning: &'r str,
}

/// The constraints that a task declares, by name.
pub(super) type Rules<'r> = dyn Fn(&str) -> Option<Rule<'r>> + 'r;

/// The constraints of a task's constant part.
pub(super) fn rules_of(spec: &'static Spec) -> impl Fn(&str) -> Option<Rule<'static>> {
    |name| {
        let declared = spec.constraints.iter().find(|constraint| constraint.name == name)?;
        let &Constraint { kind, severity, meaning, .. } = declared;
        Some(Rule { kind, severity, meaning })
    }
}

fn found(violation: Violation, rules: &Rules<'_>) -> Result<Found, BadAnswer> {
    let Violation { name, severity, message } = violation;
    check_name(&name).map_err(|fault| malformed(format!("`violations`: {fault}")))?;
    let declared = rules(&name);
    let severity = severity.or(declared.map(|rule| rule.severity)).ok_or_else(|| {
        malformed(format!(
            "the violation `{name}` has no `severity` and is not declared: write critical, major \
             or minor"
        ))
    })?;
    let meaning = declared.map_or("", |rule| rule.meaning);
    Ok(Found {
        kind: declared.map_or(Kind::Invariant, |rule| rule.kind),
        severity,
        message: message.map_or_else(|| meaning.to_owned(), |message| shown(&message)),
        name,
    })
}

/// Reads an answer.
///
/// # Errors
/// The answer is an error, or is not an answer to what was asked.
pub(super) fn read(line: &[u8], asked: Asked, rules: &Rules<'_>) -> Result<Answer, BadAnswer> {
    let text = std::str::from_utf8(line).map_err(|_| malformed("it is not UTF-8"))?;
    let fields: Fields = serde_json::from_str(text).map_err(malformed)?;
    if let Some(error) = fields.error {
        let failure =
            if fields.retry == Some(false) { Failure::Unsupported } else { Failure::ServerError };
        return Err(BadAnswer { failure, reason: format!("it said: {}", shown(&error)) });
    }
    if fields.retry.is_some() {
        return Err(malformed("`retry` without an `error`"));
    }

    if let Some(refused) = fields.refused {
        if fields.state.is_some() {
            return Err(malformed("it has both `refused` and a `state`"));
        }
        let digest = digest_of(&[&Value::String(refused.clone())]);
        return Ok(Answer { digest, outcome: Outcome::Refused(shown(&refused)) });
    }
    // States are sent back to the program: a number that changes on the way would make a different
    // state.
    if let Some(lost) = prime_problems::lossy(text) {
        return Err(malformed(format!("`{}`: {lost}", lost.path)));
    }

    // Digests are of the parts, since a state may be large; absent and null parts are equal.
    let rest = (&fields.choices, &fields.view, &fields.hint, &fields.violations);
    let rest = serde_json::to_value((rest, fields.steps_max, fields.done)).map_err(malformed)?;
    let parts = [fields.state.as_ref(), fields.answer.as_ref(), Some(&rest)];
    let digest = digest_of(&parts.map(|part| part.unwrap_or(&Value::Null)));

    let state = fields.state.ok_or_else(|| malformed("`state` or `refused` is missing"))?;
    let is_start = asked == Asked::Start;
    if is_start && (fields.violations.is_some() || fields.done.is_some() || fields.answer.is_some())
    {
        return Err(malformed("a start has no `violations`, no `done` and no `answer`"));
    }
    if !is_start && fields.steps_max.is_some() {
        return Err(malformed("only a start has `steps_max`"));
    }
    let steps_max = fields.steps_max.unwrap_or(STEPS_MAX_DEFAULT);
    if !(1..=STEPS_MAX).contains(&steps_max) {
        return Err(malformed(format!("`steps_max` is {steps_max}; write 1 to {STEPS_MAX}")));
    }

    let is_done = fields.done.unwrap_or(false);
    if fields.answer.is_some() && !is_done {
        return Err(malformed("it has an `answer`, but is not `done`"));
    }
    for choice in fields.choices.iter().flatten() {
        check_line("choices", choice)?;
    }
    if let Some(hint) = &fields.hint {
        check_line("hint", hint)?;
    }
    let violations = fields.violations.unwrap_or_default();
    if violations.len() > VIOLATIONS_MAX {
        let count = violations.len();
        return Err(malformed(format!("{count} `violations`; write at most {VIOLATIONS_MAX}")));
    }
    let found: Vec<Found> = violations
        .into_iter()
        .map(|violation| found(violation, rules))
        .collect::<Result<_, _>>()?;

    let answer = is_done.then(|| fields.answer.unwrap_or_else(|| state.clone()));
    Ok(Answer {
        digest,
        outcome: Outcome::State(Box::new(State {
            value: state,
            found,
            choices: fields.choices.filter(|_| !is_done),
            view: fields.view.map(|view| prime_printable::printable(&view).into_owned()),
            hint: fields.hint.filter(|_| !is_done),
            steps_max,
            answer,
        })),
    })
}
