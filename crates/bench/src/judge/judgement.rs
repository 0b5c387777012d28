//! Judges one submission in four stages, and scores a partly wrong trace.

use serde::Serialize;
use serde_json::Value;

use super::actions::ActionList;
use super::submission::{Body, Submission};
use super::taken::{Taken, is_action, taken};
use super::taxonomy::{Circumstances, ErrorType, classify};
use crate::output::Found;
use crate::output::value::equal;
use crate::tasks::{
    Difficulty, Kind, Kinds, Machine, Problem, Refusal, Severity, Spec, Violations, inputs,
};

/// The paper's four stages (appendix, "Verification Protocol").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Actions or an answer could be taken out of the output.
    Format,
    /// The answer has the fields of the task, and every line is an action.
    Syntax,
    /// Every step satisfies the constraints, and the trace ends.
    Semantic,
    /// The answer is right.
    Result,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 4] = [Self::Format, Self::Syntax, Self::Semantic, Self::Result];

    /// The stage's name in results.
    pub fn name(self) -> &'static str {
        ["format", "syntax", "semantic", "result"][self as usize]
    }
}

/// The result of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageResult {
    /// The submission passed the stage.
    Passed,
    /// The submission failed the stage.
    Failed,
    /// There was no trace to look at.
    NotJudged,
}

impl StageResult {
    fn of(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// The first error of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct FirstError {
    /// Lines before it.
    pub step: u64,
    /// `step` in per cent of the reference trace, at most 100.
    pub percentile: f64,
    /// The type of the error.
    #[serde(rename = "type")]
    pub error: ErrorType,
    /// The wrong line; `null` where one is missing.
    pub line: Option<String>,
    /// The line that the algorithm prescribes there, if any.
    pub expected: Option<String>,
    /// Constraints that the line breaks.
    pub violations: Vec<&'static str>,
}

/// The number of times that a constraint was broken.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// The constraint's name.
    pub constraint: &'static str,
    /// How grave a violation is.
    pub severity: Severity,
    /// Number of lines that broke it.
    pub times: u64,
}

/// The judgement of one submission.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The instance's name.
    pub id: String,
    /// The result of the stage format.
    pub format: StageResult,
    /// The result of the stage syntax.
    pub syntax: StageResult,
    /// The result of the stage semantic.
    pub semantic: StageResult,
    /// The result of the stage result.
    pub result: StageResult,
    /// Lines of the submitted trace.
    pub steps: Option<u64>,
    /// Lines of the reference trace.
    pub reference_steps: u64,
    /// Share of reference states that the trace reaches at the same step, 0 to 1.
    pub partial_credit: Option<f64>,
    /// Steps over reference steps.
    pub efficiency: Option<f64>,
    /// The first error of the trace, if it has one.
    pub first_error: Option<FirstError>,
    /// The constraints that the trace breaks.
    pub violations: Vec<Broken>,
    /// For sorts: true if the answer is a permutation of the input.
    pub faithful: Option<bool>,
    /// Why the submission could not be read, so that it counts as wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The constant part of the task.
    #[serde(skip)]
    pub spec: &'static Spec,
    /// The level of the instance.
    #[serde(skip)]
    pub difficulty: Difficulty,
    /// Digest of the instance's input ([`crate::tasks::inputs::digest`]).
    #[serde(skip)]
    pub input: u64,
}

impl Judgement {
    /// The result of a stage.
    pub fn stage(&self, stage: Stage) -> StageResult {
        [self.format, self.syntax, self.semantic, self.result][stage as usize]
    }

    /// Returns whether the answer is right.
    pub fn correct(&self) -> bool {
        self.result == StageResult::Passed
    }
}

/// The result of walking a trace.
struct Walk {
    /// The trace reached its end.
    ended: bool,
    /// The answer of its last state.
    answer: Option<Value>,
    reference_answer: Value,
    reference_steps: u64,
    right_states: u64,
    first_error: Option<FirstError>,
    broken: Vec<u64>,
}

/// The reference, run in step with a trace that has left it.
struct Shadow {
    machine: Box<dyn Machine>,
    steps: u64,
    theirs: Vec<u8>,
    ours: Vec<u8>,
}

impl Shadow {
    fn new(machine: Box<dyn Machine>, steps: u64) -> Self {
        Self { machine, steps, theirs: Vec::new(), ours: Vec::new() }
    }

    /// Advances by one step and returns whether the trace is in the same state.
    fn step_matches(&mut self, trace: &dyn Machine) -> bool {
        if !self.machine.follow_reference() {
            return false;
        }
        self.steps += 1;
        self.machine.write_state(&mut self.ours);
        trace.write_state(&mut self.theirs);
        self.ours == self.theirs
    }

    fn finish(mut self) -> (Value, u64) {
        while self.machine.follow_reference() {
            self.steps += 1;
        }
        (self.machine.answer().unwrap_or(Value::Null), self.steps)
    }
}

/// Reference lines after the next one that the taxonomy considers.
const AHEAD: usize = 8;

/// Describes a wrong line: `line` is the machine's candidate, or was refused.
pub(super) fn error_at(
    machine: &dyn Machine,
    line: &str,
    refusal: Option<Refusal>,
    found: Violations,
    step: u64,
    previous: Option<&str>,
) -> FirstError {
    let spec = machine.spec();
    let expected = machine.reference();

    // Only the state after the right line shows if the trace ends with it.
    let mut ahead = machine.fork();
    ahead.follow_reference();
    let expected_ends = expected.is_some() && ahead.ended();

    let mut upcoming = Vec::new();
    while upcoming.len() < AHEAD
        && let Some(line) = ahead.reference()
    {
        upcoming.push(line);
        ahead.follow_reference();
    }

    // The first line of all cannot be a return to the beginning.
    let first = if step > 0 { machine.problem().start().reference() } else { None };
    let invariants = found.of_kinds(spec, [Kind::Invariant].into_iter().collect());

    let circumstances = Circumstances {
        category: spec.category,
        given: line,
        refusal,
        expected: expected.as_deref(),
        after_end: machine.ended(),
        given_ends: machine.candidate_ends(),
        expected_ends,
        upcoming: &upcoming,
        previous,
        first: first.as_deref(),
        breaks_invariant: !invariants.is_empty(),
    };

    FirstError {
        step,
        percentile: 0.0,
        error: classify(&circumstances),
        line: Some(line.to_owned()),
        expected,
        violations: found.iter(spec).map(|constraint| constraint.name).collect(),
    }
}

/// Walks a trace. Errors and counts cover constraints of `kinds`; the comparison with the reference
/// covers all.
fn walk(problem: &dyn Problem, lines: &ActionList, kinds: Kinds) -> Walk {
    let spec = problem.spec();
    let mut machine = problem.start();
    let mut shadow: Option<Shadow> = None;
    let mut broken = vec![0; spec.constraints.len()];
    let mut first_error = None;
    let mut right_states = 0;

    // No valid trace is longer; lines beyond that are not worth the work.
    let limit = usize::try_from(problem.steps_max()).unwrap_or(usize::MAX);
    let judged = lines.len().min(limit);

    for (step, line) in lines.iter().take(limit).enumerate() {
        let refusal = machine.propose(line).err();
        let found = machine.violations(Kinds::ALL);
        let counted = found.of_kinds(spec, kinds);
        // Up to its first deviation a trace is the reference itself, so the second machine starts
        // here.
        if !found.is_empty() && shadow.is_none() {
            shadow = Some(Shadow::new(machine.fork(), step as u64));
        }

        if !counted.is_empty() {
            for (place, times) in broken.iter_mut().enumerate() {
                *times += u64::from(counted.contains(place));
            }
            first_error.get_or_insert_with(|| {
                let previous = step.checked_sub(1).and_then(|before| lines.get(before));
                error_at(machine.as_ref(), line, refusal, counted, step as u64, previous)
            });
        }

        machine.commit();

        right_states += match &mut shadow {
            // A trace that has not left the reference is in its state.
            None => 1,
            Some(shadow) => u64::from(shadow.step_matches(machine.as_ref())),
        };
    }

    let ended = machine.ended() && lines.len() <= limit;

    // No line was wrong, but the trace stops before its end, or does not stop at all.
    if !ended && first_error.is_none() {
        let (line, expected) = (lines.get(limit).map(str::to_owned), machine.reference());
        let step = judged as u64;
        let error = ErrorType::Termination;
        first_error = Some(FirstError {
            step,
            percentile: 0.0,
            error,
            line,
            expected,
            violations: Vec::new(),
        });
    }

    let answer = machine.answer();
    // A trace that never left the reference is continued from its own last state.
    let shadow = shadow.unwrap_or_else(|| Shadow::new(machine, judged as u64));
    let (reference_answer, reference_steps) = shadow.finish();
    Walk { ended, answer, reference_answer, reference_steps, right_states, first_error, broken }
}

fn same_type(a: &Value, b: &Value) -> bool {
    // Null, which stands for an absent value, fits every type.
    a.is_null() || b.is_null() || std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Returns whether an answer has exactly the reference's fields, each of the same type.
fn has_shape(answer: &Value, reference: &Value) -> bool {
    let (Some(answer), Some(reference)) = (answer.as_object(), reference.as_object()) else {
        return false;
    };
    answer.len() == reference.len()
        && reference
            .iter()
            .all(|(name, wanted)| answer.get(name).is_some_and(|given| same_type(given, wanted)))
}

fn sorted_texts(values: Option<&Value>) -> Option<Vec<String>> {
    let mut texts: Vec<String> = values?.as_array()?.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    Some(texts)
}

/// Judges a submission. Constraints of `kinds` count; with [`Kind::Transition`] the algorithm runs
/// beside the trace.
pub fn judge(submission: &Submission, kinds: Kinds) -> Judgement {
    let id = &submission.id;
    judge_body(id.problem().as_ref(), id.to_string(), id.difficulty, &submission.body, kinds)
}

/// The answer of the state in which a trace ends.
fn answer_of_trace(problem: &dyn Problem, lines: &ActionList) -> Option<Value> {
    let limit = usize::try_from(problem.steps_max()).unwrap_or(usize::MAX);
    if lines.len() > limit {
        return None;
    }

    let mut machine = problem.start();
    for line in lines.iter() {
        // A refused line leaves the state as it is.
        drop(machine.propose(line));
        machine.commit();
    }
    machine.answer()
}

/// The answer that a text gives, or the one to which its trace leads, right or wrong.
pub fn answer_of(problem: &dyn Problem, text: &str) -> Option<Value> {
    let body = Body::Text(text.to_owned());
    let taken = taken(&body, problem.spec());
    match taken.answer {
        Found::Read(answer) => Some(answer),
        Found::Unreadable(_) => None,
        Found::Absent => taken.actions.as_deref().and_then(|lines| answer_of_trace(problem, lines)),
    }
}

/// Returns whether the answer is right: [`Stage::Result`] of [`judge_body`] without the other
/// stages. `accepts` judges an answer, as [`Problem::accepts`] does.
pub fn is_correct(
    problem: &dyn Problem,
    body: &Body,
    accepts: impl FnOnce(&Value) -> bool,
) -> bool {
    let taken = taken(body, problem.spec());
    let answer = match taken.answer {
        Found::Read(answer) => Some(answer),
        Found::Unreadable(_) => None,
        Found::Absent => taken.actions.as_deref().and_then(|lines| answer_of_trace(problem, lines)),
    };
    answer.is_some_and(|answer| accepts(&answer))
}

/// Judges a submission for a problem, which need not be one of the benchmark's. Reports name it by
/// `id` and count it under `difficulty`.
pub fn judge_body(
    problem: &dyn Problem,
    id: String,
    difficulty: Difficulty,
    body: &Body,
    kinds: Kinds,
) -> Judgement {
    let spec = problem.spec();
    let Taken { actions, answer, unreadable } = taken(body, spec);
    let walk = actions.as_ref().map(|lines| walk(problem, lines, kinds));
    let (reference_answer, reference_steps) = match &walk {
        Some(walk) => (walk.reference_answer.clone(), walk.reference_steps),
        None => {
            let reference = problem.reference();
            (reference.answer, reference.steps)
        }
    };

    // The last state of a complete trace holds its answer. It replaces an absent answer, but not
    // one that cannot be read.
    let of_trace = || walk.as_ref().filter(|walk| walk.ended).and_then(|walk| walk.answer.clone());
    let (format, answer) = match answer {
        Found::Read(answer) => (true, Some(answer)),
        Found::Unreadable(_) => (true, None),
        Found::Absent => {
            let answer = of_trace();
            (answer.is_some(), answer)
        }
    };

    let lines_parse = actions
        .as_ref()
        .is_none_or(|lines| !lines.is_empty() && lines.iter().all(|line| is_action(spec, line)));
    let syntax =
        lines_parse && answer.as_ref().is_some_and(|answer| has_shape(answer, &reference_answer));
    let correct = answer.as_ref().is_some_and(|answer| {
        problem.goal(answer).unwrap_or_else(|| equal(answer, &reference_answer))
    });
    let clean = walk.as_ref().map(|walk| walk.first_error.is_none());

    let steps = actions.as_ref().map(|lines| lines.len() as u64);
    let mut first_error = walk.as_ref().and_then(|walk| walk.first_error.clone());

    if clean == Some(true) && !correct {
        // The trace is right and the answer is not: the last state did not reach it.
        let (step, error) = (steps.unwrap_or_default(), ErrorType::Carryover);
        first_error = Some(FirstError {
            step,
            percentile: 0.0,
            error,
            line: None,
            expected: None,
            violations: Vec::new(),
        });
    }

    // The length of the reference is known only after the walk, so the percentile is set here.
    if let Some(error) = &mut first_error {
        error.percentile = (100.0 * error.step as f64 / reference_steps.max(1) as f64).min(100.0);
    }

    let violations = walk.as_ref().map_or(Vec::new(), |walk| {
        let broken = spec.constraints.iter().zip(&walk.broken).filter(|(_, times)| **times > 0);
        let broken = broken.map(|(constraint, times)| Broken {
            constraint: constraint.name,
            severity: constraint.severity,
            times: *times,
        });
        broken.collect()
    });

    Judgement {
        id,
        format: StageResult::of(format),
        syntax: StageResult::of(syntax),
        semantic: clean.map_or(StageResult::NotJudged, StageResult::of),
        result: StageResult::of(correct),
        steps,
        reference_steps,
        partial_credit: walk
            .as_ref()
            .map(|walk| walk.right_states as f64 / reference_steps.max(1) as f64),
        efficiency: steps.map(|steps| steps as f64 / reference_steps.max(1) as f64),
        first_error,
        violations,
        faithful: spec.category.sorts().then(|| {
            let given = sorted_texts(answer.as_ref().and_then(|answer| answer.get("sorted")));
            given.is_some() && given == sorted_texts(problem.input().get("a"))
        }),
        unreadable,
        spec,
        difficulty,
        input: inputs::digest(problem),
    }
}
