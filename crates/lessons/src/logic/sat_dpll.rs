//! SAT DPLL: the first rule that applies, from the clauses and variables in the buckets that a
//! solver keeps them in.
// The clauses without a true literal are in buckets by their unassigned ones: false ones have none,
// units one. The variables that occur in them are pure or not. The three lowest entries of each
// bucket are shown.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::literals::{Literals, Occurrences};
use prime_bench::tasks::logic::sat_dpll::{Action, Instance, SatDpll, State};

use crate::Lesson;

pub struct SatDpllLesson;

/// Entries of a bucket that are shown.
const SHOWN: usize = 3;

#[derive(Default)]
struct Buckets {
    /// Clauses.
    without: Vec<String>,
    /// Clauses with their literals.
    units: Vec<String>,
    /// Literals.
    pure: Vec<String>,
    /// Variables.
    free: Vec<String>,
}

impl Buckets {
    fn of(instance: &Instance, state: &State) -> Self {
        let assigned: Literals = state.trail.iter().copied().collect();
        let mut buckets = Self::default();
        let mut occurring = Occurrences::default();
        let mut variables = Literals::default();

        for (number, clause) in instance.clauses.iter().enumerate() {
            // A true literal settles the clause.
            if clause.meets(assigned) {
                continue;
            }

            let left = clause.unmentioned_by(assigned);
            occurring.add(left);

            for literal in
                left.iter().filter(|literal| !variables.mentions(*literal)).collect::<Vec<_>>()
            {
                variables.insert(literal.abs());
            }

            let mut literals = left.iter();
            match (literals.next(), literals.next()) {
                (None, _) => buckets.without.push(format!("{number:03}")),
                (Some(literal), None) => buckets.units.push(format!("{number:03}:{literal}")),
                _ => {}
            }
        }

        for variable in variables.iter() {
            buckets.free.push(variable.to_string());
            match (occurring.contains(variable), occurring.contains(-variable)) {
                (true, false) => buckets.pure.push(variable.to_string()),
                (false, true) => buckets.pure.push((-variable).to_string()),
                _ => {}
            }
        }

        buckets
    }

    fn named(&self) -> [(&'static str, &[String]); 4] {
        [
            ("false", &self.without),
            ("unit", &self.units),
            ("pure", &self.pure),
            ("free", &self.free),
        ]
    }
}

impl Lesson for SatDpllLesson {
    type Task = SatDpll;

    fn view(instance: &Instance, state: &State) -> String {
        if matches!(state.last.0, Some(Action::Sat | Action::Unsat)) {
            return "done".to_owned();
        }

        let shown = |(name, bucket): (&str, &[String])| match bucket {
            [] => format!("{name} -"),
            bucket => format!("{name} {}", bucket[..bucket.len().min(SHOWN)].join(" ")),
        };

        let decision = state
            .open
            .last()
            .map_or_else(|| "-".to_owned(), |place| state.trail[*place].to_string());

        format!("{} decided {decision}", Buckets::of(instance, state).named().map(shown).join(" "))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        SatDpll::reference(instance, state)?;
        let mut line = String::new();

        for (name, bucket) in Buckets::of(instance, state).named() {
            match bucket.first() {
                Some(first) => return Some(format!("{line}{name} {first}")),
                None => line += &format!("{name} - "),
            }
        }

        Some(line + "all")
    }
}
