//! A table as data: typed cells, so that each output format writes numbers in its own way.

use prime_page::number;

use crate::statistics::{Computed, Interval};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, aligned left.
    Text,
    /// Numbers or counts, aligned right.
    Number,
    /// Intervals: two numbers in each cell.
    Interval,
}

/// A column with its heading, which includes the unit.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// What its cells hold.
    pub kind: ColumnKind,
}

impl Column {
    /// A column of text.
    pub fn text(name: &str) -> Self {
        Self { name: name.to_owned(), kind: ColumnKind::Text }
    }

    /// A column of numbers or counts; the heading names the unit.
    pub fn number(name: &str) -> Self {
        Self { name: name.to_owned(), kind: ColumnKind::Number }
    }

    /// A column of intervals; the heading names the unit.
    pub fn interval(name: &str) -> Self {
        Self { name: name.to_owned(), kind: ColumnKind::Interval }
    }
}

/// A value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text, written as it is.
    Text(String),
    /// A count, written in full.
    Count(u64),
    /// A number, shown with this many decimals.
    Number {
        /// The unrounded value, which CSV files get.
        value: f64,
        /// Digits after the point.
        decimals: usize,
    },
    /// An interval, shown with this many decimals.
    Interval {
        /// The unrounded interval.
        interval: Interval,
        /// Digits after the point.
        decimals: usize,
    },
    /// A p-value; below 0.001 only that fact is shown.
    P(f64),
    /// The reason why there is no value; printed below the table.
    LeftOut(String),
    /// A cell without a value, where none is expected.
    Empty,
}

impl Cell {
    /// A number with this many decimals.
    pub fn number(value: f64, decimals: usize) -> Self {
        if value.is_finite() { Self::Number { value, decimals } } else { Self::Empty }
    }

    /// A share from 0 to 1, in per cent with one decimal.
    pub fn percent(share: f64) -> Self {
        Self::number(100.0 * share, 1)
    }

    /// `part` of `of` in per cent; empty if `of` is 0.
    pub fn share(part: usize, of: usize) -> Self {
        if of == 0 { Self::Empty } else { Self::percent(part as f64 / of as f64) }
    }

    /// A count.
    pub fn count(count: usize) -> Self {
        Self::Count(count as u64)
    }

    /// A number of instances; if some inputs repeat, with the number of different inputs, by which
    /// intervals are computed.
    pub fn instances(instances: usize, inputs: usize) -> Self {
        if instances == inputs {
            Self::count(instances)
        } else {
            let count = |number: usize| number::count(number as u64);
            Self::Text(format!("{} ({} inputs)", count(instances), count(inputs)))
        }
    }

    /// An interval of shares, in per cent.
    pub fn percent_interval(interval: &Computed<Interval>) -> Self {
        Self::computed(interval.as_ref().copied(), |interval| {
            Self::interval(interval.scaled(100.0), 1)
        })
    }

    /// An interval with this many decimals.
    pub fn interval(interval: Interval, decimals: usize) -> Self {
        Self::Interval { interval, decimals }
    }

    /// The cell of a statistic, or the reason why it is left out.
    pub fn computed<T, E: std::fmt::Display>(
        value: Result<T, E>,
        cell: impl FnOnce(T) -> Self,
    ) -> Self {
        match value {
            Ok(value) => cell(value),
            Err(reason) => Self::LeftOut(reason.to_string()),
        }
    }

    /// The text as people read it; `mark` stands for a reason.
    pub(super) fn plain(&self, mark: &str) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => number::count(*count),
            Self::Number { value, decimals } => number::fixed(*value, *decimals),
            Self::Interval { interval, decimals } => {
                format!(
                    "{} to {}",
                    number::fixed(interval.low, *decimals),
                    number::fixed(interval.high, *decimals)
                )
            }
            Self::P(p) if *p < 0.001 => "< 0.001".to_owned(),
            Self::P(p) => format!("{p:.3}"),
            Self::LeftOut(_) => format!("–{mark}"),
            Self::Empty => String::new(),
        }
    }

    /// The text as people read it, without a mark.
    pub(crate) fn shown(&self) -> String {
        self.plain("")
    }

    /// The value by which the page sorts; `None` sorts last.
    pub(crate) fn sort_value(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Number { value, .. } | Self::P(value) => Some(*value),
            Self::Interval { interval, .. } => Some(interval.low),
            Self::Text(_) | Self::LeftOut(_) | Self::Empty => None,
        }
    }
}

/// The rounded number without groups of digits, for siunitx, and without a minus before zero.
pub(super) fn rounded(value: f64, decimals: usize) -> String {
    number::fixed(value, decimals).replace(',', "")
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of its files, and its anchor on the page.
    pub id: String,
    /// What it corresponds to in the paper: `Table 2`, `Tables 45 to 49`.
    pub paper: &'static str,
    /// Heading of the table.
    pub title: String,
    /// What was measured and how: n, seeds, intervals, tests.
    pub caption: String,
    /// Columns, from left to right.
    pub columns: Vec<Column>,
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The reasons of cells that are left out, in order of appearance; a cell's mark is the place
    /// of its reason, from 1.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = Vec::new();
        for cell in self.rows.iter().flatten() {
            if let Cell::LeftOut(reason) = cell
                && !reasons.contains(&reason.as_str())
            {
                reasons.push(reason);
            }
        }
        reasons
    }

    /// The mark of a cell that is left out, from 1.
    pub(crate) fn mark_of(reasons: &[&str], cell: &Cell) -> Option<usize> {
        let Cell::LeftOut(reason) = cell else { return None };
        reasons.iter().position(|other| other == reason).map(|place| place + 1)
    }
}

/// A name for files and anchors: lower-case letters, digits and single hyphens.
pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}
