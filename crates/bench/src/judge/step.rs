//! Decides whether a single step is right by the task's algorithm: the reference step, or one
//! equally good.

use crate::tasks::{Kinds, Machine};

/// Steps from here to a right answer; `None` if there are more than `most`, or the algorithm finds
/// none.
fn remaining(mut machine: Box<dyn Machine>, most: u64) -> Option<u64> {
    for steps in 0..=most {
        if machine.ended() {
            return machine
                .answer()
                .filter(|answer| machine.problem().accepts(answer))
                .map(|_| steps);
        }
        if !machine.follow_reference() {
            return None;
        }
    }
    None
}

/// Returns whether a choice other than the prescribed one is equally good.
fn is_as_good(machine: &dyn Machine, line: &str) -> bool {
    let is_choice =
        machine.choices().is_some_and(|choices| choices.iter().any(|choice| choice == line));
    if !is_choice {
        return false;
    }

    let Some(prescribed) = remaining(machine.fork(), machine.problem().steps_max()) else {
        return false;
    };

    let mut after = machine.fork();
    after.replay(line).is_ok()
        && prescribed.checked_sub(1).is_some_and(|most| remaining(after, most).is_some())
}

/// Returns whether a step is right: it breaks nothing, or is as good as the prescribed one. `line`
/// is the machine's candidate, or was refused. The problem must have a reference.
pub fn is_right(machine: &dyn Machine, line: &str) -> bool {
    let checked = Kinds::WITHOUT_TRANSITION;
    machine.violations(Kinds::ALL).is_empty()
        || (machine.violations(checked).is_empty() && is_as_good(machine, line))
}
