//! Template variables: which each role has, and how a turn determines their values.

use std::collections::BTreeMap;

use dashmap::DashMap;
use minijinja::{Value as Variable, context};

use super::examples;
use super::feedback::{CUT_OFF, explained};
use super::shown::{Shown, TextOf as _};
use prime_bench::prompts;
use prime_bench::tasks::{Machine, Problem, Rule};
use prime_protocol::{Rejection, Role, Thresholds, Trajectory, Verdict};
use prime_settings::FeedbackName;

/// How many of the committed steps a prompt includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// No steps: the state is enough.
    #[default]
    None,
    /// The last ones, up to this number.
    Window(usize),
    /// All of them.
    Full,
}

/// The data of a turn from which template variables are computed. Fields that a role does not have
/// stay at their defaults.
pub struct PromptContext<'a> {
    /// The trajectory whose turn it is.
    pub trajectory: &'a Trajectory,
    /// Which of the committed steps are included.
    pub history: History,
    /// User-defined variables, as `variables.NAME`.
    pub variables: &'a BTreeMap<String, String>,
    /// True if a grammar constrains the answer.
    pub is_held: bool,
    /// True if something may come before the action.
    pub may_reason: bool,
    /// What is shown, and how.
    pub shown: Shown,
    /// The proposed line, for verifiers and coordinators.
    pub action: &'a str,
    /// The constraints to check, for verifiers.
    pub rules: &'a [Rule],
    /// The verdict on the proposed line, for coordinators.
    pub verdict: Option<&'a Verdict>,
    /// The run's thresholds, for coordinators.
    pub thresholds: Option<Thresholds>,
}

impl<'a> PromptContext<'a> {
    /// A turn with these fields, in which the others have their defaults.
    pub fn new(
        trajectory: &'a Trajectory,
        history: History,
        variables: &'a BTreeMap<String, String>,
    ) -> Self {
        Self {
            trajectory,
            history,
            variables,
            is_held: false,
            may_reason: true,
            shown: Shown::default(),
            action: "",
            rules: &[],
            verdict: None,
            thresholds: None,
        }
    }
}

/// Variables of every role.
const COMMON: [&str; 12] = [
    "task",
    "client",
    "input",
    "state",
    "view",
    "depth",
    "steps",
    "step_offset",
    "rejected",
    "rejections",
    "abandoned",
    "variables",
];

/// The variables of a role's templates.
pub fn names(role: Role) -> Vec<&'static str> {
    let own: &[&str] = match role {
        Role::Executor => &[
            "feedback",
            "is_held",
            "may_reason",
            "examples",
            "input_text",
            "state_text",
            "lists_constraints",
        ],
        Role::Verifier => &["action", "after", "ends", "constraints"],
        Role::Coordinator => &[
            "action",
            "score",
            "violations",
            "feedback",
            "needs_review",
            "tau_soft",
            "tau_hard",
            "retries",
            "retries_max",
        ],
    };
    COMMON.iter().chain(own).copied().collect()
}

/// Returns whether this is a client's problem, which has no page.
fn is_client(problem: &dyn Problem) -> bool {
    !problem.has_reference() && !problem.is_asked()
}

/// The variable `task` for a client's problem: the fields of a benchmark task, most of them empty.
fn client_view(problem: &dyn Problem) -> Variable {
    let spec = problem.spec();
    let nothing: [(); 0] = [];
    context! {
        slug => spec.slug,
        title => spec.title,
        category => spec.category,
        problem => problem.statement(),
        algorithm => problem.statement(),
        step => "",
        actions => nothing,
        constraints => problem.rules(),
        input => nothing,
        answer => nothing,
        state => nothing,
        example => context! {
            input => "{}", answer => "{}", steps => 0, first => nothing, last => nothing
        },
        example_input => "{}",
    }
}

/// The number of committed steps before those that are shown, and the lines of these, oldest first.
fn steps(context: &PromptContext<'_>) -> (usize, Vec<String>) {
    let stack = &context.trajectory.stack;
    let shown = match context.history {
        History::None => 0,
        History::Window(last) => last.min(stack.depth()),
        History::Full => stack.depth(),
    };
    let mut steps: Vec<_> = stack.lines().rev().take(shown).map(str::to_owned).collect();

    steps.reverse();
    (stack.depth() - shown, steps)
}

/// The state after the proposed line, which is `None` if the line is not applicable, and whether
/// the trace ends there.
fn after(context: &PromptContext<'_>) -> (Option<String>, bool) {
    let mut after = context.trajectory.machine.fork();
    match after.replay(context.action) {
        Ok(()) => (Some(after.state().to_string()), after.ended()),
        Err(_) => (None, false),
    }
}

/// The input as a role may see it.
fn input(machine: &dyn Machine, role: Role) -> serde_json::Value {
    let data = machine.problem().data();
    // Only verifiers see the fields that a task hides.
    if role == Role::Verifier { data } else { prompts::visible(machine.spec(), data) }
}

/// What an executor is told about its last line.
fn last_feedback(context: &PromptContext<'_>) -> Option<String> {
    let trajectory = context.trajectory;
    let feedback = trajectory.feedback.as_deref()?;
    match context.shown.feedback {
        FeedbackName::None => None,
        FeedbackName::Verdict => Some(feedback.to_owned()),
        FeedbackName::Explained => {
            // The line is among the rejected ones, and its reason beside it.
            let listed =
                trajectory.stack.top().excluded.last().and_then(|last| last.reason.as_deref());
            let is_listed = listed.is_some_and(|reason| {
                feedback.starts_with(reason.strip_suffix('…').unwrap_or(reason))
            });
            let said = if feedback.starts_with(CUT_OFF) {
                "it was too long and was cut off; write only the action"
            } else {
                feedback
            };
            (!is_listed).then(|| said.to_owned())
        }
    }
}

/// Values that were computed for earlier prompts.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    /// The variable `task` of each benchmark task.
    pub tasks: &'k DashMap<&'static str, Variable>,
    /// The variable `examples` of each benchmark task.
    pub examples: &'k DashMap<(&'static str, Shown), Variable>,
}

/// The value of a variable; `name` is one of [`names`].
pub(super) fn value(
    name: &str,
    role: Role,
    context: &PromptContext<'_>,
    known: Known<'_>,
) -> Variable {
    let trajectory = context.trajectory;
    let machine = trajectory.machine.as_ref();

    let verdict = context.verdict;

    match name {
        "task" => {
            let problem = machine.problem();
            if is_client(problem.as_ref()) {
                return client_view(problem.as_ref());
            }
            let spec = machine.spec();
            let view = || Variable::from_serialize(prompts::view(spec));
            // What a program declares may change with a reload.
            if problem.is_asked() {
                return view();
            }
            known.tasks.entry(spec.slug).or_insert_with(view).clone()
        }
        "client" => is_client(machine.problem().as_ref()).into(),
        "input" => input(machine, role).to_string().into(),
        "state" | "state_text" if machine.problem().is_asked() => machine.view().into(),
        "input_text" => context.shown.view.text(&input(machine, role)).into(),
        "state_text" => context.shown.view.text(&machine.state()).into(),
        "examples" => {
            // An instance that is its task's example is shown none; the others share them.
            if machine.problem().is_asked() || examples::is_own(machine) {
                return examples::none();
            }
            let key = (machine.spec().slug, context.shown);
            let worked = || examples::of(machine, context.shown);
            known.examples.entry(key).or_insert_with(worked).clone()
        }
        "state" => machine.state().to_string().into(),
        "view" => prime_lessons::view(machine).into(),
        "depth" => trajectory.stack.depth().into(),
        "steps" => steps(context).1.into(),
        "step_offset" => steps(context).0.into(),
        "rejected" => trajectory
            .stack
            .top()
            .excluded
            .iter()
            .map(|rejection| rejection.line.to_string())
            .collect(),
        "rejections" => {
            let shown = |Rejection { line, reason }: &Rejection| {
                let reason = reason.as_deref();
                match context.shown.feedback {
                    FeedbackName::None => context! { line, reason => None::<&str> },
                    FeedbackName::Verdict => context! { line, reason },
                    FeedbackName::Explained => {
                        context! { line, reason => explained(machine, line, reason) }
                    }
                }
            };
            trajectory.stack.top().excluded.iter().map(shown).collect()
        }
        "abandoned" => {
            trajectory.stack.top().abandoned.iter().map(|step| step.line.to_string()).collect()
        }
        "variables" => Variable::from_serialize(context.variables),
        "is_held" => context.is_held.into(),
        "may_reason" => context.may_reason.into(),
        "lists_constraints" => context.shown.constraints.into(),
        "action" => context.action.into(),
        "after" => after(context).0.into(),
        "ends" => after(context).1.into(),
        "constraints" => Variable::from_serialize(context.rules),
        "feedback" => match verdict {
            Some(verdict) => verdict.feedback.clone().into(),
            None => last_feedback(context).into(),
        },
        "score" => verdict.map(|verdict| verdict.score.value()).into(),
        "violations" => verdict
            .map(|verdict| verdict.violations.iter().map(ToString::to_string).collect::<Vec<_>>())
            .into(),
        "needs_review" => verdict.is_some_and(|verdict| verdict.needs_review).into(),
        "tau_soft" => context.thresholds.map(|thresholds| thresholds.soft.value()).into(),
        "tau_hard" => context.thresholds.map(|thresholds| thresholds.hard.value()).into(),
        "retries" => trajectory.stack.top().retries.into(),
        "retries_max" => context.thresholds.map(|thresholds| thresholds.retries_max).into(),
        _ => Variable::UNDEFINED,
    }
}
