//! A step in words: what was decided and why, and what happened next. The words are for readers who
//! know neither the paper nor the thresholds.

use serde::Serialize;
use utoipa::ToSchema;

use super::landmarks::TrajectoryEnd;
use super::step_list::cut;
use crate::runs::spec::RunSpec;
use prime_agent_set::{RecordedAgent, RecordedAgents};
use prime_protocol::{Decision, Score, Thresholds};
use prime_report::StepLine;
use prime_settings::{CoordinatorImplementation, Implementation as _};

/// Maximum bytes of a verifier's feedback in an explanation; the step has all of it.
const FEEDBACK_BYTES_MAX: usize = 1_024;

/// A constraint that the step violated.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConstraintMeaning {
    /// Name of the constraint.
    pub name: String,
    /// `format`, `invariant`, `transition` or `terminal`; null for one in words.
    #[schema(required)]
    pub kind: Option<String>,
    /// The paper's weight: 1.0, 0.6 or 0.2.
    pub weight: f64,
    /// What the constraint requires, in words.
    pub meaning: String,
}

/// What happened after a step.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WhatFollowed {
    /// What happened, in words.
    pub text: String,
    /// The number of the event of the trajectory's next step; null if there is none.
    #[schema(required)]
    pub seq: Option<u64>,
    /// The position of that step.
    #[schema(required)]
    pub position: Option<u64>,
}

fn plural(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

fn named(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Says what the verifier found.
fn finding(step: &StepLine<'_>, broken: &[ConstraintMeaning]) -> String {
    let score = step.score;
    let names = named(&step.violations);
    // Constraints that this version does not know have no weight here, and the sum would be wrong.
    let weights: f64 = broken.iter().map(|constraint| constraint.weight).sum();
    let is_sum = broken.len() == step.violations.len() && Score::from_value(weights) == Some(score);

    match (step.violations.len(), step.feedback.as_deref()) {
        (0, Some(feedback)) => {
            format!(
                "{} (a score of {score})",
                cut(feedback, FEEDBACK_BYTES_MAX).0.trim_end_matches('.')
            )
        }
        (0, None) => format!("the verifier gave it a score of {score} without naming a constraint"),
        (1, _) if is_sum => {
            format!("this line breaks 1 constraint, {names}, which is a score of {score}")
        }
        (count, _) if is_sum => {
            format!(
                "this line breaks {count} constraints, {names}, whose weights add up to a score of {score}"
            )
        }
        (count, _) => {
            let constraints = plural(count, "constraint", "constraints");
            format!(
                "this line breaks {constraints}, {names}, and the verifier gave it a score of {score}"
            )
        }
    }
}

/// The thresholds by which the step was decided; `None` if another coordinator decided, or none.
fn thresholds(spec: &RunSpec) -> Option<Thresholds> {
    let recorded: &RecordedAgents = spec.recorded.as_ref()?;
    let is_threshold = |agent: &RecordedAgent| {
        CoordinatorImplementation::find(&agent.implementation)
            == Some(CoordinatorImplementation::Threshold)
    };
    let coordinator = recorded.coordinator.agents.get(&recorded.coordinator.name);
    if spec.plan.strategy.is_single_pass() || !coordinator.is_some_and(is_threshold) {
        return None;
    }
    let limits = recorded.thresholds;
    Some(Thresholds {
        soft: Score::from_value(limits.tau_soft)?,
        hard: Score::from_value(limits.tau_hard)?,
        retries_max: limits.retries_max,
    })
}

/// Says what was decided and why. `retries` counts the earlier ones at the same state.
pub(super) fn why(
    spec: &RunSpec,
    step: &StepLine<'_>,
    broken: &[ConstraintMeaning],
    retries: u32,
) -> String {
    if step.exhausted {
        return "Given up in this state: every line that the executor could still write here had been rejected before."
            .to_owned();
    }

    let verifier = &spec.agents.verifier;
    if step.decision == Decision::Proceed && step.score == Score::ZERO {
        return match step.violations.is_empty() {
            true if step.applicable => {
                format!("Accepted: the verifier `{verifier}` found nothing wrong with this line.")
            }
            true => "Passed over: the line cannot be carried out in this state, but the verifier objected to nothing."
                .to_owned(),
            false => format!("Accepted, although {}.", finding(step, broken)),
        };
    }

    let found = finding(step, broken);
    // The thresholds explain a decision only if they lead to it.
    let limits =
        thresholds(spec).filter(|limits| limits.decide(step.score, retries) == step.decision);
    let coordinator = &spec.agents.coordinator;
    let is_outright = limits.is_some_and(|limits| step.score > limits.hard);

    match (step.decision, limits) {
        (Decision::Proceed, Some(limits)) => format!(
            "Accepted, although {found}: after {}, a score of at most {} is let through.",
            plural(limits.retries_max as usize, "retry", "retries"),
            limits.soft
        ),
        (Decision::Proceed, None) => format!("Accepted by `{coordinator}`, although {found}."),
        (Decision::Retry, Some(limits)) => format!(
            "Sent back: {found}. Up to {}, the executor may try again in the same state; this is retry {} of {}.",
            limits.hard,
            retries + 1,
            limits.retries_max
        ),
        (Decision::Retry, None) => format!("Sent back by `{coordinator}`: {found}."),
        (Decision::Backtrack, _) if step.violations.is_empty() && step.feedback.is_some() => {
            format!("Rejected: {found}.")
        }
        (Decision::Backtrack, Some(limits)) if is_outright => {
            format!("Rejected: {found}. Anything above {} is rejected outright.", limits.hard)
        }
        (Decision::Backtrack, Some(limits)) => format!(
            "Rejected: {found}. The {} in this state are used up, and only a score of at most {} is let through then.",
            plural(limits.retries_max as usize, "retry", "retries"),
            limits.soft
        ),
        (Decision::Backtrack, None) => format!("Rejected by `{coordinator}`: {found}."),
    }
}

/// The next step of a trajectory.
pub(super) struct NextStep {
    pub seq: u64,
    pub position: u64,
    pub depth: u32,
    pub action: String,
    pub decision: Decision,
}

fn ended(end: &TrajectoryEnd) -> String {
    let reason = match end.end.as_str() {
        "answered" => "it had its answer",
        "exhausted" => "everything had been tried, and there is no answer",
        "stuck" => "too many lines had been proposed without progress",
        "pops_spent" => "too many committed steps had been undone",
        "steps_spent" => "it was as long as a solution can be, and had no answer",
        "failed" => {
            return format!(
                "an agent failed: {}",
                end.failure.as_deref().unwrap_or("no reason is recorded")
            );
        }
        other => return other.replace('_', " "),
    };
    reason.to_owned()
}

/// Says what the locator found, as the start of a text about what followed.
fn located(spec: &RunSpec, step: &StepLine<'_>) -> Option<String> {
    let located = step.located.as_ref()?;
    let name = spec.agents.locator.as_deref().unwrap_or("locator");
    let judged = plural(usize::try_from(located.judged).ok()?, "step", "steps");
    let start =
        format!("The steps before were all found clean, so the locator `{name}` judged {judged}");
    let Some(fault) = &located.fault else {
        return Some(format!("{start} and found no fault."));
    };

    let reason = fault.reason.as_deref().map_or_else(String::new, |reason| {
        format!(" ({})", cut(reason, FEEDBACK_BYTES_MAX).0.trim_end_matches('.'))
    });
    let action = cut(&fault.action, FEEDBACK_BYTES_MAX).0;
    Some(format!("{start} and found the fault at depth {}: `{action}`{reason}.", located.clean))
}

/// Says what happened after a step that popped `pops` states.
pub(super) fn what_followed(
    (spec, step): (&RunSpec, &StepLine<'_>),
    pops: u32,
    next: Option<NextStep>,
    end: Option<&TrajectoryEnd>,
    is_run_over: bool,
) -> WhatFollowed {
    let decision = step.decision;
    let located_text = located(spec, step);
    let has_fault = step.located.as_ref().is_some_and(|located| located.fault.is_some());
    let with_located = |text: String| match &located_text {
        Some(located) => format!("{located} {text}"),
        None => text,
    };

    let Some(next) = next else {
        let text = match end {
            Some(end) => format!("The trajectory ended: {}.", ended(end)),
            None if is_run_over => "The run ended before another line was judged.".to_owned(),
            None => "Nothing yet: this is the trajectory's last step so far.".to_owned(),
        };
        return WhatFollowed { text: with_located(text), seq: None, position: None };
    };

    let start = match decision {
        _ if has_fault => format!("The search went back to depth {}.", next.depth),
        _ if pops > 0 => format!(
            "No line was left to try in this state, so the last {} undone, back to depth {}.",
            if pops == 1 {
                "committed step was".to_owned()
            } else {
                format!("{pops} committed steps were")
            },
            next.depth
        ),
        Decision::Proceed => "The state after it became the current one.".to_owned(),
        Decision::Retry => {
            "The executor was told what is wrong and asked again in the same state.".to_owned()
        }
        Decision::Backtrack => {
            "The line was dropped and ruled out in this state, which stayed as it was.".to_owned()
        }
    };

    let what =
        if next.action.is_empty() { "no line".to_owned() } else { format!("`{}`", next.action) };
    let fate = match (next.decision, decision) {
        (Decision::Proceed, _) => "accepted",
        (Decision::Retry, _) => "sent back",
        (Decision::Backtrack, Decision::Backtrack) => "rejected too",
        (Decision::Backtrack, _) => "rejected",
    };

    let text = with_located(format!("{start} The next proposal, {what}, was {fate}."));
    WhatFollowed { text, seq: Some(next.seq), position: Some(next.position) }
}
