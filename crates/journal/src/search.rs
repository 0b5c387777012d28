//! The search index: what runs are found by. It is derived from the runs, so it can be rebuilt, and
//! it lags a little: an entry is written after the change to its run.

use std::fmt;
use std::str::FromStr;

use crate::error::JournalError;
use crate::overview::{Totals, count_of};
use crate::records::{DamagedRow, RunRow};

/// What a run is found by, beside what its row says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchEntry {
    /// The run's id.
    pub run: String,
    /// The status under which a run that is over is listed.
    pub status: String,
    /// What ended it; empty while it is open.
    pub outcome: String,
    /// The names of its agents.
    pub agents: Vec<String>,
    /// The names of their models.
    pub models: Vec<String>,
    /// The labels that clients gave it, each as `NAME` and as `NAME:VALUE`.
    pub labels: Vec<String>,
    /// True if it has a flagged event.
    pub is_flagged: bool,
    /// Proposed steps of all trajectories.
    pub steps: u64,
    /// Proposals of all trajectories.
    pub proposals: u64,
    /// Proposals that were rejected or had to be tried again.
    pub refused: u64,
    /// Lines that each constraint refused.
    pub refusals: Vec<(String, u64)>,
    /// Tokens of all prompts and completions.
    pub tokens: u64,
    /// Tokens of all completions.
    pub completion_tokens: u64,
    /// What the tokens cost, in billionths of the currency; `None` if none has a price.
    pub cost_nanos: Option<u64>,
    /// Time that the run took, in milliseconds.
    pub wall_ms: u64,
    /// Text that terms are looked up in: in lowercase, without control characters but line ends, of
    /// a bounded length. No term reaches over a line end.
    pub text: String,
}

/// The order of found runs. Runs that are equal in it are in the order of their creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// The time of creation.
    #[default]
    Created,
    /// The number of steps.
    Steps,
    /// The number of tokens.
    Tokens,
    /// The time that the run took.
    Duration,
}

/// A place in an order of found runs: a page begins after one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The value that the order sorts by; 0 for the order of creation.
    pub value: i64,
    /// The run's place in the order of creation.
    pub at: i64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.value, self.at)
    }
}

/// A text is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not the `next` of a page")]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (value, at) = text.split_once('.').ok_or(NoPosition)?;
        let number = |text: &str| text.parse().map_err(|_| NoPosition);
        Ok(Self { value: number(value)?, at: number(at)? })
    }
}

/// Which runs to find. All conditions hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Runs of this key only.
    pub owner: Option<String>,
    /// Lowercase texts that all occur.
    pub terms: Vec<String>,
    /// The status as listed.
    pub status: Option<String>,
    /// The task's slug.
    pub task: Option<String>,
    /// What ended the run.
    pub outcome: Option<String>,
    /// One of the run's agents.
    pub agent: Option<String>,
    /// One of their models.
    pub model: Option<String>,
    /// One of the run's labels, as `NAME` or as `NAME:VALUE`.
    pub label: Option<String>,
    /// Runs with (or without) a flagged event.
    pub is_flagged: Option<bool>,
    /// Only runs in which this constraint refused a line.
    pub constraint: Option<String>,
    /// Only runs that have a flagged event without a review.
    pub needs_review: bool,
    /// Created at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Created before this time, in milliseconds since 1970.
    pub before_ms: Option<u64>,
    /// Minimum number of steps, inclusive.
    pub steps_min: Option<u64>,
    /// Maximum number of steps, inclusive.
    pub steps_max: Option<u64>,
    /// Minimum number of tokens, inclusive.
    pub tokens_min: Option<u64>,
    /// Maximum number of tokens, inclusive.
    pub tokens_max: Option<u64>,
    /// The order of the found runs.
    pub sort: SortKey,
    /// Smallest first; otherwise largest (newest) first.
    pub ascending: bool,
    /// Where the page begins; `None` for the first one.
    pub after: Option<Position>,
    /// Maximum rows.
    pub limit: u32,
}

impl SearchQuery {
    /// Returns whether a page says what of each run's entry fits.
    pub fn shows_entries(&self) -> bool {
        !self.terms.is_empty() || self.constraint.is_some()
    }

    /// What a page says about a run with these counts and this text.
    pub fn noted(&self, run: String, refusals: &str, text: Option<String>) -> Noted {
        let refused = self.constraint.as_deref().map(|name| count_of(refusals, name));
        Noted { run, text: text.unwrap_or_default(), refused }
    }
}

/// What the query of a page looked at in the entry of a found run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// The run's id.
    pub run: String,
    /// The text of the entry; empty if the query has no terms.
    pub text: String,
    /// Lines that the constraint of the query refused, if it has one.
    pub refused: Option<u64>,
}

/// Found runs, in the order that was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchPage {
    /// The rows of the runs.
    pub rows: Vec<RunRow>,
    /// Rows that cannot be read.
    pub damaged: Vec<DamagedRow>,
    /// What was looked at in the entries of the rows, if the query has terms or a constraint.
    pub noted: Vec<Noted>,
    /// Where the next page begins; `None` at the end. A page may have fewer rows than asked for,
    /// or none, because one search looks at a limited number of texts.
    pub next: Option<Position>,
}

/// Runs without an entry, or with one from before their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unnoted {
    /// The runs' ids.
    pub ids: Vec<String>,
    /// Where to look for the next ones; `None` at the end.
    pub next: Option<i64>,
}

/// Texts that one search looks at, where it has to compare them.
pub const EXAMINED_MAX: usize = 20_000;
/// Maximum terms of a query.
pub const TERMS_MAX: usize = 8;

/// Bits of a place that tell apart the runs of a millisecond.
const NUMBER_BITS: u32 = 20;
const DAY_MS: u64 = 86_400_000;
/// The year 2109: later times count as this one.
const CREATED_MAX_MS: u64 = (1 << 42) - 1;

/// The place of a run in the order of creation, by its number in the store.
pub fn place_of(created_ms: u64, no: i64) -> i64 {
    first_place(created_ms) | (no & ((1 << NUMBER_BITS) - 1))
}

/// The first place of a millisecond.
pub fn first_place(created_ms: u64) -> i64 {
    created_ms.min(CREATED_MAX_MS).cast_signed() << NUMBER_BITS
}

/// The time of creation at a place, in milliseconds since 1970.
pub fn created_ms(place: i64) -> u64 {
    place.max(0).unsigned_abs() >> NUMBER_BITS
}

/// The day of creation at a place, in days since 1970, UTC.
pub fn day_of(place: i64) -> u64 {
    created_ms(place) / DAY_MS
}

/// What stands among the models of a run that another daemon has executed, so that overviews count
/// it apart.
pub const IMPORTED: &str = "(imported)";

/// What stands before and after each name of a list.
const BESIDE_NAME: char = '\u{1f}';

/// A list of names in one text, in which each can be looked up as [`name_text`].
pub fn names_text(names: &[String]) -> String {
    names.iter().map(|name| name_text(name)).collect()
}

/// A name as it stands in [`names_text`].
pub fn name_text(name: &str) -> String {
    format!("{BESIDE_NAME}{}{BESIDE_NAME}", name.replace(BESIDE_NAME, " "))
}

/// The names in a text of [`names_text`].
pub fn names_of(text: &str) -> Vec<String> {
    let names = text.split(BESIDE_NAME).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// The part of a store that finds runs.
pub trait SearchIndex {
    /// Notes runs, in one transaction. One that does not exist is passed over.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn note(&self, entries: &[SearchEntry]) -> Result<(), JournalError>;

    /// Up to `limit` runs that are not noted, or were before their end; the newest first, and
    /// after those of the last call where it returned `next`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn unnoted(&self, after: Option<i64>, limit: u32) -> Result<Unnoted, JournalError>;

    /// The runs that a query asks for, of those that are noted.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&self, query: &SearchQuery) -> Result<SearchPage, JournalError>;

    /// What the runs add up to that a query asks for, of those that are noted. Its terms, order
    /// and page do not count.
    ///
    /// # Errors
    /// The store cannot be read.
    fn totals(&self, query: &SearchQuery) -> Result<Totals, JournalError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for position in [Position { value: 0, at: 7 }, Position { value: i64::MAX, at: -1 }] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        for text in ["", "7", "a.7", "1.", "1.2.3", "1.99999999999999999999"] {
            assert_eq!(text.parse::<Position>(), Err(NoPosition), "{text}");
        }
    }

    #[test]
    fn places_are_in_the_order_of_times_and_numbers() {
        let places = [(0, 1), (0, 2), (1, 1), (1_700_000_000_000, 5), (u64::MAX, 0)];
        let places = places.map(|(created_ms, no)| place_of(created_ms, no));
        assert!(places.is_sorted() && places[0] >= first_place(0), "{places:?}");
        assert_eq!(created_ms(places[3]), 1_700_000_000_000);
        assert_eq!([day_of(places[2]), day_of(places[3])], [0, 19_675]);
    }
}
