//! What the verdict of a record is worth: results of different worth are never in one table.

use prime_bench::tasks::{Kind, Kinds};

use super::record::Record;

/// What the verifier of a run looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// Nothing: the run claims nothing about its answer, and is a baseline for all others.
    Nothing,
    /// Kinds that are sound for the task, `transition` not among them.
    Sound,
    /// Kinds that let some wrong answers through.
    Incomplete,
    /// Kinds without `transition` in a version that did not record whether they were sound.
    Unknown,
    /// `transition` among them: the verifier ran the algorithm beside the trace.
    Transition,
}

impl Evidence {
    /// All but [`Evidence::Nothing`], strongest first.
    pub const CLAIMS: [Self; 4] = [Self::Sound, Self::Incomplete, Self::Unknown, Self::Transition];

    /// True if results with these two kinds of evidence may stand in one table.
    pub fn is_comparable(self, other: Self) -> bool {
        self == other || self == Self::Nothing || other == Self::Nothing
    }

    /// The warning that labels and headings add; empty if there is nothing to warn of.
    pub fn warning(self) -> &'static str {
        match self {
            Self::Nothing | Self::Sound | Self::Unknown => "",
            Self::Incomplete => "kinds not sound",
            Self::Transition => "verifier saw transition",
        }
    }

    /// The part of this evidence in identifiers of tables and figures.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Nothing => "unchecked",
            Self::Sound => "sound",
            Self::Incomplete => "not-sound",
            Self::Unknown => "unknown",
            Self::Transition => "transition",
        }
    }

    /// What the verifier looked at, as headings and messages say it.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Nothing => "nothing was checked",
            Self::Sound => "kinds that are sound for the task",
            Self::Incomplete => "kinds that are not sound for the task",
            Self::Unknown => "kinds of an earlier version",
            Self::Transition => "every transition",
        }
    }
}

impl Record {
    /// What its verifier looked at.
    pub fn evidence(&self) -> Evidence {
        let kinds: Kinds =
            self.checked_kinds.split(',').filter_map(|kind| kind.parse::<Kind>().ok()).collect();
        if kinds == Kinds::NONE {
            return Evidence::Nothing;
        }
        if kinds.contains(Kind::Transition) {
            return Evidence::Transition;
        }

        match self.sound {
            Some(true) => Evidence::Sound,
            Some(false) => Evidence::Incomplete,
            None => Evidence::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{checked_by, record};

    #[test]
    fn kinds_are_worth_what_they_are_for_the_task() {
        for (task, kinds, expected) in [
            ("n-queens", "", Evidence::Nothing),
            ("n-queens", "format", Evidence::Incomplete),
            ("n-queens", "format,terminal", Evidence::Incomplete),
            ("n-queens", "format,invariant,terminal", Evidence::Sound),
            ("n-queens", "format,invariant,transition,terminal", Evidence::Transition),
            // Its answer depends on the order of the reductions.
            ("lambda-reduction", "format,invariant,terminal", Evidence::Incomplete),
            ("lambda-reduction", "format,invariant,transition,terminal", Evidence::Transition),
        ] {
            let of = checked_by(kinds, record("a", task, 0));
            assert_eq!(of.evidence(), expected, "{task}, {kinds:?}");
        }
    }

    /// Constraints have become stricter, so that today's sound set says nothing of an old record.
    #[test]
    fn an_old_record_promises_nothing() {
        let of = |kinds| Record { sound: None, ..checked_by(kinds, record("a", "n-queens", 0)) };
        assert_eq!(of("").evidence(), Evidence::Nothing);
        assert_eq!(of("format,invariant,terminal").evidence(), Evidence::Unknown);
        let all = "format,invariant,transition,terminal";
        assert_eq!(of(all).evidence(), Evidence::Transition);
    }

    #[test]
    fn what_a_verifier_did_not_look_at_is_a_baseline_for_all() {
        let [sound, incomplete, unknown, transition] = Evidence::CLAIMS;
        for claim in Evidence::CLAIMS {
            assert!(claim.is_comparable(claim) && claim.is_comparable(Evidence::Nothing));
        }
        assert!(!sound.is_comparable(incomplete) && !incomplete.is_comparable(transition));
        assert!(!sound.is_comparable(unknown));
    }
}
