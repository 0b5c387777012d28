//! The number of true and unassigned literals of each clause, updated as literals are assigned and
//! undone.

use super::literals::{Literals, Occurrences};

/// The clauses in which each literal occurs.
#[derive(Clone, Debug)]
pub struct ClausesOf(Vec<[Vec<usize>; 2]>);

impl ClausesOf {
    pub fn new(variables: usize, clauses: &[Literals]) -> Self {
        let mut lists = vec![[const { Vec::new() }; 2]; variables + 1];
        for (number, clause) in clauses.iter().enumerate() {
            for literal in clause.iter() {
                let (variable, sign) = place_of(literal);
                lists[variable][sign].push(number);
            }
        }
        Self(lists)
    }

    fn get(&self, literal: i64) -> &[usize] {
        let (variable, sign) = place_of(literal);
        &self.0[variable][sign]
    }
}

fn place_of(literal: i64) -> (usize, usize) {
    let variable = usize::try_from(literal.unsigned_abs())
        .expect("invariant: literals are checked where they are read");
    (variable, usize::from(literal < 0))
}

/// A clause's count is 256 times its true literals plus its unassigned ones, so that one comparison
/// tests both.
const TRUE: u16 = 256;
const UNASSIGNED: u16 = 1;

#[derive(Clone, Debug, Default)]
pub struct ClauseCounts(Vec<u16>);

impl ClauseCounts {
    /// Nothing is assigned.
    pub fn new(clauses: &[Literals]) -> Self {
        Self(
            clauses
                .iter()
                // The fallback is never needed: a clause has at most 128 literals.
                .map(|clause| UNASSIGNED * u16::try_from(clause.len()).unwrap_or(TRUE - 1))
                .collect(),
        )
    }

    pub fn assign(&mut self, clauses_of: &ClausesOf, literal: i64) {
        for number in clauses_of.get(literal) {
            self.0[*number] += TRUE - UNASSIGNED;
        }
        for number in clauses_of.get(-literal) {
            self.0[*number] -= UNASSIGNED;
        }
    }

    pub fn undo(&mut self, clauses_of: &ClausesOf, literal: i64) {
        for number in clauses_of.get(literal) {
            self.0[*number] -= TRUE - UNASSIGNED;
        }
        for number in clauses_of.get(-literal) {
            self.0[*number] += UNASSIGNED;
        }
    }

    /// Returns whether some clause has only false literals.
    pub fn has_false(&self) -> bool {
        // Without an early exit, so that the loop vectorises.
        self.0.iter().fold(TRUE, |least, count| least.min(*count)) == 0
    }

    /// The fewest unassigned literals of a clause without a true one; `None` when every clause has
    /// a true one.
    pub fn unassigned_min(&self) -> Option<u16> {
        let least = self.0.iter().fold(TRUE, |least, count| least.min(*count));
        (least < TRUE).then_some(least)
    }

    /// The lowest clause without a true literal and with one unassigned.
    pub fn first_unit(&self) -> Option<usize> {
        self.0.iter().position(|count| *count == UNASSIGNED)
    }

    /// The unassigned literals that occur in clauses without a true one.
    pub fn occurring(&self, clauses: &[Literals], assigned: Literals) -> Occurrences {
        let mut occurring = Occurrences::default();
        for (clause, _) in clauses.iter().zip(&self.0).filter(|(_, count)| **count < TRUE) {
            occurring.add(clause.unmentioned_by(assigned));
        }
        occurring
    }
}
