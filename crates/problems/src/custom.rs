//! A client's problem, compiled and ready to run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::answer::{Reader, What, depth_of};
use super::checks::Checks;
use super::definition::{ConstraintDefinition, Definition, LineForm, StepMode};
use super::error::{Fault, ProblemError, quoted};
use super::integers::large_float;
use super::limits::{
    CONSTRAINTS_MAX, INPUT_BYTES_MAX, JSON_DEPTH_MAX, MAX_PROPOSALS_MAX, NAME_BYTES_MAX,
    STATEMENT_BYTES_MAX, STEPS_MAX, TEXT_BYTES_MAX,
};
use super::machine::Walk;
use prime_bench::tasks::page::Page;
use prime_bench::tasks::spec::PaperFigures;
use prime_bench::tasks::{
    BadInput, Category, Constraint, Kind, Kinds, Machine, PathDraw, Problem, Rule, Severity, Spec,
    TaskRng,
};

/// The spec of every client problem. Constraints belong to the problem: [`Machine::broken`] names
/// them.
pub static SPEC: Spec = Spec {
    id: u16::MAX,
    slug: "problem",
    title: "Problem",
    category: Category::Logic,
    sizes: ["", "", ""],
    // One line of what can be printed.
    actions: &["<[ -~\u{a0}-\u{10ffff}]+>"],
    constraints: &[Constraint {
        name: "format",
        kind: Kind::Format,
        severity: Severity::Critical,
        meaning: "the line is a step or an answer of the form that the problem asks for",
    }],
    sound: Kinds::WITHOUT_TRANSITION,
    decisive: &[],
    hidden: &[],
    paper: PaperFigures { steps: 0, baseline: 0.0, prime: 0.0 },
    page: &Page::EMPTY,
};

/// A constraint in words, for a verifier that reads text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Textual<'a> {
    /// Its index in a set of violations.
    pub index: usize,
    /// The constraint's name.
    pub name: &'a str,
    /// How grave a violation is.
    pub severity: Severity,
    /// What the constraint requires, in the client's words.
    pub text: &'a str,
}

#[derive(Debug)]
struct Read {
    definition: Definition,
    answers: Reader,
    steps: Reader,
    checks: Checks,
}

/// A client's problem. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Custom(Arc<Read>);

fn path_of(constraint: usize) -> String {
    format!("problem.constraints[{constraint}]")
}

fn statement(definition: &Definition) -> Result<(), Fault> {
    if definition.statement.trim().is_empty() {
        return Err(Fault::new("the statement is empty", "write what is to be done"));
    }
    Fault::unless_short("the statement", definition.statement.len(), STATEMENT_BYTES_MAX)
}

fn input(definition: &Definition) -> Result<(), Fault> {
    // First, because writing the input as text recurses.
    if depth_of(&definition.input, JSON_DEPTH_MAX + 1) > JSON_DEPTH_MAX {
        let problem = format!("the input is nested more than {JSON_DEPTH_MAX} deep");
        return Err(Fault::new(problem, "write it flatter"));
    }
    Fault::unless_short("the input", definition.input.to_string().len(), INPUT_BYTES_MAX)
}

/// Refuses floats that stand for several integers, in the input and in the schemas: a check
/// would take one of these integers for another.
fn floats(definition: &Definition) -> Result<(), ProblemError> {
    let forms = [
        ("problem.answer.schema", definition.answer.as_ref()),
        ("problem.step.schema", definition.step.as_ref()),
    ];
    let schemas = forms.into_iter().filter_map(|(path, form)| match form? {
        LineForm::Schema(schema) => Some((path, schema)),
        LineForm::Pattern(_) => None,
    });

    for (path, value) in [("problem.input", &definition.input)].into_iter().chain(schemas) {
        if let Some((at, digits)) = large_float(value) {
            let below = if at.is_empty() || at.starts_with('[') { "" } else { "." };
            let problem =
                format!("the float {digits} is not below 2^53 and may stand for several integers");
            return Err(ProblemError::new(
                format!("{path}{below}{at}"),
                problem,
                "write it as an integer or as a text",
            ));
        }
    }
    Ok(())
}

fn limit(given: Option<u64>, most: u64) -> Result<(), Fault> {
    match given {
        Some(given) if !(1..=most).contains(&given) => {
            Err(Fault::new(format!("it is {given}"), format!("write 1 to {most}")))
        }
        _ => Ok(()),
    }
}

/// Refuses options of steps in a problem of a single line.
fn steps(definition: &Definition) -> Result<(), ProblemError> {
    let named =
        [("step", definition.step.is_some()), ("max_steps", definition.max_steps.is_some())];
    for (field, is_given) in named {
        if is_given && definition.steps == StepMode::Single {
            return Err(ProblemError::new(
                format!("problem.{field}"),
                "a problem of a single line has no steps",
                "write `\"steps\": \"stepwise\"`; `max_proposals` bounds the proposals",
            ));
        }
    }
    limit(definition.max_steps, STEPS_MAX).map_err(|fault| fault.at("problem.max_steps"))?;
    limit(definition.max_proposals, MAX_PROPOSALS_MAX)
        .map_err(|fault| fault.at("problem.max_proposals"))
}

/// Refuses checks that read steps in a problem of a single line: they would never be evaluated.
fn reads_no_steps(definition: &Definition, checks: &Checks) -> Result<(), ProblemError> {
    if definition.steps != StepMode::Single {
        return Ok(());
    }
    for place in 0..definition.constraints.len() {
        for variable in ["step", "previous", "steps"] {
            if checks.reads(place, variable) {
                return Err(ProblemError::new(
                    format!("{}.check", path_of(place)),
                    format!("it reads `{variable}`, and a problem of a single line has no steps"),
                    "write `\"steps\": \"stepwise\"`, or read `answer`",
                ));
            }
        }
    }
    Ok(())
}

/// Validates a name.
fn name<'d>(
    constraint: &'d ConstraintDefinition,
    taken: &mut BTreeSet<&'d str>,
) -> Result<(), Fault> {
    let name = constraint.name.as_str();
    Fault::unless_short("the name", name.len(), NAME_BYTES_MAX)?;

    if name.trim().is_empty() || name.trim() != name || name.chars().any(char::is_control) {
        return Err(Fault::new(
            format!("{name:?} is not a name"),
            "write one without blanks round it",
        ));
    }
    // Violations have one list of names: this one would be ambiguous.
    if name == "format" {
        return Err(Fault::new(
            "the name `format` is that of the lines' own form",
            "write another one",
        ));
    }

    if !taken.insert(name) {
        return Err(Fault::new(
            format!("the name {name:?} is taken by an earlier constraint"),
            "write another one",
        ));
    }

    Ok(())
}

/// Checks that exactly one of check and text is given, and a message with a check alone.
fn judge(constraint: &ConstraintDefinition, path: &str) -> Result<(), ProblemError> {
    if let Some(message) = &constraint.message {
        let fault = if message.trim().is_empty() {
            Err(Fault::new("the message is empty", "write what is wrong, or leave it out"))
        } else if constraint.check.is_none() {
            Err(Fault::new("a message belongs to a check", "write it into `text`"))
        } else {
            Fault::unless_short("the message", message.len(), TEXT_BYTES_MAX)
        };
        fault.map_err(|fault| fault.at(format!("{path}.message")))?;
    }

    match (&constraint.check, &constraint.text) {
        (Some(_), None) => Ok(()),
        (None, Some(text)) => {
            let is_empty = text.trim().is_empty();
            let empty = || Fault::new("the text is empty", "write the constraint in words");
            if is_empty {
                Err(empty())
            } else {
                Fault::unless_short("the text", text.len(), TEXT_BYTES_MAX)
            }
            .map_err(|fault| fault.at(format!("{path}.text")))
        }
        (check, _) => {
            let both = if check.is_some() {
                "both `check` and `text`"
            } else {
                "neither `check` nor `text`"
            };
            let remedy = "write `check` for what can be evaluated, or `text` for what must be read";
            Err(ProblemError::new(path, format!("there is {both}"), remedy))
        }
    }
}

fn constraints(definition: &Definition) -> Result<(), ProblemError> {
    let count = definition.constraints.len();
    if count > CONSTRAINTS_MAX {
        let (problem, remedy) =
            (format!("there are {count} constraints"), format!("write at most {CONSTRAINTS_MAX}"));
        return Err(ProblemError::new("problem.constraints", problem, remedy));
    }

    let mut taken = BTreeSet::new();
    for (place, constraint) in definition.constraints.iter().enumerate() {
        let path = path_of(place);
        name(constraint, &mut taken).map_err(|fault| fault.at(format!("{path}.name")))?;
        judge(constraint, &path)?;
    }
    Ok(())
}

impl Custom {
    /// Parses a problem from JSON.
    ///
    /// # Errors
    /// Like [`Custom::new`], and for fields that are missing, unknown or of the wrong type.
    pub fn read(json: &Value) -> Result<Self, ProblemError> {
        let definition = serde_path_to_error::deserialize(json).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { "problem".to_owned() } else { format!("problem.{path}") };
            ProblemError::new(
                path,
                quoted(error.inner()),
                "write it as the documentation of problems says",
            )
        })?;
        Self::new(definition)
    }

    /// Validates a definition and compiles it; takes up to about 20 ms per check.
    ///
    /// # Errors
    /// The first unusable field, with a remedy.
    pub fn new(definition: Definition) -> Result<Self, ProblemError> {
        statement(&definition).map_err(|fault| fault.at("problem.statement"))?;
        input(&definition).map_err(|fault| fault.at("problem.input"))?;
        steps(&definition)?;

        let answers = Reader::new(What::Answer, definition.answer.as_ref())
            .map_err(|fault| fault.at("problem.answer"))?;
        let steps = Reader::new(What::Step, definition.step.as_ref())
            .map_err(|fault| fault.at("problem.step"))?;
        // After the limits of depth, because it recurses.
        floats(&definition)?;
        // Before the checks, whose parsing takes the time.
        constraints(&definition)?;

        let checks = definition.constraints.iter().enumerate();
        let sources: Vec<(usize, &str)> = checks
            .filter_map(|(place, constraint)| Some((place, constraint.check.as_deref()?)))
            .collect();
        let has_values = !steps.keeps_text();
        let path = |place| format!("{}.check", path_of(place));
        let checks = Checks::read(&definition.input, &sources, has_values, path)?;
        reads_no_steps(&definition, &checks)?;

        Ok(Self(Arc::new(Read { definition, answers, steps, checks })))
    }

    /// JSON from which [`Custom::read`] makes the same problem.
    pub fn definition(&self) -> Value {
        serde_json::to_value(&self.0.definition).expect("invariant: definitions serialise")
    }

    /// The definition that was read.
    pub fn as_definition(&self) -> &Definition {
        &self.0.definition
    }

    /// The constraints in words. This crate does not judge them.
    pub fn textual(&self) -> impl Iterator<Item = Textual<'_>> {
        let constraints = self.0.definition.constraints.iter().enumerate();
        constraints.filter_map(|(place, constraint)| {
            let text = constraint.text.as_deref()?;
            Some(Textual {
                // Bit 0 of a set of violations is `format`.
                index: place + 1,
                name: &constraint.name,
                severity: constraint.severity,
                text,
            })
        })
    }

    /// The kind of each constraint, in order; `None` for those in words.
    pub fn kinds(&self) -> impl Iterator<Item = Option<Kind>> {
        (0..self.0.definition.constraints.len()).map(|place| self.0.checks.kind_of(place))
    }

    /// Returns whether the constraint at this index is a check of steps, which is not evaluated
    /// with the answer.
    pub fn is_of_step(&self, constraint: usize) -> bool {
        self.0.checks.is_of_step(constraint)
    }

    /// The problem for the runtime.
    pub fn problem(&self) -> Arc<dyn Problem> {
        Arc::new(self.clone())
    }

    pub(super) fn answers(&self) -> &Reader {
        &self.0.answers
    }

    pub(super) fn steps(&self) -> &Reader {
        &self.0.steps
    }

    pub(super) fn checks(&self) -> &Checks {
        &self.0.checks
    }
}

impl Problem for Custom {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    /// The whole definition.
    fn input(&self) -> Value {
        self.definition()
    }

    fn start(&self) -> Box<dyn Machine> {
        Box::new(Walk::start(self.clone()))
    }

    fn steps_max(&self) -> u64 {
        match self.0.definition.steps {
            StepMode::Single => 1,
            StepMode::Stepwise => STEPS_MAX.min(self.0.definition.max_steps.unwrap_or(STEPS_MAX)),
        }
    }

    fn proposals_max(&self) -> Option<u64> {
        self.0.definition.max_proposals
    }

    fn on_path(&self, _: PathDraw, _: &mut TaskRng) -> Option<Box<dyn Machine>> {
        None
    }

    /// A state between steps: the lines so far, without an answer.
    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput> {
        let bad = |detail: &str| BadInput { task: SPEC.slug, detail: detail.to_owned() };

        let lines = state["steps"]
            .as_array()
            .ok_or_else(|| bad("field `steps`: give the lines so far, a list"))?;
        // `replay` could go there, but no step could follow.
        if !state["answer"].is_null() {
            return Err(bad("field `answer`: a state with an answer is an end; give one without"));
        }

        let mut machine = self.start();

        for (at, line) in lines.iter().enumerate() {
            let line = line
                .as_str()
                .ok_or_else(|| bad(&format!("field `steps[{at}]`: give a line of text")))?;
            machine
                .replay(line)
                .map_err(|refusal| bad(&format!("field `steps[{at}]`: {refusal}")))?;
        }
        Ok(machine)
    }

    fn has_reference(&self) -> bool {
        false
    }

    /// The problem is what its definition says: an answer that keeps all of its constraints is
    /// right.
    fn sound(&self) -> Kinds {
        self.rules().into_iter().filter_map(|rule| rule.kind).collect()
    }

    /// Returns whether some check reads the answer or the steps.
    fn has_checks(&self) -> bool {
        self.0.checks.that_read_work().next().is_some()
    }

    fn statement(&self) -> Cow<'_, str> {
        self.0.definition.statement.as_str().into()
    }

    fn data(&self) -> Value {
        self.0.definition.input.clone()
    }

    fn rules(&self) -> Vec<Rule> {
        let form = &SPEC.constraints[0];
        let format = Rule {
            name: form.name.into(),
            kind: Some(form.kind),
            severity: form.severity,
            meaning: form.meaning.into(),
        };

        let own =
            self.0.definition.constraints.iter().zip(self.kinds()).map(|(constraint, kind)| Rule {
                name: constraint.name.clone().into(),
                kind,
                severity: constraint.severity,
                meaning: constraint
                    .check
                    .as_ref()
                    .or(constraint.text.as_ref())
                    .cloned()
                    .unwrap_or_default()
                    .into(),
            });

        std::iter::once(format).chain(own).collect()
    }

    fn needs_reader(&self) -> bool {
        self.textual().next().is_some()
    }

    fn goal(&self, _: &Value) -> Option<bool> {
        None
    }
}
