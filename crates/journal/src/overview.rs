//! What runs add up to, by the facts of the search index.

use std::collections::BTreeMap;

/// Figures of runs, which add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of runs.
    pub runs: u64,
    /// Committed steps, as their results count them.
    pub steps: u64,
    /// Proposals of all trajectories.
    pub proposals: u64,
    /// Proposals that were rejected or had to be tried again.
    pub refused: u64,
    /// Tokens of all prompts and completions.
    pub tokens: u64,
    /// Tokens of all completions.
    pub completion_tokens: u64,
    /// What the tokens cost, in billionths of the currency; `None` if none has a price.
    pub cost_nanos: Option<u64>,
    /// Run time, in milliseconds.
    pub wall_ms: u64,
}

impl Sums {
    /// Adds the figures of other runs.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.runs, other.runs),
            (&mut self.steps, other.steps),
            (&mut self.proposals, other.proposals),
            (&mut self.refused, other.refused),
            (&mut self.tokens, other.tokens),
            (&mut self.completion_tokens, other.completion_tokens),
            (&mut self.wall_ms, other.wall_ms),
        ] {
            *sum = sum.saturating_add(more);
        }
        if let Some(more) = other.cost_nanos {
            self.cost_nanos = Some(self.cost_nanos.unwrap_or_default().saturating_add(more));
        }
    }
}

/// What some of the runs add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Their figures. Those of open runs are 0, except their number.
    pub sums: Sums,
    /// Runs that other daemons have executed, which nothing else counts.
    pub imported: u64,
    /// Runs that are not over.
    pub open: u64,
    /// Runs that are over, by the status under which they are listed.
    pub statuses: BTreeMap<String, u64>,
    /// The same runs by what ended them.
    pub outcomes: BTreeMap<String, u64>,
}

/// How many lines of a task a constraint refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedLines {
    /// The slug of the task.
    pub task: String,
    /// The name of the constraint.
    pub constraint: String,
    /// Lines that violated it and were refused.
    pub lines: u64,
}

/// What the runs of a query add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All runs together.
    pub total: Part,
    /// Runs by the slug of their task.
    pub tasks: BTreeMap<String, Part>,
    /// Runs by the name of a model; a run with several models counts for each.
    pub models: BTreeMap<String, Part>,
    /// Runs by the day of their acceptance, in days since 1970, UTC.
    pub days: BTreeMap<u64, Part>,
    /// What refused their lines, most lines first.
    pub refused: Vec<RefusedLines>,
    /// When the first of the runs was accepted, in milliseconds since 1970.
    pub first_ms: Option<u64>,
}

/// What stands between a constraint and its count, and after the count.
const BESIDE_COUNT: char = '\u{1f}';
const AFTER_COUNT: char = '\u{1e}';

/// Counts by constraint as one text, as [`counts_of`] reads it.
pub fn counts_text(counts: &[(String, u64)]) -> String {
    let count = |(name, lines): &(String, u64)| {
        format!("{}{BESIDE_COUNT}{lines}{AFTER_COUNT}", plain(name))
    };
    counts.iter().map(count).collect()
}

/// Found in U+001E and a text of [`counts_text`] if that counts this constraint.
pub fn counted_text(name: &str) -> String {
    format!("{AFTER_COUNT}{}{BESIDE_COUNT}", plain(name))
}

/// A name as it stands in [`counts_text`].
fn plain(name: &str) -> String {
    name.replace([BESIDE_COUNT, AFTER_COUNT], " ")
}

/// The counts in a text of [`counts_text`]. Anything else is skipped.
pub fn counts_of(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.split_terminator(AFTER_COUNT).filter_map(|part| {
        let (name, lines) = part.split_once(BESIDE_COUNT)?;
        Some((name, lines.parse().ok()?))
    })
}

/// The count of a constraint in a text of [`counts_text`]; 0 if it is not among them.
pub fn count_of(text: &str, name: &str) -> u64 {
    let name = plain(name);
    counts_of(text).find(|(counted, _)| *counted == name).map_or(0, |(_, lines)| lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_were_written() {
        let counts = [("sorted", 3), ("", 1), ("größe \u{1f} x\u{1e}", 7)];
        let counts = counts.map(|(name, lines)| (name.to_owned(), lines));
        let text = counts_text(&counts);
        let read: Vec<_> = counts_of(&text).collect();
        assert_eq!(read, [("sorted", 3), ("", 1), ("größe   x ", 7)]);
        let of = |name| count_of(&text, name);
        assert_eq!([of("größe \u{1f} x\u{1e}"), of(""), of("sort")], [7, 1, 0]);
        assert_eq!(counts_of("no count").count() + counts_of("").count(), 0);
    }
}
