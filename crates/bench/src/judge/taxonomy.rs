//! The paper's error taxonomy (appendix, "Error Taxonomy"): the type of the first wrong step of a
//! trace.
//!
//! The paper names nine types and gives each half a sentence. The rules here decide in order, from
//! the wrong line, the right one and their neighbours; the documentation of the benchmark carries
//! them as a table.

use serde::{Deserialize, Serialize};

use crate::tasks::{Category, Refusal};

/// The type of a wrong step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorType {
    /// A value was not carried from one step to the next.
    Carryover,
    /// A value or the work was set back to its beginning.
    Reset,
    /// The right operation at a wrong place.
    Index,
    /// An operation other than the algorithm's.
    WrongOperation,
    /// A step of the algorithm at the wrong time.
    Ordering,
    /// Stopped too early, or continued after the end.
    Termination,
    /// A line of the right form that names what does not exist or cannot be done.
    Boundary,
    /// Another operation, which breaks an invariant as well.
    Invariant,
    /// No action line at all.
    Format,
}

impl ErrorType {
    /// All types.
    pub const ALL: [Self; 9] = [
        Self::Carryover,
        Self::Reset,
        Self::Index,
        Self::WrongOperation,
        Self::Ordering,
        Self::Termination,
        Self::Boundary,
        Self::Invariant,
        Self::Format,
    ];

    /// The meaning of the type, in a few words.
    pub fn meaning(self) -> &'static str {
        [
            "a value was not carried from one step to the next",
            "a value or the work was set back to its beginning",
            "the right operation at a wrong place",
            "an operation other than the algorithm's",
            "a step of the algorithm at the wrong time",
            "stopped too early, or continued after the end",
            "names what does not exist or cannot be done",
            "another operation, which breaks an invariant as well",
            "no action line at all",
        ][self as usize]
    }

    /// The type's name in results.
    pub fn name(self) -> &'static str {
        [
            "carryover",
            "reset",
            "index",
            "wrong-operation",
            "ordering",
            "termination",
            "boundary",
            "invariant",
            "format",
        ][self as usize]
    }
}

/// The facts about the first wrong step.
#[derive(Debug)]
pub struct Circumstances<'a> {
    pub category: Category,
    /// The wrong line.
    pub given: &'a str,
    pub refusal: Option<Refusal>,
    /// The line of the algorithm, if it prescribes one.
    pub expected: Option<&'a str>,
    /// The trace had ended before.
    pub after_end: bool,
    /// The wrong line ends the trace.
    pub given_ends: bool,
    /// The right line would end the trace.
    pub expected_ends: bool,
    /// The next few lines of the algorithm after the right one.
    pub upcoming: &'a [String],
    /// The line before.
    pub previous: Option<&'a str>,
    /// The first line of the reference.
    pub first: Option<&'a str>,
    pub breaks_invariant: bool,
}

/// A line with its numbers taken out, and the numbers.
fn shape(line: &str) -> (String, Vec<&str>) {
    let mut words = String::new();
    let mut numbers = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let end =
            rest[start..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| start + end);
        words.push_str(&rest[..start]);
        words.push('#');
        numbers.push(&rest[start..end]);
        rest = &rest[end..];
    }
    words.push_str(rest);
    (words, numbers)
}

/// Returns whether the numbers of a category's actions are mostly places and not values.
fn names_places(category: Category) -> bool {
    category.sorts()
        || matches!(
            category,
            Category::GraphTraversal | Category::TreeStructures | Category::ClassicPuzzles
        )
}

fn is_off_by_one(given: &str, expected: &str) -> bool {
    match (given.parse::<u64>(), expected.parse::<u64>()) {
        (Ok(given), Ok(expected)) => given.abs_diff(expected) == 1,
        _ => false,
    }
}

/// The type of an error, by the first rule that applies.
pub fn classify(case: &Circumstances<'_>) -> ErrorType {
    if case.refusal == Some(Refusal::Unparsable) {
        return ErrorType::Format;
    }
    if case.after_end || case.given_ends != case.expected_ends {
        return ErrorType::Termination;
    }

    // It has the form of an action and does not come after the end, so it names what does not exist
    // or cannot be done.
    if case.refusal.is_some() {
        return ErrorType::Boundary;
    }

    let Some(expected) = case.expected else { return ErrorType::WrongOperation };
    let ((given_words, given), (expected_words, wanted)) = (shape(case.given), shape(expected));
    let out_of_turn =
        case.previous == Some(case.given) || case.upcoming.iter().any(|line| line == case.given);

    if given_words != expected_words {
        return match () {
            () if out_of_turn => ErrorType::Ordering,
            () if case.first == Some(case.given) => ErrorType::Reset,
            () if case.breaks_invariant => ErrorType::Invariant,
            () => ErrorType::WrongOperation,
        };
    }

    // One number, such as the state of an automaton, comes up again by chance.
    if out_of_turn && given.len() > 1 {
        return ErrorType::Ordering;
    }

    let differing: Vec<_> =
        given.iter().zip(&wanted).filter(|(given, wanted)| given != wanted).collect();

    let places = names_places(case.category);
    // Where numbers are values, a 0 in place of another number is one that was set back.
    if differing.iter().any(|(given, _)| **given == "0") && !places {
        return ErrorType::Reset;
    }

    if places
        || (!differing.is_empty()
            && differing.iter().all(|(given, wanted)| is_off_by_one(given, wanted)))
    {
        return ErrorType::Index;
    }
    ErrorType::Carryover
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(category: Category, given: &'a str, expected: &'a str) -> Circumstances<'a> {
        Circumstances {
            category,
            given,
            refusal: None,
            expected: Some(expected),
            after_end: false,
            given_ends: false,
            expected_ends: false,
            upcoming: &[],
            previous: None,
            first: None,
            breaks_invariant: false,
        }
    }

    #[test]
    fn each_type_has_its_example() {
        let sorting = |given, expected| of(Category::ComparisonSorting, given, expected);
        let upcoming = ["cmp 1 2".to_owned()];

        let cases = [
            (
                Circumstances {
                    refusal: Some(Refusal::Unparsable),
                    ..sorting("compare", "cmp 0 1")
                },
                ErrorType::Format,
            ),
            (
                Circumstances {
                    refusal: Some(Refusal::Illegal("")),
                    ..sorting("cmp 0 99", "cmp 0 1")
                },
                ErrorType::Boundary,
            ),
            (
                Circumstances { given_ends: true, ..sorting("done", "cmp 0 1") },
                ErrorType::Termination,
            ),
            (
                Circumstances { expected_ends: true, ..sorting("cmp 0 1", "done") },
                ErrorType::Termination,
            ),
            (Circumstances { after_end: true, ..sorting("cmp 0 1", "") }, ErrorType::Termination),
            (
                Circumstances { upcoming: &upcoming, ..sorting("cmp 1 2", "swap 0 1") },
                ErrorType::Ordering,
            ),
            (
                Circumstances { previous: Some("swap 0 1"), ..sorting("swap 0 1", "cmp 1 2") },
                ErrorType::Ordering,
            ),
            (
                Circumstances { first: Some("cmp 0 1"), ..sorting("cmp 0 1", "swap 3 4") },
                ErrorType::Reset,
            ),
            (
                Circumstances { breaks_invariant: true, ..sorting("swap 1 2", "cmp 1 2") },
                ErrorType::Invariant,
            ),
            (sorting("pass", "cmp 1 2"), ErrorType::WrongOperation),
            (sorting("cmp 0 2", "cmp 1 2"), ErrorType::Index),
            (of(Category::Mathematical, "4 17", "4 18"), ErrorType::Index),
            (of(Category::Mathematical, "4 0", "4 18"), ErrorType::Reset),
            (of(Category::Mathematical, "4 11", "4 18"), ErrorType::Carryover),
            (of(Category::Automata, "q7", "q3"), ErrorType::Carryover),
        ];

        for (circumstances, wanted) in cases {
            assert_eq!(classify(&circumstances), wanted, "{circumstances:?}");
        }
    }
}
