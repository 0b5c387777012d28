//! A task's page in the benchmark: texts for people and prompts, and the size parameters of each
//! level.

use serde::Serialize;

use super::rng::TaskRng;
use super::spec::Difficulty;

/// The texts of a task's page, from the `tasks.toml` of its category.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Page {
    /// The distribution of inputs, and the rule of rejection.
    pub generate: &'static str,
    /// What is asked, without the algorithm.
    pub problem: &'static str,
    /// The algorithm that a trace follows.
    pub algorithm: &'static str,
    /// The meaning of one step of the trace.
    pub step: &'static str,
    /// Decisions where the paper is silent or wrong; may be empty. For readers of the page: no
    /// prompt shows it.
    pub note: &'static str,
    /// The forms of its action lines.
    pub actions: &'static [ActionPage],
    /// Field and meaning.
    pub input: &'static [(&'static str, &'static str)],
    /// Field and meaning.
    pub answer: &'static [(&'static str, &'static str)],
    /// Field and meaning.
    pub state: &'static [(&'static str, &'static str)],
    /// A small worked example.
    pub example: Example,
}

impl Page {
    /// The page of a problem outside the benchmark.
    pub const EMPTY: Self = Self {
        generate: "",
        problem: "",
        algorithm: "",
        step: "",
        note: "",
        actions: &[],
        input: &[],
        answer: &[],
        state: &[],
        example: Example { input: "{}", answer: "{}", steps: 0, first: &[], last: &[] },
    };
}

/// One form of an action line.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ActionPage {
    /// The form with named placeholders.
    pub line: &'static str,
    /// What a legal line does to the state.
    pub effect: &'static str,
    /// A line of this form.
    pub example: &'static str,
    /// A pattern of the whole line, where the page gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<&'static str>,
}

/// A small worked instance.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Example {
    /// JSON.
    pub input: &'static str,
    /// JSON.
    pub answer: &'static str,
    /// Number of steps of the whole trace.
    pub steps: u64,
    /// The first actions, up to 12.
    pub first: &'static [&'static str],
    /// The last actions, up to 3.
    pub last: &'static [&'static str],
}

/// The values that a size parameter takes at one level.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// One of these values.
    Of(&'static [i64]),
    /// Both ends included.
    Between(i64, i64),
}

/// A size parameter at the three levels.
#[derive(Clone, Copy, Debug)]
pub struct Sizes(pub [Size; 3]);

impl Sizes {
    /// Draws a value uniformly.
    pub fn draw(&self, difficulty: Difficulty, rng: &mut TaskRng) -> usize {
        // A single value takes no draw.
        let value = match self.0[difficulty.rank()] {
            Size::Of([value]) => *value,
            Size::Of(values) => rng.one_of(values),
            Size::Between(min, max) if min == max => min,
            Size::Between(min, max) => rng.between(min, max),
        };
        usize::try_from(value).expect("invariant: sizes that are drawn are not negative")
    }

    /// Returns whether a value is within the bounds: for parameters that only accept or reject.
    pub fn accepts(&self, difficulty: Difficulty, value: u64) -> bool {
        let Ok(value) = i64::try_from(value) else { return false };
        match self.0[difficulty.rank()] {
            Size::Of(values) => values.contains(&value),
            Size::Between(min, max) => (min..=max).contains(&value),
        }
    }

    /// Lowest and highest value.
    pub fn range(&self, difficulty: Difficulty) -> (i64, i64) {
        match self.0[difficulty.rank()] {
            Size::Of(values) => {
                let extreme = |value: Option<&i64>| *value.expect("invariant: sizes name a value");
                (extreme(values.iter().min()), extreme(values.iter().max()))
            }
            Size::Between(min, max) => (min, max),
        }
    }
}

/// Constants that the build script generates from the pages: one module per task, named after its
/// slug.
#[allow(
    clippy::unreadable_literal,
    clippy::wildcard_imports,
    clippy::doc_markdown,
    reason = "written by the build script from prose"
)]
pub(crate) mod pages {
    use super::super::spec::{Category, Constraint, Kind, Kinds, PaperFigures, Severity, Spec};
    use super::{ActionPage, Example, Page, Size, Sizes};

    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}
