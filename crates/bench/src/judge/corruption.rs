//! Measures how much a task's constraints detect: reference traces with one corrupted step, judged
//! with all kinds of constraints and without those that run the algorithm.

use std::sync::Arc;

use serde::Serialize;

use crate::tasks::{AnyTask, Difficulty, Kinds, Machine, Problem, TaskRng};

/// Longer traces are cut off here.
pub(super) const LINES_MAX: usize = 4_000;

/// The kind of corruption of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// Two adjacent lines exchanged.
    Exchanged,
    /// A line missing.
    Dropped,
    /// A line twice.
    Repeated,
    /// A number changed.
    Changed,
}

impl Corruption {
    const ALL: [Self; 4] = [Self::Exchanged, Self::Dropped, Self::Repeated, Self::Changed];

    /// Corrupts a trace at a line; `None` where that is impossible or changes nothing.
    fn apply(self, lines: &[String], at: usize, rng: &mut TaskRng) -> Option<Vec<String>> {
        let mut corrupted = lines.to_vec();
        match self {
            Self::Exchanged if at + 1 < lines.len() => corrupted.swap(at, at + 1),
            Self::Exchanged => return None,
            Self::Dropped => drop(corrupted.remove(at)),
            Self::Repeated => corrupted.insert(at, lines[at].clone()),
            Self::Changed => corrupted[at] = other_number(&lines[at], rng)?,
        }
        (corrupted != lines).then_some(corrupted)
    }
}

/// The line with one of its numbers off by one.
pub fn other_number(line: &str, rng: &mut TaskRng) -> Option<String> {
    let digits = |c: char| c.is_ascii_digit();
    let starts: Vec<usize> = line
        .char_indices()
        .filter(|(at, c)| digits(*c) && !line[..*at].ends_with(digits))
        .map(|(at, _)| at)
        .collect();

    if starts.is_empty() {
        return None;
    }
    let start = rng.one_of(&starts);
    let end = line[start..].find(|c| !digits(c)).map_or(line.len(), |end| start + end);

    let number: u64 = line[start..end].parse().ok()?;
    let other = if number > 0 && rng.chance(1, 2) { number - 1 } else { number + 1 };
    Some(format!("{}{other}{}", &line[..start], &line[end..]))
}

/// A corruption that the constraints did not detect.
#[derive(Clone, Debug, Serialize)]
pub struct Missed {
    /// The level of the instance.
    pub difficulty: Difficulty,
    /// The index of the instance.
    pub index: u32,
    /// How the trace was corrupted.
    pub corruption: Corruption,
    /// The first line that differs from the reference trace, counted from 0.
    pub at: usize,
    /// The corrupted trace around that line.
    pub lines: Vec<String>,
    /// The reference's line there.
    pub reference: Option<String>,
}

/// The corruptions of a task, and the number that was detected.
#[derive(Clone, Debug, Serialize)]
pub struct CorruptionRow {
    /// The task's slug.
    pub task: &'static str,
    /// Traces with one corruption each.
    pub corrupted: u64,
    /// Detected by all kinds of constraints, at the first line that differs.
    pub found_at_step: u64,
    /// Detected, at any line, by format, invariant and terminal constraints.
    pub found_by_invariants: u64,
    /// Traces whose right lines break one of these constraints: a fault of the task, which would
    /// hide missed errors.
    pub false_alarms: u64,
    /// Not detected by these kinds, and without effect: all lines apply, and the trace leads to the
    /// reference's state.
    pub harmless: u64,
    /// The others that were not detected.
    #[serde(skip)]
    pub missed: Vec<Missed>,
}

impl CorruptionRow {
    /// Corruptions that have an effect, or are detected.
    pub fn meaningful(&self) -> u64 {
        self.corrupted - self.harmless
    }

    /// The share of meaningful corruptions that format, invariant and terminal constraints detect.
    pub fn detection_rate(&self) -> f64 {
        self.found_by_invariants as f64 / self.meaningful().max(1) as f64
    }
}

/// The first line that breaks a constraint of these kinds. A trace that should have ended but has
/// not breaks one after its last line.
pub(super) fn first_found(
    problem: &dyn Problem,
    lines: &[String],
    kinds: Kinds,
    ends: bool,
) -> Option<usize> {
    let mut machine = problem.start();
    for (step, line) in lines.iter().enumerate() {
        let refused = machine.propose(line).is_err();
        if refused || !machine.violations(kinds).is_empty() {
            return Some(step);
        }
        machine.commit();
    }
    (ends && !machine.ended()).then_some(lines.len())
}

/// Returns whether the lines lead to the same state, whatever the last line was.
pub(super) fn leads_to(problem: &dyn Problem, lines: &[String], reference: &dyn Machine) -> bool {
    let mut machine = problem.start();
    if lines.iter().any(|line| machine.replay(line).is_err()) {
        return false;
    }

    let state = |machine: &dyn Machine| {
        let mut state = machine.state();
        if let Some(fields) = state.as_object_mut() {
            fields.remove("last");
        }
        state
    };

    state(machine.as_ref()) == state(reference)
}

/// A reference trace and the same trace with one corrupted step.
pub(super) struct CorruptedTrace {
    pub difficulty: Difficulty,
    pub index: u32,
    pub problem: Arc<dyn Problem>,
    pub lines: Vec<String>,
    pub corrupted: Vec<String>,
    pub corruption: Corruption,
    /// The first line that differs, counted from 0.
    pub at: usize,
    /// True if the reference trace ends; otherwise it was cut off.
    pub ends: bool,
    /// The machine after the reference trace.
    pub machine: Box<dyn Machine>,
}

/// At most `count` corrupted traces of a task, of these levels in turn.
pub(super) fn corrupted_traces(
    task: &'static dyn AnyTask,
    levels: &'static [Difficulty],
    count: u64,
    base_seed: u64,
) -> impl Iterator<Item = CorruptedTrace> {
    let spec = task.spec();
    let mut rng = TaskRng::new(base_seed);

    // Lines without numbers do not admit every corruption, hence the bound on attempts.
    let attempts = (0..4 * count).filter_map(move |attempt| {
        let (turn, of) = (attempt % levels.len() as u64, attempt / levels.len() as u64);
        let difficulty = levels[usize::try_from(turn).expect("invariant: a place in a slice")];
        let index = u32::try_from(of % 200).expect("invariant: below 200");
        let problem = task.generate(difficulty, spec.seed(base_seed, difficulty, index));

        let mut machine = problem.start();
        let mut lines = Vec::new();
        let mut line = String::new();
        while lines.len() < LINES_MAX && machine.advance(&mut line) {
            lines.push(line.clone());
        }

        let ends = machine.ended();
        let corruption = rng.one_of(&Corruption::ALL);
        // A trace without lines has nothing to corrupt.
        let at = (!lines.is_empty()).then(|| rng.index(lines.len()))?;
        let corrupted = corruption.apply(&lines, at, &mut rng)?;

        // The end of a trace that was cut off cannot be judged.
        let differs = corrupted.iter().zip(&lines).position(|(ours, right)| ours != right);
        let at = differs.or_else(|| ends.then(|| corrupted.len().min(lines.len())))?;
        Some(CorruptedTrace {
            difficulty,
            index,
            problem,
            lines,
            corrupted,
            corruption,
            at,
            ends,
            machine,
        })
    });

    attempts.take(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Corrupts `count` reference traces of a task, of all levels in turn, and judges each of them
/// twice.
pub fn corrupt(task: &'static dyn AnyTask, count: u64, base_seed: u64) -> CorruptionRow {
    let mut row = CorruptionRow {
        task: task.spec().slug,
        corrupted: 0,
        found_at_step: 0,
        found_by_invariants: 0,
        false_alarms: 0,
        harmless: 0,
        missed: Vec::new(),
    };
    for trace in corrupted_traces(task, &Difficulty::ALL, count, base_seed) {
        let CorruptedTrace {
            difficulty,
            index,
            problem,
            lines,
            corrupted,
            corruption,
            at,
            ends,
            machine,
        } = trace;

        row.corrupted += 1;
        row.false_alarms += u64::from(
            first_found(problem.as_ref(), &lines, Kinds::WITHOUT_TRANSITION, ends).is_some(),
        );
        row.found_at_step +=
            u64::from(first_found(problem.as_ref(), &corrupted, Kinds::ALL, ends) == Some(at));

        if first_found(problem.as_ref(), &corrupted, Kinds::WITHOUT_TRANSITION, ends).is_some() {
            row.found_by_invariants += 1;
        } else if leads_to(problem.as_ref(), &corrupted, machine.as_ref()) {
            row.harmless += 1;
        } else {
            let around = at.saturating_sub(4)..(at + 4).min(corrupted.len());
            row.missed.push(Missed {
                difficulty,
                index,
                corruption,
                at,
                lines: corrupted[around].to_vec(),
                reference: lines.get(at).cloned(),
            });
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::suite::suite;

    suite! { every_corruption_is_found_and_most_without_the_algorithm }

    fn every_corruption_is_found_and_most_without_the_algorithm(task: &'static dyn AnyTask) {
        let row = corrupt(task, 24, 42);
        assert!(row.corrupted > 0);
        assert_eq!(row.false_alarms, 0, "right lines break a constraint");
        assert_eq!(row.found_at_step, row.corrupted);
        // The lowest rate that a page promises.
        assert!(row.detection_rate() >= 0.6, "{row:?}");
    }

    #[test]
    fn a_number_is_changed_and_nothing_else() {
        let mut rng = TaskRng::new(1);

        assert_eq!(other_number("done", &mut rng), None);
        for _ in 0..20 {
            let other = other_number("cmp 0 17", &mut rng).expect("it has numbers");
            assert!(["cmp 1 17", "cmp 0 16", "cmp 0 18"].contains(&other.as_str()), "{other}");
        }
    }
}
