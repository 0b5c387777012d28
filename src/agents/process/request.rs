//! What a program is told: one request for each turn, the same for every role but for what that role does.

use serde::Serialize;
use serde_json::Value;

use crate::agents::Sampling;
use prime_bench::tasks::page::ActionPage;
use prime_bench::tasks::{Kind, Machine, Severity, Violations};
use prime_protocol::{Thresholds, Trajectory, Verdict};

/// What every role is told.
#[derive(Serialize)]
pub(super) struct Situation<'t> {
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
    excluded: &'t [Box<str>],
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
    situation: Situation<'t>,
    sampling: Draw,
}

#[derive(Serialize)]
struct Draw {
    temperature: f32,
    top_p: f32,
    seed: u64,
}

#[derive(Serialize)]
pub(super) struct Judge<'t> {
    id: u64,
    #[serde(flatten)]
    situation: Situation<'t>,
    #[serde(flatten)]
    step: Step<'t>,
}

#[derive(Serialize)]
struct Step<'t> {
    action: &'t str,
    applicable: bool,
    /// Why it could not be applied.
    refusal: Option<String>,
    /// The state after it; `null` where it could not be applied.
    after: Option<Value>,
    /// Whether the trace ends with it.
    ends: bool,
}

#[derive(Serialize)]
pub(super) struct Decide<'t> {
    id: u64,
    #[serde(flatten)]
    situation: Situation<'t>,
    action: &'t str,
    verdict: Found<'t>,
    retries: u32,
    retries_max: u32,
    tau_soft: f64,
    tau_hard: f64,
}

#[derive(Serialize)]
struct Found<'t> {
    score: f64,
    violations: &'t [std::borrow::Cow<'static, str>],
    feedback: Option<&'t str>,
}

/// What becomes of an input's fields that a task hides from executors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    LeftOut,
    Shown,
}

fn situation(trajectory: &Trajectory, hidden: Hidden) -> Situation<'_> {
    let machine = trajectory.machine.as_ref();
    let spec = machine.spec();
    let mut input = machine.problem().input();
    if let (Hidden::LeftOut, Some(fields)) = (hidden, input.as_object_mut()) {
        fields.retain(|name, _| !spec.hidden.contains(&name.as_str()));
    }
    Situation {
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
        excluded: &trajectory.stack.top().excluded,
    }
}

/// All constraints of the problem, in their order.
fn constraints(machine: &dyn Machine) -> Vec<Constraint> {
    let mut all = Violations::NONE;
    (0..Violations::CONSTRAINTS_MAX).for_each(|index| all.require(index, false));
    let kind_of = |name: &str| machine.spec().constraints.iter().find(|c| c.name == name).map(|c| c.kind);
    // A copy, because one that has refused a line words its constraints for that line.
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
            Step { action: line, applicable: true, refusal: None, after: Some(machine.state()), ends }
        }
        Err(refusal) => {
            Step { action: line, applicable: false, refusal: Some(refusal.to_string()), after: None, ends: false }
        }
    }
}

fn line(request: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(request).expect("invariant: requests serialise");
    line.push(b'\n');
    line
}

pub(super) fn propose(id: u64, trajectory: &Trajectory, sampling: Sampling) -> Vec<u8> {
    let Sampling { temperature, top_p, seed } = sampling;
    let sampling = Draw { temperature, top_p, seed };
    line(&Propose { id, situation: situation(trajectory, Hidden::LeftOut), sampling })
}

pub(super) fn judge(id: u64, trajectory: &Trajectory, action: &str) -> Vec<u8> {
    line(&Judge { id, situation: situation(trajectory, Hidden::Shown), step: step(trajectory, action) })
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
        situation: situation(trajectory, Hidden::LeftOut),
        action,
        verdict: Found {
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
