//! Detection of errors: reference traces with one corrupted step, judged with all kinds of constraints and without those
//! that run the algorithm.

use serde::Serialize;

use prime_bench::tasks::{AnyTask, Difficulty, Kind, Kinds, Problem, TaskRng};

/// Longer traces are cut off here.
const LINES_MAX: usize = 4_000;

/// How a trace was corrupted.
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
fn other_number(line: &str, rng: &mut TaskRng) -> Option<String> {
    let digits = |c: char| c.is_ascii_digit();
    let starts: Vec<usize> =
        line.char_indices().filter(|(at, c)| digits(*c) && !line[..*at].ends_with(digits)).map(|(at, _)| at).collect();
    if starts.is_empty() {
        return None;
    }
    let start = rng.one_of(&starts);
    let end = line[start..].find(|c| !digits(c)).map_or(line.len(), |end| start + end);
    let number: u64 = line[start..end].parse().ok()?;
    let other = if number > 0 && rng.chance(1, 2) { number - 1 } else { number + 1 };
    Some(format!("{}{other}{}", &line[..start], &line[end..]))
}

/// How many corruptions of a task were detected.
#[derive(Clone, Debug, Serialize)]
pub struct CorruptionRow {
    pub task: &'static str,
    /// Traces with one corruption each.
    pub corrupted: u64,
    /// Detected by all kinds of constraints, at the first line that differs.
    pub found_at_step: u64,
    /// Detected, at any line, by format, invariant and terminal constraints.
    pub found_by_invariants: u64,
}

/// The first line that breaks a constraint of these kinds. A trace that should have ended but has not breaks one after its
/// last line.
fn first_found(problem: &dyn Problem, lines: &[String], kinds: Kinds, ends: bool) -> Option<usize> {
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

/// Corrupts `count` reference traces of a task at easy level and judges each of them twice.
pub fn corrupt(task: &'static dyn AnyTask, count: u64, base_seed: u64) -> CorruptionRow {
    let spec = task.spec();
    let checked: Kinds = [Kind::Format, Kind::Invariant, Kind::Terminal].into_iter().collect();
    let mut row = CorruptionRow { task: spec.slug, corrupted: 0, found_at_step: 0, found_by_invariants: 0 };
    let mut rng = TaskRng::new(base_seed);
    // Lines without numbers do not admit every corruption, hence the bound on attempts.
    for attempt in 0..4 * count {
        if row.corrupted == count {
            break;
        }
        let index = u32::try_from(attempt % 200).expect("invariant: below 200");
        let problem = task.generate(Difficulty::Easy, spec.seed(base_seed, Difficulty::Easy, index));
        let mut machine = problem.start();
        let mut lines = Vec::new();
        let mut line = String::new();
        while lines.len() < LINES_MAX && machine.advance(&mut line) {
            lines.push(line.clone());
        }
        let ends = machine.ended();
        let corruption = rng.one_of(&Corruption::ALL);
        let at = rng.index(lines.len());
        let Some(corrupted) = corruption.apply(&lines, at, &mut rng) else { continue };
        // The end of a trace that was cut off cannot be judged.
        let differs = corrupted.iter().zip(&lines).position(|(ours, right)| ours != right);
        let Some(differs) = differs.or_else(|| ends.then(|| corrupted.len().min(lines.len()))) else { continue };
        row.corrupted += 1;
        row.found_at_step += u64::from(first_found(problem.as_ref(), &corrupted, Kinds::ALL, ends) == Some(differs));
        row.found_by_invariants += u64::from(first_found(problem.as_ref(), &corrupted, checked, ends).is_some());
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks;

    #[test]
    fn every_corruption_of_every_task_is_found_at_its_step() {
        for task in tasks::all() {
            let row = corrupt(task, 12, 42);
            assert!(row.corrupted > 0, "{}", row.task);
            assert_eq!(row.found_at_step, row.corrupted, "{}", row.task);
        }
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
