//! On what basis each committed step of a trajectory was judged.

use serde::{Deserialize, Serialize};

use super::basis::Basis;

/// The bases of the committed steps, run-length encoded: nearly always one verifier judges all steps
/// of a trajectory, and on one basis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judges(Vec<(usize, Basis)>);

impl Judges {
    /// Records the basis of the step that leaves the state at `depth`, which is the top.
    #[inline]
    pub fn push(&mut self, depth: usize, basis: Basis) {
        if self.0.last().is_none_or(|(_, last)| *last != basis) {
            self.0.push((depth, basis));
        }
    }

    /// Forgets the steps above `depth`.
    #[inline]
    pub fn truncate(&mut self, depth: usize) {
        while self.0.last().is_some_and(|(from, _)| *from >= depth) {
            self.0.pop();
        }
    }

    /// The weakest basis of all steps. Steps without a record, made before bases were recorded, have
    /// none.
    pub fn weakest(&self) -> Basis {
        let Some((0, first)) = self.0.first() else { return Basis::NONE };
        self.0.iter().fold(*first, |weakest, (_, basis)| weakest.weakest(*basis))
    }

    /// The basis of the step that leaves the state at `depth`.
    pub fn at(&self, depth: usize) -> Basis {
        let before = self.0.iter().take_while(|(from, _)| *from <= depth);
        before.last().map_or(Basis::NONE, |(_, basis)| *basis)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use prime_bench::tasks::Kinds;

    #[test]
    fn steps_before_the_first_record_have_no_basis() {
        let mut judges = Judges::default();
        assert_eq!(judges.weakest(), Basis::NONE);

        judges.push(3, Basis::reference());
        assert_eq!(judges.weakest(), Basis::NONE);
        assert_eq!((judges.at(2), judges.at(3)), (Basis::NONE, Basis::reference()));
    }

    proptest! {
        #[test]
        fn it_is_a_list_with_one_basis_a_step(
            actions in prop::collection::vec((0..4usize, 0..6usize), 1..200)
        ) {
            let bases = [
                Basis::NONE,
                Basis::rules(Kinds::WITHOUT_TRANSITION),
                Basis::reference(),
                Basis::program(Kinds::ALL),
            ];
            let mut list: Vec<Basis> = Vec::new();
            let mut judges = Judges::default();

            for (basis, pops) in actions {
                judges.push(list.len(), bases[basis]);
                list.push(bases[basis]);
                for _ in 0..pops.saturating_sub(3) {
                    if list.pop().is_some() {
                        judges.truncate(list.len());
                    }
                }

                for (depth, basis) in list.iter().enumerate() {
                    prop_assert_eq!(judges.at(depth), *basis);
                }
                let weakest = list.iter().copied().reduce(Basis::weakest).unwrap_or(Basis::NONE);
                prop_assert_eq!(judges.weakest(), weakest);
            }
        }
    }
}
