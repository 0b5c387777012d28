//! The requests to programs: one for each turn, with a common part and the role's own.

use serde::Serialize;
use serde_json::Value;

use crate::Sampling;
use prime_bench::tasks::page::ActionPage;
use prime_bench::tasks::{Kind, Machine, Severity, Violations};
use prime_protocol::{Rejection, Thresholds, Trajectory, Verdict};

/// The common part of every request.
#[derive(Serialize)]
pub(super) struct TurnContext<'t> {
    task: &'static str,
    title: &'static str,
    /// Empty for a client's problem.
    algorithm: &'static str,
    actions: &'static [ActionPage],
    constraints: Vec<Constraint>,
    input: Value,
    state: Value,
    view: String,
    depth: usize,
    feedback: Option<&'t str>,
    excluded: Vec<&'t str>,
    rejections: &'t [Rejection],
    abandoned: Vec<&'t str>,
}

#[derive(Serialize)]
struct Constraint {
    name: String,
    /// `null` for a constraint of a client's problem.
    kind: Option<Kind>,
    severity: Severity,
    meaning: String,
}

#[derive(Serialize)]
pub(super) struct Propose<'t> {
    id: u64,
    #[serde(flatten)]
    context: TurnContext<'t>,
    sampling: SamplingFields,
}

#[derive(Serialize)]
struct SamplingFields {
    temperature: f32,
    top_p: f32,
    seed: u64,
}

#[derive(Serialize)]
pub(super) struct Judge<'t> {
    id: u64,
    #[serde(flatten)]
    context: TurnContext<'t>,
    #[serde(flatten)]
    step: Step<'t>,
}

#[derive(Serialize)]
struct Step<'t> {
    action: &'t str,
    applicable: bool,
    /// Why it is not applicable.
    refusal: Option<String>,
    /// The state after it; `null` if not applicable.
    after: Option<Value>,
    /// True if the trace ends with it.
    ends: bool,
}

#[derive(Serialize)]
pub(super) struct Decide<'t> {
    id: u64,
    #[serde(flatten)]
    context: TurnContext<'t>,
    action: &'t str,
    verdict: VerdictFields<'t>,
    retries: u32,
    retries_max: u32,
    tau_soft: f64,
    tau_hard: f64,
}

#[derive(Serialize)]
struct VerdictFields<'t> {
    score: f64,
    violations: &'t [std::borrow::Cow<'static, str>],
    feedback: Option<&'t str>,
}

/// Whether to include the input fields that a task hides from executors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HiddenFields {
    Omit,
    Include,
}

fn turn_context(trajectory: &Trajectory, hidden: HiddenFields) -> TurnContext<'_> {
    let (machine, top) = (trajectory.machine.as_ref(), trajectory.stack.top());
    let spec = machine.spec();

    let mut input = machine.problem().input();
    if let (HiddenFields::Omit, Some(fields)) = (hidden, input.as_object_mut()) {
        fields.retain(|name, _| !spec.hidden.contains(&name.as_str()));
    }

    TurnContext {
        task: spec.slug,
        title: spec.title,
        algorithm: spec.page.algorithm,
        actions: spec.page.actions,
        constraints: constraints(machine),
        input,
        state: machine.state(),
        view: prime_lessons::view(machine),
        depth: trajectory.stack.depth(),
        feedback: trajectory.feedback.as_deref(),
        excluded: top.excluded.iter().map(|rejection| &*rejection.line).collect(),
        rejections: &top.excluded,
        abandoned: top.abandoned.iter().map(|step| &*step.line).collect(),
    }
}

/// All constraints of the problem, in order.
fn constraints(machine: &dyn Machine) -> Vec<Constraint> {
    let mut all = Violations::NONE;
    (0..Violations::CONSTRAINTS_MAX).for_each(|index| all.require(index, false));

    // Its violations are those of a step, so that without a step it names none.
    let problem = machine.problem();
    if problem.is_asked() {
        let rules = problem.rules().into_iter().map(|rule| Constraint {
            name: rule.name.into_owned(),
            kind: rule.kind,
            severity: rule.severity,
            meaning: rule.meaning.into_owned(),
        });
        return rules.collect();
    }

    let kind_of =
        |name: &str| machine.spec().constraints.iter().find(|c| c.name == name).map(|c| c.kind);

    // A fork, because a machine that has rejected a line words its constraints for that line.
    let named = machine.fork().broken(all).into_iter().map(|broken| Constraint {
        kind: kind_of(&broken.name),
        name: broken.name.into_owned(),
        severity: broken.severity,
        meaning: broken.meaning.into_owned(),
    });
    named.collect()
}

fn step<'t>(trajectory: &Trajectory, line: &'t str) -> Step<'t> {
    let mut machine = trajectory.machine.fork();
    match machine.propose(line) {
        Ok(()) => {
            let ends = machine.candidate_ends();
            machine.commit();
            Step {
                action: line,
                applicable: true,
                refusal: None,
                after: Some(machine.state()),
                ends,
            }
        }
        Err(refusal) => Step {
            action: line,
            applicable: false,
            refusal: Some(refusal.to_string()),
            after: None,
            ends: false,
        },
    }
}

fn line(request: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(request).expect("invariant: requests serialise");
    line.push(b'\n');
    line
}

pub(super) fn propose(id: u64, trajectory: &Trajectory, sampling: Sampling) -> Vec<u8> {
    let Sampling { temperature, top_p, seed } = sampling;
    let sampling = SamplingFields { temperature, top_p, seed };
    line(&Propose { id, context: turn_context(trajectory, HiddenFields::Omit), sampling })
}

pub(super) fn judge(id: u64, trajectory: &Trajectory, action: &str) -> Vec<u8> {
    line(&Judge {
        id,
        context: turn_context(trajectory, HiddenFields::Include),
        step: step(trajectory, action),
    })
}

pub(super) fn decide(
    id: u64,
    trajectory: &Trajectory,
    action: &str,
    verdict: &Verdict,
    thresholds: &Thresholds,
) -> Vec<u8> {
    line(&Decide {
        id,
        context: turn_context(trajectory, HiddenFields::Omit),
        action,
        verdict: VerdictFields {
            score: verdict.score.value(),
            violations: &verdict.violations,
            feedback: verdict.feedback.as_deref(),
        },
        retries: trajectory.stack.top().retries,
        retries_max: thresholds.retries_max,
        tau_soft: thresholds.soft.value(),
        tau_hard: thresholds.hard.value(),
    })
}
