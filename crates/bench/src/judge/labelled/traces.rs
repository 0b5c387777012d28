//! Labelled whole traces.

use std::sync::Arc;

use super::{KEPT, Origin, StepError, instance, step_error};
use crate::judge::corruption::{CorruptedTrace, corrupted_traces};
use crate::judge::soundness::{Judged, deviating_trace};
use crate::tasks::{AnyTask, Difficulty, InstanceId, Problem, TaskRng};

/// Instances whose reference traces have more lines are left out: a verifier judges every line.
pub const TRACE_LINES_MAX: usize = 200;
/// Adversarial traces may be this much longer than the limit of reference traces.
const DETOUR_LINES_MAX: usize = 2 * TRACE_LINES_MAX;
/// Walks on an instance before it counts as having no adversarial trace.
const WALKS: usize = 8;

/// The end of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// In a right answer.
    Right,
    /// In a wrong answer.
    Wrong,
    /// At a line that cannot be carried out, its last one.
    Refused,
    /// Before its end.
    Open,
}

/// A trace of an instance, up to its end or to the first line that cannot be carried out.
pub struct LabelledTrace {
    /// The instance.
    pub id: InstanceId,
    /// How the trace was made.
    pub origin: Origin,
    /// The problem of the instance.
    pub problem: Arc<dyn Problem>,
    /// The lines, the one that cannot be carried out included.
    pub lines: Vec<String>,
    /// The place of the first wrong line, counted from 0, and its error; `None` if every line is
    /// right.
    pub first_error: Option<(usize, StepError)>,
    /// How the trace ends.
    pub end: TraceEnd,
}

impl LabelledTrace {
    /// Returns whether it is complete and every line of it is right.
    pub fn is_right(&self) -> bool {
        self.first_error.is_none() && self.end == TraceEnd::Right
    }

    fn of(id: InstanceId, origin: Origin, judged: &Judged, lines: Vec<String>) -> Self {
        let mut machine = judged.problem.start();
        let mut kept: Vec<String> = Vec::with_capacity(lines.len());
        let mut first_error = None;
        let mut end = TraceEnd::Open;

        // No run has more steps.
        let most = usize::try_from(judged.problem.steps_max()).unwrap_or(usize::MAX);
        for line in lines.into_iter().take(most) {
            let step = kept.len();
            let refusal = machine.propose(&line).err();
            let is_refused = refusal.is_some();
            if first_error.is_none() {
                let previous = kept.last().map(String::as_str);
                let error = step_error(machine.as_ref(), &line, refusal, step as u64, previous);
                first_error = error.map(|error| (step, error));
            }

            kept.push(line);
            if is_refused {
                end = TraceEnd::Refused;
                break;
            }
            machine.commit();
            if machine.ended() {
                let is_right = machine.answer().is_some_and(|answer| judged.accepts(&answer));
                end = if is_right { TraceEnd::Right } else { TraceEnd::Wrong };
                break;
            }
        }

        Self { id, origin, problem: Arc::clone(&judged.problem), lines: kept, first_error, end }
    }
}

/// The traces of a level.
#[derive(Default)]
pub struct LabelledTraces {
    /// The traces, in the order of their instances.
    pub traces: Vec<LabelledTrace>,
    /// Instances that were left out, because their reference traces have more than
    /// [`TRACE_LINES_MAX`] lines.
    pub too_long: u64,
}

impl LabelledTraces {
    /// The instance with its reference answer; `None`, and counted, if its trace is too long.
    fn judged(&mut self, id: InstanceId) -> Option<Judged> {
        let problem = id.problem();
        if problem.reference_steps(TRACE_LINES_MAX as u64).is_some_and(|steps| steps > 0) {
            return Some(Judged::new(problem));
        }
        self.too_long += 1;
        None
    }
}

/// The levels as slices, for generators that take turns among levels.
fn only(difficulty: Difficulty) -> &'static [Difficulty] {
    match difficulty {
        Difficulty::Easy => &[Difficulty::Easy],
        Difficulty::Medium => &[Difficulty::Medium],
        Difficulty::Hard => &[Difficulty::Hard],
    }
}

/// Up to `count` reference traces of a level, equally many with one corrupted line, and equally
/// many adversarial ones for each set of kinds that these keep.
pub fn labelled_traces(
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
    count: u32,
    base_seed: u64,
) -> LabelledTraces {
    let mut all = LabelledTraces::default();
    let mut rng = TaskRng::new(base_seed ^ u64::from(task.spec().id));

    for place in 0..count {
        let id = instance(task, difficulty, base_seed, place);
        let Some(judged) = all.judged(id) else { continue };

        let mut machine = judged.problem.start();
        let mut lines = Vec::with_capacity(judged.steps);
        let mut line = String::new();
        while machine.advance(&mut line) {
            lines.push(line.clone());
        }
        all.traces.push(LabelledTrace::of(id, Origin::Reference, &judged, lines));

        for kept in KEPT {
            let found = (0..WALKS).find_map(|_| {
                let lines = deviating_trace(&judged, kept(), DETOUR_LINES_MAX, &mut rng)?;
                let trace = LabelledTrace::of(id, Origin::Adversarial, &judged, lines);
                // A detour that is as good as the algorithm's path is not an error.
                trace.first_error.is_some().then_some(trace)
            });
            all.traces.extend(found);
        }
    }

    for trace in corrupted_traces(task, only(difficulty), count.into(), base_seed) {
        let CorruptedTrace { difficulty, index, problem, lines, corrupted, ends, .. } = trace;
        // The instances are those above, where long ones are counted.
        if !ends || lines.len() > TRACE_LINES_MAX {
            continue;
        }
        let id = InstanceId { task, difficulty, index, base_seed };
        let judged = Judged::new(problem);
        all.traces.push(LabelledTrace::of(id, Origin::Random, &judged, corrupted));
    }
    all
}
