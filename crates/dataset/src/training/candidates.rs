//! Wrong lines for a state: lines that a verifier rejects there.

use prime_bench::judge::corruption::other_number;
use prime_bench::judge::is_right;
use prime_bench::tasks::{Kinds, Machine, TaskRng};

/// Candidates of each kind that are tried before a state is given up.
const TRIES: usize = 8;

/// V of a line in a state, in tenths; `None` if it is right.
pub fn fault(machine: &dyn Machine, line: &str) -> Option<u32> {
    let mut judged = machine.fork();
    // A refused line is judged as well.
    drop(judged.propose(line));
    (!is_right(judged.as_ref(), line)).then(|| judged.violations(Kinds::ALL).tenths(machine.spec()))
}

/// A line that is wrong in this state, with its V in tenths: another choice where the task has
/// some, otherwise the right line with a number changed.
pub fn wrong_line(machine: &dyn Machine, right: &str, rng: &mut TaskRng) -> Option<(String, u32)> {
    let mut candidates = machine.choices().unwrap_or_default();
    candidates.retain(|choice| choice != right);
    rng.shuffle(&mut candidates);
    candidates.truncate(TRIES);

    candidates.extend((0..TRIES).filter_map(|_| other_number(right, rng)));
    candidates.into_iter().find_map(|line| fault(machine, &line).map(|tenths| (line, tenths)))
}
