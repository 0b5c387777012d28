//! Measures which kinds of constraints find a wrong step.

use crate::judge::corruption::{CorruptedTrace, LINES_MAX, corrupted_traces, leads_to};
use crate::judge::detection::table::{DetectionRow, digest};
use crate::tasks::{AnyTask, Difficulty, Kind, Kinds, Machine};

/// Corrupted traces of each task in the table.
pub const TRACES: u64 = 1_200;

/// A trace with a wrong step, judged by each kind of constraints on its own.
struct Judged {
    /// The kinds that find something.
    by: Kinds,
    /// True if the step has no effect and only `transition` finds it: then it is not an error.
    is_harmless: bool,
}

/// A machine, and the kinds that have found something in its lines so far.
struct Watched {
    machine: Box<dyn Machine>,
    by: Kinds,
}

impl Watched {
    /// Applies a line; false if it was refused, which no choice of kinds overlooks.
    fn apply(&mut self, line: &str) -> bool {
        // A kind that has found something need not look again.
        let open: Kinds = Kind::ALL.into_iter().filter(|kind| !self.by.contains(*kind)).collect();

        // Only a line that does not apply is left to find.
        let is_judged = open != Kinds::from_iter([Kind::Format]);

        let applied =
            if is_judged { self.machine.propose(line) } else { self.machine.replay(line) };
        if applied.is_err() {
            self.by = Kinds::ALL;
            return false;
        }

        if !is_judged {
            return true;
        }

        let violations = self.machine.violations(open);
        self.by = self.by.union(
            violations.iter(self.machine.spec()).map(|constraint| constraint.kind).collect(),
        );
        self.machine.commit();
        true
    }

    fn is_unnoticed(&self) -> bool {
        self.by.intersection(Kinds::WITHOUT_TRANSITION) == Kinds::NONE
    }
}

/// The wrong step, and then the lines of the reference trace.
fn as_recorded(trace: &CorruptedTrace) -> Judged {
    let mut watched = Watched { machine: trace.problem.start(), by: Kinds::NONE };
    let is_applied = trace.corrupted.iter().all(|line| watched.apply(line));

    if is_applied && trace.ends && !watched.machine.ended() {
        // A trace that does not end has no answer to verify.
        watched.by = Kinds::ALL;
    }

    let is_harmless = watched.is_unnoticed()
        && leads_to(trace.problem.as_ref(), &trace.corrupted, trace.machine.as_ref());
    Judged { by: watched.by, is_harmless }
}

/// The wrong step, and then the algorithm's steps from the state that it leads to. `None` where the
/// algorithm does not reach an end from there, or the reference trace is too long to be followed to
/// its end.
fn continued(trace: &CorruptedTrace) -> Option<Judged> {
    let mut machine = trace.problem.start();
    for line in &trace.lines[..trace.at] {
        machine.replay(line).ok()?;
    }

    let mut watched = Watched { machine, by: Kinds::NONE };

    let wrong = trace.corrupted.get(trace.at).filter(|_| trace.ends)?;
    if !watched.apply(wrong) {
        return Some(Judged { by: Kinds::ALL, is_harmless: false });
    }

    for _ in 0..LINES_MAX {
        let Some(line) = watched.machine.reference() else { break };
        if !watched.apply(&line) {
            return None;
        }
    }

    let answer = watched.machine.answer()?;
    let is_harmless = watched.is_unnoticed() && trace.problem.accepts(&answer);
    Some(Judged { by: watched.by, is_harmless })
}

/// Tries at most `traces` wrong steps of a task, of all levels in turn.
///
/// A wrong step counts as found by a set of kinds if it is found however the trace continues: with
/// the lines of the reference trace, and with the steps that the algorithm takes from the state
/// that it leads to.
pub fn measure(task: &'static dyn AnyTask, traces: u64, base_seed: u64) -> DetectionRow {
    let mut row = DetectionRow::new(task.spec().slug, digest(task.spec().constraints));
    for trace in corrupted_traces(task, &Difficulty::ALL, traces, base_seed) {
        let (recorded, continued) = (as_recorded(&trace), continued(&trace));
        let is_error =
            !continued.as_ref().map_or(recorded.is_harmless, |judged| judged.is_harmless);

        if !is_error {
            continue;
        }

        let all = [Some(recorded), continued];
        let by =
            || all.iter().flatten().filter(|judged| !judged.is_harmless).map(|judged| judged.by);

        row.count(|kinds| by().all(|by| by.intersection(kinds) != Kinds::NONE));
    }
    row
}
