//! States of a reference trace, spread evenly over it from its first step to its last one.

use prime_bench::tasks::{Machine, Problem};

/// Calls `see` with the number of steps before a state and the state itself, for at most `most`
/// states that have a next step. The last step is among them unless `most` is 1: a trace ends in a
/// step unlike the others, and a model that never saw one cannot end a run.
pub fn sampled(problem: &dyn Problem, most: u64, mut see: impl FnMut(u64, &dyn Machine)) {
    let steps = problem.reference().steps;
    let chosen = places(steps, most);
    let mut machine = problem.start();
    let mut line = String::new();

    let mut next = chosen.into_iter().peekable();
    for step in 0..steps {
        if next.next_if_eq(&step).is_some() && machine.reference().is_some() {
            see(step, machine.as_ref());
        }
        if !machine.advance(&mut line) {
            break;
        }
    }
}

/// At most `most` different numbers below `steps`, in order and evenly spaced, the first and the
/// last among them.
fn places(steps: u64, most: u64) -> Vec<u64> {
    if most >= steps {
        return (0..steps).collect();
    }
    let (last, gaps) = (u128::from(steps.saturating_sub(1)), u128::from(most.saturating_sub(1)));
    let place = |at: u64| {
        // Rounded to the nearest step; below `steps`, so it fits.
        let exact = (u128::from(at) * last + gaps / 2).checked_div(gaps).unwrap_or(0);
        u64::try_from(exact).unwrap_or(u64::MAX)
    };
    (0..most).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};

    #[test]
    fn places_are_spread_from_the_first_step_to_the_last() {
        assert_eq!(places(5, 8), [0, 1, 2, 3, 4]);
        assert_eq!(places(5, 5), [0, 1, 2, 3, 4]);
        assert_eq!(places(9, 3), [0, 4, 8]);
        assert_eq!(places(10, 4), [0, 3, 6, 9]);
        assert_eq!(places(100, 2), [0, 99]);
        assert_eq!(places(100, 1), [0]);
        assert_eq!((places(0, 8), places(7, 0)), (Vec::new(), Vec::new()));
        assert_eq!(places(u64::MAX, 3), [0, u64::MAX / 2, u64::MAX - 1]);
    }

    #[test]
    fn the_last_step_of_a_trace_is_among_its_samples() {
        let problem = tasks::find("bfs-on-graph").unwrap().instance(Difficulty::Easy, 42, 0);
        let steps = problem.reference().steps;
        assert!(steps > 20, "{steps}");
        for most in [2, 3, 8, 1_000] {
            let mut seen = Vec::new();
            sampled(problem.as_ref(), most, |step, machine| {
                assert!(machine.reference().is_some());
                seen.push(step);
            });
            assert_eq!(seen.len() as u64, most.min(steps));
            assert_eq!((seen[0], *seen.last().unwrap()), (0, steps - 1));
        }
    }
}
