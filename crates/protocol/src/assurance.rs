//! What can be promised of an answer.

use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::score::Score;
use prime_bench::tasks::{Kind, Kinds, Problem};

/// What the verdicts on an answer's trajectory promise, weakest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Assurance {
    /// A step broke a constraint, and the coordinator tolerated it.
    Violated,
    /// Some step was committed that nobody judged.
    #[default]
    Unchecked,
    /// Every step was found clean, which is not a proof: by a model, a program, or constraints that
    /// also let wrong answers through.
    Unrefuted,
    /// The constraints of a sound set were evaluated at every step, and each was clean: the answer
    /// is right.
    Verified,
}

impl Assurance {
    /// All, weakest first.
    pub const ALL: [Self; 4] = [Self::Violated, Self::Unchecked, Self::Unrefuted, Self::Verified];

    /// The promise for an answer to this problem whose trajectory has this basis (the weakest of
    /// its steps, on this problem) and this Σ V.
    pub fn of(problem: &dyn Problem, basis: Basis, score: Score) -> Self {
        if score > Score::ZERO {
            return Self::Violated;
        }

        // The machine itself refuses lines that do not apply, under any verifier.
        let evaluated = basis.evaluated().union(Kinds::from_iter([Kind::Format]));
        // Constraints in words are judged by a model, if at all.
        if problem.has_checks()
            && !problem.needs_reader()
            && evaluated.intersection(problem.sound()) == problem.sound()
        {
            return Self::Verified;
        }

        // A client's problem without checks has nothing to look at but the form of its lines, unless
        // a model or a program reads more.
        let form = Kinds::from_iter([Kind::Format]);
        let looked = basis.kinds().union(form) != form || basis.is_opinion();
        if looked { Self::Unrefuted } else { Self::Unchecked }
    }

    /// Returns whether the answer is promised to be right.
    pub fn is_verified(self) -> bool {
        self == Self::Verified
    }

    /// The word that results, pages and exit codes use.
    pub fn name(self) -> &'static str {
        ["violated", "unchecked", "unrefuted", "verified"][self as usize]
    }
}

impl std::fmt::Display for Assurance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::basis::Method;
    use super::*;
    use prime_bench::tasks::{self, Difficulty};

    #[test]
    fn only_evaluated_constraints_of_a_sound_set_make_an_answer_verified() {
        let sound = tasks::find("bubble-sort").unwrap().generate(Difficulty::Easy, 1);
        let form = Basis::rules(Kinds::from_iter([Kind::Format]));
        assert_eq!(sound.sound(), Kinds::WITHOUT_TRANSITION);

        for (basis, tenths, expected) in [
            (Basis::NONE, 0, Assurance::Unchecked),
            (form, 0, Assurance::Unchecked),
            (Basis::rules(Kinds::WITHOUT_TRANSITION), 0, Assurance::Verified),
            (Basis::rules(Kinds::WITHOUT_TRANSITION), 2, Assurance::Violated),
            (Basis::rules(Kinds::from_iter([Kind::Terminal])), 0, Assurance::Unrefuted),
            (Basis::reference(), 0, Assurance::Verified),
            (Basis::model(Method::Report), 0, Assurance::Unrefuted),
            (Basis::program(Kinds::ALL), 0, Assurance::Unrefuted),
            (Basis::reference().weakest(Basis::NONE), 0, Assurance::Unchecked),
            (Basis::reference().weakest(Basis::program(Kinds::ALL)), 0, Assurance::Unrefuted),
        ] {
            let score = Score::from_tenths(tenths);
            assert_eq!(Assurance::of(sound.as_ref(), basis, score), expected, "{basis:?}");
        }
    }
}
