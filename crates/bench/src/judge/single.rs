//! Judges a single step or answer: the core of `POST /v1/verify`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actions::ActionList;
use crate::output::line::{action_line, propose};
use crate::output::value::equal;
use crate::tasks::instance::NoSuchIndex;
use crate::tasks::{
    self, BASE_SEED, Difficulty, INDEX_LIMIT, InstanceId, Kind, Kinds, Machine, Problem, Refusal,
    Severity, pattern,
};
use limited::Instance;

mod limited;
#[cfg(test)]
mod tests;

pub use limited::{Judge, OwnTasks};

/// The most actions that a request may hold.
pub const ACTIONS_MAX: usize = 100_000;

/// Reference steps computed to judge an answer. Every instance of the benchmark takes fewer.
pub const REFERENCE_STEPS_MAX: u64 = 1 << 21;

/// Default kinds: those that do not give away the algorithm's next step.
pub const KINDS: [Kind; 3] = [Kind::Format, Kind::Invariant, Kind::Terminal];

/// The subject to judge: `action`, in a state of an instance, or an `answer` to the instance.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    /// Slug of the task.
    #[cfg_attr(feature = "schema", schema(example = "bubble-sort"))]
    pub task: String,
    /// Level of an instance of the benchmark; with `index`.
    pub difficulty: Option<Difficulty>,
    /// Number of an instance, 0 to 999, of which the benchmark has 0 to 199; with `difficulty`.
    #[cfg_attr(feature = "schema", schema(maximum = 999))]
    #[serde(default, deserialize_with = "crate::json_integer::optional")]
    pub index: Option<u32>,
    /// Base seed of the benchmark; 42 where it is left out.
    #[serde(default, deserialize_with = "crate::json_integer::optional")]
    pub base_seed: Option<u64>,
    /// The task's own input, an object, instead of `difficulty` and `index`.
    #[cfg_attr(feature = "schema", schema(value_type = Value, required = false))]
    pub input: Option<Value>,
    /// The state before `action`, as the task writes it. It need not lie on any trace.
    #[cfg_attr(feature = "schema", schema(value_type = Value, required = false))]
    pub state: Option<Value>,
    /// Lines from the start of the trace to `action`, instead of `state`: up to 100,000. They are
    /// carried out, not judged. Without either, `action` is the first line.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<String>>, max_items = 100_000))]
    pub actions: Option<ActionList>,
    /// The line to judge.
    #[cfg_attr(feature = "schema", schema(example = "cmp 0 1"))]
    pub action: Option<String>,
    /// The answer to judge, instead of `action`.
    #[cfg_attr(feature = "schema", schema(value_type = Value, required = false))]
    pub answer: Option<Value>,
    /// Kinds of constraints to look at; format, invariant and terminal where they are left out.
    #[cfg_attr(feature = "schema", schema(min_items = 1))]
    pub kinds: Option<Vec<Kind>>,
}

impl VerifyRequest {
    /// Checks the ranges of its fields, whatever the task.
    ///
    /// # Errors
    /// The first field out of its range.
    pub fn check(&self) -> Result<(), VerifyError> {
        if let Some(index) = self.index.filter(|index| *index >= INDEX_LIMIT) {
            return Err(VerifyError::at("index", NoSuchIndex { index }));
        }

        let count = self.actions.as_ref().map_or(0, ActionList::len);
        if count > ACTIONS_MAX {
            return Err(VerifyError::at(
                "actions",
                format!("has {count} lines; give up to {ACTIONS_MAX}"),
            ));
        }

        if self.kinds.as_ref().is_some_and(Vec::is_empty) {
            return Err(VerifyError::at(
                "kinds",
                "give at least one of format, invariant, transition, terminal",
            ));
        }
        Ok(())
    }
}

/// The judgement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Verification {
    /// The judgement of a line in a state.
    Step(Box<StepVerdict>),
    /// The judgement of an answer.
    Answer(AnswerVerdict),
}

/// The judgement of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepVerdict {
    /// True if the line is an action that can be carried out in the state.
    pub applicable: bool,
    /// Why it is not.
    pub refusal: Option<RefusalVerdict>,
    /// V, the sum of the weights of all violations: critical 1.0, major 0.6, minor 0.2.
    pub score: f64,
    /// The constraints that the step breaks.
    pub violations: Vec<ViolationVerdict>,
    /// The state after the step; `null` where it was refused.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub state: Option<Value>,
    /// True if the trace ends with the step.
    pub ended: bool,
    /// The answer of a trace that ends with the step.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub answer: Option<Value>,
}

/// Why a line was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RefusalVerdict {
    /// Which of the two findings it is.
    pub kind: RefusalKind,
    /// The reason, for people.
    pub reason: String,
}

/// The two findings about a line that was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RefusalKind {
    /// It is not an action line of the task.
    Unparsable,
    /// It is an action line, but cannot be carried out in the state.
    Illegal,
}

/// A constraint that a step breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ViolationVerdict {
    /// The constraint's name.
    pub name: String,
    /// How grave the violation is.
    pub severity: Severity,
    /// What the constraint demands, in words.
    pub meaning: String,
}

/// The judgement of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AnswerVerdict {
    /// Whether the answer is right.
    pub right: bool,
    /// How that was found out.
    pub judged_by: AnswerTest,
}

/// The way in which an answer was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum AnswerTest {
    /// By the task's goal test: several answers may be right.
    Goal,
    /// By comparison with the reference answer.
    Reference,
}

/// A request that cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[error("{message}")]
pub struct VerifyError {
    /// The field of the request that is wrong, if it is one.
    pub field: Option<String>,
    /// What is wrong, for people.
    pub message: String,
}

impl VerifyError {
    /// The error that the value of this field is wrong.
    pub fn at(field: &str, message: impl std::fmt::Display) -> Self {
        Self { field: Some(field.to_owned()), message: format!("field `{field}`: {message}") }
    }
}

/// Judges a step or an answer, as the only request of a [`Judge`].
///
/// # Errors
/// Names the field that is missing, contradicts another, or is out of range.
pub fn judge(request: &VerifyRequest) -> Result<Verification, VerifyError> {
    Judge::new(u64::MAX, &|| Ok(())).judge(request)
}

fn judge_caught(
    judge: &mut Judge<'_>,
    request: &VerifyRequest,
) -> Result<Verification, VerifyError> {
    // States are untrusted: a case that their checks miss must not reach the caller as a panic.
    catch_unwind(AssertUnwindSafe(|| judge_request(judge, request))).unwrap_or_else(|_| {
        let message =
            "the task could not judge this; that is a fault of the task, please report the request";
        Err(VerifyError { field: None, message: message.to_owned() })
    })
}

fn judge_request(
    judge: &mut Judge<'_>,
    request: &VerifyRequest,
) -> Result<Verification, VerifyError> {
    request.check()?;

    let kinds = request.kinds.as_deref().unwrap_or(&KINDS).iter().copied().collect();
    let name = instance_name(request);
    let Instance { problem, reference } = {
        let own = judge.own();
        judge.instance(&name, || problem(request, own))?
    };

    match (&request.action, &request.answer) {
        (Some(action), None) => {
            let mut machine = machine(judge, request, problem.as_ref())?;
            if problem.is_asked() {
                judge.foresee(machine.as_mut(), action)?;
            }
            Ok(Verification::Step(Box::new(judge_step(machine.as_mut(), action, kinds))))
        }
        (None, Some(answer)) => {
            for (field, given) in
                [("state", request.state.is_some()), ("actions", request.actions.is_some())]
            {
                if given {
                    return Err(VerifyError::at(
                        field,
                        "goes with `action`; an answer is judged by itself",
                    ));
                }
            }

            if let Some(right) = problem.goal(answer) {
                return Ok(Verification::Answer(AnswerVerdict {
                    right,
                    judged_by: AnswerTest::Goal,
                }));
            }

            if problem.is_asked() {
                return Err(VerifyError::at(
                    "answer",
                    "no answer to a task of your own is judged by itself: give the lines that lead \
                     to it as `actions` and the last one as `action`; the `answer` of the judgement \
                     is then what the task's program says",
                ));
            }

            // A reference can take millions of steps: it is followed once per instance.
            let reference = match reference {
                Some(known) => known,
                None => {
                    let found = Arc::new(reference_answer(judge, problem.as_ref())?);
                    judge.remember(&name, Arc::clone(&found));
                    found
                }
            };

            let right = reference.as_ref().as_ref().is_some_and(|known| equal(known, answer));
            Ok(Verification::Answer(AnswerVerdict { right, judged_by: AnswerTest::Reference }))
        }
        (None, None) => {
            Err(VerifyError::at("action", "give `action` or `answer`: there is nothing to judge"))
        }
        (Some(_), Some(_)) => Err(VerifyError::at("answer", "give `action` or `answer`, not both")),
    }
}

/// The fields that name or contain the instance, as one text.
fn instance_name(request: &VerifyRequest) -> String {
    let VerifyRequest { task, difficulty, index, base_seed, input, .. } = request;
    serde_json::to_string(&(task, difficulty, index, base_seed, input))
        .expect("invariant: requests serialise")
}

fn problem(
    request: &VerifyRequest,
    own: Option<&OwnTasks<'_>>,
) -> Result<Arc<dyn Problem>, VerifyError> {
    let task = match tasks::find(&request.task) {
        Ok(task) => task,
        Err(unknown) => {
            let opened = own.and_then(|own| own(&request.task, request.input.as_ref()));
            return opened.unwrap_or_else(|| Err(VerifyError::at("task", unknown)));
        }
    };
    if let Some(input) = &request.input {
        let fields = [
            ("difficulty", request.difficulty.is_some()),
            ("index", request.index.is_some()),
            ("base_seed", request.base_seed.is_some()),
        ];

        if let Some((field, _)) = fields.into_iter().find(|(_, given)| *given) {
            return Err(VerifyError::at(
                field,
                "names an instance of the benchmark; leave it out beside `input`",
            ));
        }
        return task.read_input(input).map_err(|error| VerifyError::at("input", error.detail));
    }

    let missing =
        |field| VerifyError::at(field, "is missing: give `difficulty` and `index`, or `input`");
    let difficulty = request.difficulty.ok_or_else(|| missing("difficulty"))?;
    let index = request.index.ok_or_else(|| missing("index"))?;

    let id = InstanceId::new(task, difficulty, index, request.base_seed.unwrap_or(BASE_SEED));
    Ok(id.map_err(|error| VerifyError::at("index", error))?.problem())
}

/// The machine in the state in which the action is to be judged.
fn machine(
    judge: &mut Judge<'_>,
    request: &VerifyRequest,
    problem: &dyn Problem,
) -> Result<Box<dyn Machine>, VerifyError> {
    if let Some(state) = &request.state {
        if request.actions.is_some() {
            return Err(VerifyError::at("actions", "give `state` or `actions`, not both"));
        }
        return problem.machine_at(state).map_err(|error| VerifyError::at("state", error.detail));
    }

    let mut machine = problem.start();
    let Some(actions) = &request.actions else { return Ok(machine) };
    for (place, line) in actions.iter().enumerate() {
        judge.step()?;
        // `replay` carries out a line even after the end.
        let refused = if machine.ended() {
            Some("the trace has ended before it".to_owned())
        } else {
            let spec = machine.spec();
            let (said, _) = action_line(line, |line| pattern::parse(spec.actions, line).is_some());
            if problem.is_asked() {
                judge.foresee(machine.as_mut(), &said)?;
            }
            machine.replay(&said).err().map(|refusal| refusal.to_string())
        };

        if let Some(reason) = refused {
            // Lines have no limit of length; messages should.
            let start: String = line.chars().take(80).collect();
            return Err(VerifyError::at(
                &format!("actions[{place}]"),
                format!("{start:?}: {reason}"),
            ));
        }
    }
    Ok(machine)
}

fn judge_step(machine: &mut dyn Machine, action: &str, kinds: Kinds) -> StepVerdict {
    let spec = machine.spec();

    // The violations are the candidate's, and `commit` consumes it.
    let refusal = propose(machine, action).1.err();
    let found = machine.violations(kinds);
    let violations = machine.broken(found).into_iter().map(|broken| ViolationVerdict {
        name: broken.name.into_owned(),
        severity: broken.severity,
        meaning: broken.meaning.into_owned(),
    });
    let violations = violations.collect();
    machine.commit();

    let applicable = refusal.is_none();
    StepVerdict {
        applicable,
        refusal: refusal.map(|refusal| RefusalVerdict {
            kind: if refusal == Refusal::Unparsable {
                RefusalKind::Unparsable
            } else {
                RefusalKind::Illegal
            },
            reason: refusal.to_string(),
        }),
        score: f64::from(found.tenths(spec)) / 10.0,
        violations,
        state: applicable.then(|| machine.state()),
        ended: applicable && machine.ended(),
        answer: if applicable { machine.answer() } else { None },
    }
}

fn reference_answer(
    judge: &mut Judge<'_>,
    problem: &dyn Problem,
) -> Result<Option<Value>, VerifyError> {
    let mut machine = problem.start();
    for _ in 0..REFERENCE_STEPS_MAX {
        if !machine.follow_reference() {
            return Ok(machine.answer());
        }
        judge.step()?;
    }

    let message = format!(
        "its reference takes more than {REFERENCE_STEPS_MAX} steps, too many to compare an answer with"
    );
    Err(VerifyError::at("input", message))
}
