//! States of a reference trace, spread evenly over it.

use prime_bench::tasks::{Machine, Problem};

/// Calls `see` with the number of steps before a state and the state itself, for at most `most`
/// states that have a next step.
pub fn sampled(problem: &dyn Problem, most: u64, mut see: impl FnMut(u64, &dyn Machine)) {
    // Rounded up, so that there are never more than `most`.
    let stride = problem.reference().steps.div_ceil(most.max(1)).max(1);
    let mut machine = problem.start();
    let mut line = String::new();

    for step in 0.. {
        if step % stride == 0 && machine.reference().is_some() {
            see(step, machine.as_ref());
        }
        if !machine.advance(&mut line) {
            break;
        }
    }
}
