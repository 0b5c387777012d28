//! Why a request cannot become a run: the invalid field, and the reason.

use std::borrow::Cow;

use crate::app::NotLearnt;
use crate::runs::{BadLabels, RunError};
use prime_agent_set::registry::RegistryError;
use prime_agent_set::task_program::OpenError;
use prime_bench::tasks::instance::NoSuchIndex;
use prime_bench::tasks::{BadInput, UnknownTask};
use prime_problems::ProblemError;
use prime_settings::SettingsError;

/// Why a request cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The value of a field is invalid.
    #[error("field `{field}`: {reason}")]
    Field {
        /// The dotted path of the field in the request.
        field: Cow<'static, str>,
        /// What is wrong with its value, without its name.
        reason: Box<Reason>,
    },
    /// The definition of a custom problem is invalid. It names the part itself, with its path.
    #[error(transparent)]
    Problem(ProblemError),
    /// There is no problem to solve.
    #[error(
        "body: missing field `task`: give a task's slug, as GET /v1/tasks lists them, or a `problem`"
    )]
    NoTask,
    /// The request is well-formed, but the settings with its choices are not.
    #[error(transparent)]
    Settings(Box<SettingsError>),
    /// The run to fork cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl RequestError {
    /// The error that the value of this field is invalid.
    pub(super) fn field(field: impl Into<Cow<'static, str>>, reason: impl Into<Reason>) -> Self {
        Self::Field { field: field.into(), reason: Box::new(reason.into()) }
    }

    /// The same error about another field, from which the named one was derived.
    #[must_use]
    pub fn moved_to(self, field: &'static str) -> Self {
        match self {
            Self::Field { reason, .. } => Self::Field { field: Cow::Borrowed(field), reason },
            other => other,
        }
    }
}

/// What is wrong with the value of a field.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The configuration has no such preset.
    #[error("there is no preset {name:?} (section `presets`); {}", known_presets(known))]
    UnknownPreset {
        /// The name, as requested.
        name: String,
        /// Names of the configured presets.
        known: Vec<String>,
    },
    /// The value is 0 or above the configured limit; a limit of 0 means none.
    #[error("is {given}; give {}", range_up_to(*limit))]
    OverLimit {
        /// The requested value.
        given: u64,
        /// The configured limit; 0 for none.
        limit: u64,
    },
    /// The value is outside of the range that a configuration may have.
    #[error("is {found}, but must be {expected}")]
    OutOfRange {
        /// The requested value.
        found: String,
        /// The range, in words.
        expected: String,
    },
    /// The configuration does not let requests choose this agent.
    #[error("{agent:?} is not allowed here; allowed ({option}): {}", names_or_none(allowed))]
    AgentNotAllowed {
        /// The agent, as requested.
        agent: String,
        /// The key of the configuration with the allowed names.
        option: &'static str,
        /// Names of the agents that requests may choose.
        allowed: Vec<String>,
    },
    /// The value is not a time.
    #[error("is {found:?}, but must be a time as in RFC 3339, such as \"2026-02-03T04:05:06Z\"")]
    NotATime {
        /// The requested value.
        found: String,
    },
    /// The run would have to end before it may begin.
    #[error("is {not_before}, but `deadline` is {deadline}: the run could never begin")]
    AfterDeadline {
        /// When it may begin.
        not_before: String,
        /// When it has to end.
        deadline: String,
    },
    /// The daemon's own rule of approvals applies to all runs.
    #[error(
        "this daemon holds steps for approval by its own rule, {rule:?} (run.approve), which requests \
         cannot change: leave it out"
    )]
    ApprovalIsFixed {
        /// The configured rule.
        rule: String,
    },
    /// The rule of approvals cannot be read.
    #[error("{reason}")]
    BadApproval {
        /// Why, and what to do.
        reason: String,
    },
    /// The labels are too many, or one of them is not allowed.
    #[error(transparent)]
    BadLabels(#[from] BadLabels),
    /// The field describes a benchmark instance, and the request has a custom problem.
    #[error("does not go with `problem`: give one of the two")]
    ExcludedByProblem,
    /// The request has both an input and the place of a benchmark instance.
    #[error("give either an input, or difficulty, index and base_seed")]
    InputAndInstance,
    /// No task has this slug.
    #[error(transparent)]
    UnknownTask(#[from] UnknownTask),
    /// The input is not one of the task.
    #[error(transparent)]
    BadInput(#[from] BadInput),
    /// The task's algorithm finds no solution of the input.
    #[error(
        "it has no solution: the algorithm of {task} searches all of it and finds none; give \
         another input"
    )]
    NoSolution {
        /// Slug of the task.
        task: &'static str,
    },
    /// The task is a program, and the request has no input for it.
    #[error(
        "the task `{task}` is a program, which has no instances of its own: give an `input` alone"
    )]
    NeedsInput {
        /// Name of the task.
        task: String,
    },
    /// The program of a task refuses the input, or cannot be asked.
    #[error(transparent)]
    Program(OpenError),
    /// The task has no instance with this index.
    #[error(transparent)]
    NoSuchIndex(#[from] NoSuchIndex),
    /// An agent does not exist, or cannot be built.
    #[error(transparent)]
    Agents(#[from] RegistryError),
    /// The executor does not know the task of a new run, which may `force` a try.
    #[error("{0}; to try anyway, set `force`")]
    NotLearnt(NotLearnt),
    /// The executor chosen for a fork does not know its task.
    #[error(transparent)]
    ChosenHasNotLearnt(NotLearnt),
    /// The executor follows a reference algorithm, which a custom problem lacks.
    #[error(
        "the executor `{executor}` follows a task's algorithm, and a custom problem has none: configure a model, or \
         choose another executor (`agents.executor`)"
    )]
    NoAlgorithm {
        /// Name of the executor.
        executor: String,
    },
    /// The executor knows only the benchmark's tasks.
    #[error(
        "the executor `{executor}` is a model for the tasks of the benchmark (`agents.executor.prompt` is `compact`) and cannot \
         read it: configure a model that follows instructions, with the prompt `step`, or choose another executor \
         (`agents.executor`)"
    )]
    ReadsNoProse {
        /// Name of the executor.
        executor: String,
    },
    /// The executor cannot write lines of this task, which is a program.
    #[error(
        "the executor `{executor}` cannot propose lines of the task `{task}`: {why}; configure a \
         model that follows instructions, with the prompt `step`, a program, or `uniform` where \
         the task lists `choices` (`agents.executor.implementation`)"
    )]
    CannotPropose {
        /// Name of the executor.
        executor: String,
        /// Name of the task.
        task: &'static str,
        /// Why it cannot, as a clause.
        why: &'static str,
    },
    /// The verifier follows a reference algorithm, which the problem lacks.
    #[error(
        "the verifier `{verifier}` follows a task's algorithm, and this has none: choose `rules`, \
         which judges by the problem's own checks, a language model, or a program \
         (`agents.verifier.implementation`)"
    )]
    JudgesByAlgorithm {
        /// Name of the verifier.
        verifier: String,
    },
    /// The problem has a constraint in natural language that the verifier does not read.
    #[error(
        "the constraint {constraint:?} is in prose, which the verifier `{verifier}` cannot read: write it as a `check`, or choose a \
         verifier that is a language model (`agents.verifier`)"
    )]
    UnreadableConstraint {
        /// Name of the constraint.
        constraint: String,
        /// Name of the verifier.
        verifier: String,
    },
}

fn known_presets(known: &[String]) -> String {
    if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("known: {}", known.join(", "))
    }
}

fn range_up_to(limit: u64) -> String {
    if limit > 0 { format!("1 to {limit}, the daemon's own limit") } else { "1 or more".to_owned() }
}

fn names_or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_field_and_may_be_about_another() {
        let error = RequestError::field("budget.steps", Reason::OverLimit { given: 9, limit: 5 });
        assert_eq!(
            error.to_string(),
            "field `budget.steps`: is 9; give 1 to 5, the daemon's own limit"
        );

        let moved = error.moved_to("steps");
        assert_eq!(moved.to_string(), "field `steps`: is 9; give 1 to 5, the daemon's own limit");

        let whole = RequestError::NoTask.moved_to("task");
        assert!(matches!(whole, RequestError::NoTask), "it is about no field: {whole}");
    }

    #[test]
    fn empty_lists_are_said_in_words() {
        let preset = Reason::UnknownPreset { name: "x".to_owned(), known: Vec::new() };
        assert_eq!(
            preset.to_string(),
            "there is no preset \"x\" (section `presets`); there are none"
        );

        let option = "server.allow_executors";
        let agent = Reason::AgentNotAllowed { agent: "y".to_owned(), option, allowed: Vec::new() };
        assert_eq!(
            agent.to_string(),
            "\"y\" is not allowed here; allowed (server.allow_executors): none"
        );
    }
}
