//! Random clauses of three literals: the common part of the generators of clause sets.

use super::literals::Literals;
use crate::tasks::TaskRng;

/// Three distinct uniform variables, each negated with probability 1/2.
fn three_literals(variables: usize, rng: &mut TaskRng) -> Literals {
    let mut clause = Literals::default();
    while clause.len() < 3 {
        let variable = i64::try_from(rng.index(variables)).expect("invariant: few variables") + 1;
        if !clause.mentions(variable) {
            clause.insert(if rng.chance(1, 2) { -variable } else { variable });
        }
    }
    clause
}

/// Adds random clauses until there are `count`; one that is there already is drawn again.
pub fn fill_up(clauses: &mut Vec<Literals>, count: usize, variables: usize, rng: &mut TaskRng) {
    while clauses.len() < count {
        let clause = three_literals(variables, rng);
        if !clauses.contains(&clause) {
            clauses.push(clause);
        }
    }
}
