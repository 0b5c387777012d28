//! A step with everything that it was judged by: the states before and after it, the stack below
//! it, and what was decided, in words.
//!
//! A state is computed from the last known one that nothing popped since, by the lines committed on
//! top of it. States that were passed are kept as marks, so that the next step needs few lines.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::StepIndexes;
use super::explanation::{ConstraintMeaning, NextStep, WhatFollowed, what_followed, why};
use super::run_index::{JudgedBy, RunIndex};
use super::step::Finding;
use super::step_list::{cut, no_such_trajectory, read_events, read_step};
use super::trajectory_index::{Mark, TrajectoryIndex};
use crate::runs::error::RunError;
use crate::runs::spec::RunSpec;
use prime_agent_set::task_program::TaskPrograms;
use prime_bench::tasks::{Machine, Problem};
use prime_journal::{Journal, JournalError};
use prime_protocol::TurnId;
use prime_report::Judge;

/// Committed lines between two marks.
const MARK_EVERY: usize = 1_024;
/// Largest state that becomes a mark, in bytes of JSON.
const MARK_BYTES_MAX: usize = 64 << 10;
/// Frames of the stack in an answer.
const FRAMES_MAX: usize = 64;
/// Longest line in the stack, in bytes.
const LINE_BYTES_MAX: usize = 256;

/// A committed step below the one asked for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StackFrame {
    /// The number of its event.
    pub seq: u64,
    /// Number of committed steps below it.
    pub depth: u64,
    /// The line, cut to 256 bytes.
    pub action: String,
}

/// A step in full.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepDetail {
    /// The id of the run.
    pub run: String,
    /// The number of its event.
    pub seq: u64,
    /// Its position in its trajectory, from 0.
    pub position: u64,
    /// Steps of its trajectory, as far as they are indexed.
    pub total: u64,
    /// What was decided and why, in words.
    pub explanation: String,
    /// What happened next.
    pub then: WhatFollowed,
    /// The event as it was recorded, a `StepEvent`.
    #[schema(value_type = Object)]
    pub step: Value,
    /// The constraints that it violated.
    pub broken: Vec<ConstraintMeaning>,
    /// The state in which it was proposed; null where it cannot be computed from the trajectory
    /// alone, as under a strategy that votes on steps.
    #[schema(value_type = Value)]
    pub before: Option<Value>,
    /// The state that its line leads to, whether or not it was committed; null if it cannot be
    /// applied.
    #[schema(value_type = Value)]
    pub after: Option<Value>,
    /// The state before as the executor's prompts show it; null if there is none.
    #[schema(required)]
    pub view: Option<String>,
    /// The committed steps below it, at most the last 64, oldest first.
    pub stack: Vec<StackFrame>,
    /// Run time of the trajectory's step before it, in milliseconds; 0 for the first.
    pub previous_elapsed_ms: u64,
    /// Number of states that its rejection popped.
    pub pops: u32,
    /// The judge of the step; null if the record does not say it.
    #[schema(required)]
    pub judge: Option<Judge>,
    /// What the verdict rests on: the `kinds` that were looked at, those that were `evaluated`, and
    /// the `methods`; null in earlier records, which did not say it.
    #[schema(value_type = Value)]
    pub basis: Option<Value>,
}

/// The positions of the committed steps on the stack at step `at`, lowest first: those above depth
/// `above`, from position `from` on, at most the `most` uppermost.
fn frames(of: &TrajectoryIndex, at: usize, above: u32, from: usize, most: usize) -> Vec<usize> {
    let mut missing = of.steps[at].depth();
    let mut found = Vec::new();
    for position in (from..at).rev() {
        if missing <= above || found.len() == most {
            break;
        }
        let step = of.steps[position];
        if step.is_committed() && step.depth() + 1 == missing {
            found.push(position);
            missing -= 1;
        }
    }
    found.reverse();
    found
}

/// The last mark at or before a step whose state was not popped since.
fn mark_before(of: &TrajectoryIndex, at: usize) -> Option<&Mark> {
    let end = of.marks.partition_point(|mark| mark.position <= at);
    // No step between a mark and the step may be lower than the mark: otherwise its state was
    // popped.
    let (mut lowest, mut seen) = (of.steps[at].depth(), at);
    of.marks[..end].iter().rev().find(|mark| {
        lowest =
            of.steps[mark.position..seen].iter().map(|step| step.depth()).fold(lowest, u32::min);
        seen = mark.position;
        mark.depth <= lowest
    })
}

/// Keeps the state in which a step was proposed, unless it is large.
fn keep_mark(of: &mut TrajectoryIndex, position: usize, machine: &dyn Machine) {
    // An existing mark stays.
    let Err(at) = of.marks.binary_search_by_key(&position, |mark| mark.position) else { return };
    let state = machine.state();
    let bytes = state.to_string().len();
    if bytes <= MARK_BYTES_MAX {
        let depth = of.steps[position].depth();
        of.marks.insert(at, Mark { position, depth, state, bytes: 2 * bytes });
    }
}

/// The machine in the state in which a step was proposed.
fn machine_before(
    of: &mut TrajectoryIndex,
    journal: &dyn Journal,
    (id, at): (&str, usize),
    problem: &Arc<dyn Problem>,
) -> Result<Box<dyn Machine>, RunError> {
    let unreadable = |error: &dyn std::fmt::Display| RunError::Unreadable(error.to_string());
    let (mut machine, from, depth) = match mark_before(of, at) {
        Some(mark) => (
            problem.machine_at(&mark.state).map_err(|error| unreadable(&error))?,
            mark.position,
            mark.depth,
        ),
        None => (problem.start(), 0, 0),
    };

    let positions = frames(of, at, depth, from, usize::MAX);
    let seqs: Vec<u64> = positions.iter().map(|position| of.steps[*position].seq).collect();

    let mut applied = 0;
    let mut passed = positions.into_iter();
    read_events(journal, id, &seqs, |seq, event| {
        let step = read_step(seq, event)?;
        let position = passed.next().unwrap_or(at);
        // A mark has the state, but not what else a program says about it.
        if applied > 0 && applied % MARK_EVERY == 0 && !problem.is_asked() {
            keep_mark(of, position, &*machine);
        }
        machine.foresee_blocking(&step.action).map_err(|error| unreadable(&error))?;
        machine.replay(&step.action).map_err(|error| unreadable(&error))?;
        applied += 1;
        Ok(())
    })?;

    Ok(machine)
}

/// Retries at the state in which a step was proposed, before it. `below` are the committed steps on
/// the stack.
fn retries_before(of: &TrajectoryIndex, at: usize, below: &[usize]) -> u32 {
    let depth = of.steps[at].depth();
    let since = below.last().map_or(0, |position| position + 1);
    let here = |finding: &&Finding| finding.is_retry && of.steps[finding.position].depth() == depth;
    let count = of.findings_in(since, at).iter().filter(here).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn detail(
    (id, seq): (&str, u64),
    spec: &RunSpec,
    index: &mut RunIndex,
    journal: &dyn Journal,
    tasks: &TaskPrograms,
) -> Result<StepDetail, RunError> {
    let unreadable = |error: &dyn std::fmt::Display| RunError::Unreadable(error.to_string());
    let mut line = Vec::new();
    let read = read_events(journal, id, &[seq], |_, event| {
        line.extend_from_slice(event);
        Ok(())
    });
    match read {
        // The event does not exist; the journal is not damaged.
        Err(RunError::Journal(JournalError::Damaged(_))) if line.is_empty() => {
            return Err(RunError::NoSuchStep(seq));
        }
        read => read?,
    }

    let step = read_step(seq, &line)?;
    let JudgedBy { judge, basis } = index.judged_by(seq);
    let basis = step
        .basis
        .or(basis)
        .map(|basis| serde_json::to_value(basis).expect("invariant: a basis serialises"));
    // With votes, the steps' decisions do not say what was committed, so that no state can be
    // computed.
    let is_by_vote = index.is_by_vote || spec.plan.strategy.is_synchronous();
    let turn: TurnId = step.id();
    let of = index
        .trajectories
        .get_mut(&(turn.round, turn.trajectory))
        .ok_or_else(|| no_such_trajectory(turn))?;
    // A step that is not indexed yet counts as missing.
    let position = of.position_of(seq).ok_or(RunError::NoSuchStep(seq))?;

    let problem = spec.problem(tasks)?;
    let rules = problem.rules();
    let broken: Vec<_> = step
        .violations
        .iter()
        .filter_map(|name| rules.iter().find(|rule| rule.name == *name))
        .map(|rule| ConstraintMeaning {
            name: rule.name.clone().into_owned(),
            kind: rule.kind.map(|kind| kind.name().to_owned()),
            weight: rule.severity.weight(),
            meaning: rule.meaning.clone().into_owned(),
        })
        .collect();

    let pops = of.findings_in(position, position + 1).first().map_or(0, |finding| finding.pops);
    let machine = if is_by_vote {
        None
    } else {
        Some(machine_before(of, journal, (id, position), &problem)?)
    };

    let (before, view) = (
        machine.as_ref().map(|machine| machine.state()),
        machine.as_ref().map(|machine| machine.view()),
    );
    let after = machine.filter(|_| step.applicable).and_then(|mut machine| {
        machine.foresee_blocking(&step.action).ok()?;
        machine.replay(&step.action).ok()?;
        Some(machine.state())
    });

    let below = if is_by_vote { Vec::new() } else { frames(of, position, 0, 0, FRAMES_MAX) };
    let mut seqs: Vec<u64> = below.iter().map(|position| of.steps[*position].seq).collect();
    let retries = retries_before(of, position, &below);
    // The stack and the steps before and after it are read in one pass.
    let previous = position.checked_sub(1).map(|at| of.steps[at].seq);
    let following = of.steps.get(position + 1).map(|next| next.seq);
    let extra = previous.filter(|previous| !seqs.contains(previous));
    seqs.extend(extra.into_iter().chain(following));
    seqs.sort_unstable();

    let (mut stack, mut previous_elapsed_ms, mut next) = (Vec::with_capacity(seqs.len()), 0, None);
    read_events(journal, id, &seqs, |seq, event| {
        let frame = read_step(seq, event)?;
        if Some(seq) == previous {
            previous_elapsed_ms = frame.elapsed_ms;
        }
        if Some(seq) == following {
            next = Some(NextStep {
                seq,
                position: position as u64 + 1,
                depth: u32::try_from(frame.depth).unwrap_or(u32::MAX),
                action: cut(&frame.action, LINE_BYTES_MAX).0,
                decision: frame.decision,
            });
        } else if Some(seq) != extra {
            stack.push(StackFrame {
                seq,
                depth: frame.depth as u64,
                action: cut(&frame.action, LINE_BYTES_MAX).0,
            });
        }
        Ok(())
    })?;

    Ok(StepDetail {
        run: id.to_owned(),
        seq,
        position: position as u64,
        total: of.steps.len() as u64,
        explanation: why(spec, &step, &broken, retries),
        then: what_followed((spec, &step), pops, next, of.end.as_ref(), index.is_finished),
        step: serde_json::from_slice(&line).map_err(|error| unreadable(&error))?,
        broken,
        before,
        after,
        view,
        stack,
        previous_elapsed_ms,
        pops,
        judge,
        basis,
    })
}

impl StepIndexes {
    /// A step in full.
    ///
    /// # Errors
    /// When the event is not a step, this version does not know the run's task, or the journal
    /// cannot be read.
    pub async fn detail(&self, id: &str, seq: u64) -> Result<StepDetail, RunError> {
        let (spec, tasks) = self.store.spec_and_tasks(id).await?;
        let (id, name) = (id.to_owned(), id.to_owned());
        let ask = move |index: &mut RunIndex, journal: &dyn Journal, _: bool| {
            detail((&id, seq), &spec, index, journal, &tasks)
        };
        self.ask(&name, ask).await
    }
}
