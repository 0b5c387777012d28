//! The checks of a problem: CEL expressions over its input, steps and answer. CEL has no side
//! effects, so only work and depth need bounds. Depth is bounded when an expression is read; work
//! is bounded then for the given input and an ordinary trace, and again before each evaluation for
//! the actual values.

mod condition;
mod exact;
mod expression;
mod functions;
mod interval;
mod readings;
mod shape;
mod values;
mod work;

#[cfg(test)]
mod function_tests;
#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::common::types::{CelBool, CelList, CelNull};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::extractors::This;
use cel::{Context, ExecutionError, Value as CelValue};
use serde_json::Value;

pub use self::condition::Condition;
use self::expression::{ENV, Expression, MATCHES};
use self::shape::Shape;
use self::work::Scene;
use super::error::{Fault, ProblemError, quoted};
use super::limits::{
    ORDINARY_ANSWER_PARTS, ORDINARY_STEP_BYTES, ORDINARY_STEP_PARTS, ORDINARY_STEPS, WORK_MAX,
};
use super::steps::{Read, Steps};
use prime_bench::tasks::Kind;

/// A check of a problem.
#[derive(Debug)]
struct Check {
    /// Its index among the problem's constraints.
    constraint: usize,
    kind: Kind,
    /// True if it judges a step, so that it says nothing about an answer.
    of_step: bool,
    expression: Expression,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its index among the problem's constraints.
    pub constraint: usize,
    /// Why it could not be evaluated; `None` if it is false.
    pub reason: Option<String>,
    /// What it had read if it is false, such as `answer.a is 7, answer.b is 3`.
    pub values: Option<String>,
}

/// The checks of a problem, with its input.
pub struct Checks {
    all: Vec<Check>,
    given: Value,
    input: Box<dyn Val>,
    input_shape: Shape,
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").field("all", &self.all).finish_non_exhaustive()
    }
}

/// The values of an expression's variables.
struct Names<'a> {
    input: &'a dyn Val,
    state: Option<Box<dyn Val + 'a>>,
    answer: Option<Box<dyn Val>>,
    step: Option<Box<dyn Val + 'a>>,
    previous: Option<Box<dyn Val + 'a>>,
    steps: Option<Box<dyn Val + 'a>>,
}

impl VariableResolver for Names<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        match variable {
            "input" => Some(CowVal::Borrowed(self.input)),
            "state" => self.state.as_deref().map(CowVal::Borrowed),
            "answer" => self.answer.as_deref().map(CowVal::Borrowed),
            "step" => self.step.as_deref().map(CowVal::Borrowed),
            "previous" => self.previous.as_deref().map(CowVal::Borrowed),
            "steps" => self.steps.as_deref().map(CowVal::Borrowed),
            _ => None,
        }
    }
}

fn state_shape(steps: u64, step_bytes: u64, steps_parts: u64, answer: &Shape) -> Shape {
    let steps = Shape::list(steps, Shape::text(step_bytes), steps_parts);
    Shape::map([("steps".to_owned(), steps), ("answer".to_owned(), answer.clone())])
}

impl Checks {
    /// Parses expressions, given with the indices of their constraints. `has_values` is true if
    /// steps are read as values instead of as their lines.
    ///
    /// # Errors
    /// Names the first invalid expression, or the most expensive one if their total cost is too
    /// high.
    pub fn read(
        input: &Value,
        sources: &[(usize, &str)],
        has_values: bool,
        path: impl Fn(usize) -> String,
    ) -> Result<Self, ProblemError> {
        let mut all = Vec::new();
        for (constraint, source) in sources {
            let expression =
                Expression::parse(source).map_err(|fault| fault.at(path(*constraint)))?;
            // An answer exists only at the end: a check that mentions it has to wait.
            let kind = if expression.mentions("answer") { Kind::Terminal } else { Kind::Invariant };
            let reads_step = ["step", "previous"].iter().any(|name| expression.mentions(name));
            let of_step = kind == Kind::Invariant && reads_step;
            all.push(Check { constraint: *constraint, kind, of_step, expression });
        }

        let this = Self {
            all,
            given: input.clone(),
            input: values::of_json(input),
            input_shape: Shape::of(input),
        };
        this.unless_too_expensive(has_values)
            .map_err(|(constraint, fault)| fault.at(path(constraint)))?;
        Ok(this)
    }

    /// Refuses checks that are too expensive for this input and an ordinary trace.
    fn unless_too_expensive(&self, has_values: bool) -> Result<(), (usize, Fault)> {
        let answer = Shape::Any { parts: ORDINARY_ANSWER_PARTS };
        let step_parts = Shape::text(ORDINARY_STEP_BYTES).parts();
        let state =
            state_shape(ORDINARY_STEPS, ORDINARY_STEP_BYTES, ORDINARY_STEPS * step_parts, &answer);
        let step = if has_values {
            Shape::Any { parts: ORDINARY_STEP_PARTS }
        } else {
            Shape::text(ORDINARY_STEP_BYTES)
        };
        let steps = Shape::list(ORDINARY_STEPS, step.clone(), ORDINARY_STEPS * (step.parts() + 1));
        let scene = Scene {
            input: &self.input_shape,
            state: &state,
            answer: &answer,
            step: &step,
            previous: &step,
            steps: &steps,
            given: &self.given,
        };

        let works =
            self.all.iter().map(|check| (work::bound(&check.expression, &scene), check.constraint));
        let works: Vec<(u64, usize)> = works.collect();
        let all = works.iter().fold(0_u64, |all, (work, _)| all.saturating_add(*work));

        match works.iter().max() {
            Some((work, constraint)) if all > WORK_MAX => Err((
                *constraint,
                Fault::new(
                    format!(
                        "it may take {work} units of work after a step, and all checks together {all}, which is more \
                         than {WORK_MAX}"
                    ),
                    "put fewer loops into each other, or give a smaller input",
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether the check at this index among the constraints reads a variable.
    pub fn reads(&self, constraint: usize, variable: &str) -> bool {
        let found = self.all.iter().find(|check| check.constraint == constraint);
        found.is_some_and(|check| check.expression.mentions(variable))
    }

    /// Returns whether the check at this index among the constraints judges steps alone.
    pub fn is_of_step(&self, constraint: usize) -> bool {
        self.all.iter().any(|check| check.constraint == constraint && check.of_step)
    }

    /// The kind of the check at this index among the constraints.
    pub fn kind_of(&self, constraint: usize) -> Option<Kind> {
        self.all.iter().find(|check| check.constraint == constraint).map(|check| check.kind)
    }

    /// The constraints whose checks look at what was written. One that reads the input alone is a
    /// condition on the problem, and says nothing about an answer.
    pub fn that_read_work(&self) -> impl Iterator<Item = usize> {
        let work = ["answer", "state", "step", "previous", "steps"];
        let reads = move |check: &&Check| work.iter().any(|name| check.expression.mentions(name));
        self.all.iter().filter(reads).map(|check| check.constraint)
    }

    /// The checks of this kind that fail. A check too expensive for the actual values is not
    /// evaluated and counts as broken.
    pub fn broken(&self, kind: Kind, steps: &Steps, answer: Option<&Value>) -> Vec<Finding> {
        self.broken_within(kind, steps, answer, &mut { WORK_MAX })
    }

    /// Like [`Checks::broken`], with a limit from which the work that was done is subtracted.
    pub fn broken_within(
        &self,
        kind: Kind,
        steps: &Steps,
        answer: Option<&Value>,
        left: &mut u64,
    ) -> Vec<Finding> {
        let is_step = answer.is_none();
        let is_due = |check: &&Check| check.kind == kind && (is_step || !check.of_step);
        let mut checks = self.all.iter().filter(is_due).peekable();
        if checks.peek().is_none() {
            return Vec::new();
        }

        let answer_shape = answer.map_or(Shape::SMALL, Shape::of);
        let (count, bytes) = (steps.count(), steps.bytes() as u64);
        let steps_parts = count.saturating_mul(2).saturating_add(Shape::text(bytes).parts());
        let state_shape = state_shape(count, steps.longest() as u64, steps_parts, &answer_shape);
        let newest: Vec<_> = steps.newest_first().take(2).collect();
        let shape_at = |at: usize| match newest.get(at) {
            Some((_, Some(read))) => Shape::of(&read.value),
            Some((line, None)) => Shape::text(line.len() as u64),
            None => Shape::SMALL,
        };
        let values_shape = match newest.first() {
            Some((_, Some(_))) => {
                let parts = steps.parts().saturating_add(count);
                Shape::list(count, Shape::Any { parts: steps.largest() }, parts)
            }
            _ => Shape::list(count, Shape::text(steps.longest() as u64), steps_parts),
        };
        let scene = Scene {
            input: &self.input_shape,
            state: &state_shape,
            answer: &answer_shape,
            step: &shape_at(0),
            previous: &shape_at(1),
            steps: &values_shape,
            given: &self.given,
        };

        let mentions = |name: &str| {
            self.all.iter().any(|check| check.kind == kind && check.expression.mentions(name))
        };
        // Built only if a check of this kind reads `state`: a trace may have ten thousand steps.
        let lines = if mentions("state") { steps.lines() } else { Vec::new() };
        let names = Names {
            input: self.input.as_ref(),
            state: mentions("state").then(|| values::of_state(&lines, answer)),
            answer: answer.map(values::of_json),
            step: mentions("step").then(|| step_at(&newest, 0)),
            previous: mentions("previous").then(|| step_at(&newest, 1)),
            steps: mentions("steps").then(|| {
                let mut all: Vec<_> =
                    steps.newest_first().map(|(line, read)| values::of_step(line, read)).collect();
                all.reverse();
                Box::new(CelList::from(all)) as Box<dyn Val>
            }),
        };

        let step_value = |at: usize| match newest.get(at)? {
            (_, Some(read)) => Some(Cow::Borrowed(&read.value)),
            (line, None) => Some(Cow::Owned(Value::from(*line))),
        };
        // Not of `state` and `steps`, which are as long as the trace.
        let value_of = |variable: &str| match variable {
            "input" => Some(Cow::Borrowed(&self.given)),
            "answer" => answer.map(Cow::Borrowed),
            "step" => step_value(0),
            "previous" => step_value(1),
            _ => None,
        };

        // Checks of a kind share the limit: each gets what the earlier ones have left.
        checks
            .filter_map(|check| {
                let work = work::bound(&check.expression, &scene);
                let holds = if work > *left {
                    Err(format!("too expensive here: up to {work} units of work, and {left} of {WORK_MAX} are left"))
                } else {
                    *left -= work;
                    evaluate(&check.expression, &names)
                };

                let (reason, values) = match holds {
                    Ok(true) => return None,
                    Ok(false) => (None, readings::said(&check.expression.readings, value_of)),
                    Err(reason) => (Some(reason), None),
                };
                Some(Finding { constraint: check.constraint, reason, values })
            })
            .collect()
    }
}

/// The step at this distance from the newest one; null where there is none.
fn step_at<'a>(newest: &[(&'a str, Option<&Read>)], at: usize) -> Box<dyn Val + 'a> {
    match newest.get(at) {
        Some((line, read)) => values::of_step(line, *read),
        None => Box::new(CelNull),
    }
}

/// A bound on the size of a value, as steps count it.
pub fn parts_of(value: &Value) -> u64 {
    Shape::of(value).parts()
}

/// Returns whether an expression is true.
fn evaluate(expression: &Expression, names: &Names<'_>) -> Result<bool, String> {
    // No state that a panic could leave inconsistent is reused.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(names);

        if !expression.patterns.is_empty() {
            let patterns = Arc::clone(&expression.patterns);
            let matches = move |This(text): This<Arc<String>>,
                                number: i64|
                  -> Result<bool, ExecutionError> {
                let pattern = usize::try_from(number).ok().and_then(|number| patterns.get(number));
                pattern
                    .map(|pattern| pattern.matches(&text))
                    .ok_or_else(ExecutionError::missing_argument_or_target)
            };
            context.add_function(MATCHES, matches).map_err(|error| quoted(&error))?;
        }

        let value =
            CelValue::resolve_val(&expression.tree, &context).map_err(|error| quoted(&error))?;
        let truth = value.downcast_ref::<CelBool>().map(|truth| *truth.inner());
        truth.ok_or_else(|| {
            format!("it is a value of the type {}, and not true or false", value.get_type().name())
        })
    }));

    result.unwrap_or_else(|_| Err("the evaluation failed".to_owned()))
}
