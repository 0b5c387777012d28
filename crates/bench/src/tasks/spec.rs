//! A task as data: identity, sizes, constraints, the paper's figures. No behaviour of any
//! particular task.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::page::Page;

/// One of the three levels of PRIME-Bench (d = 0, 1, 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Difficulty {
    /// d = 0, the smallest instances.
    Easy,
    /// d = 1.
    Medium,
    /// d = 2, the largest instances.
    Hard,
}

impl Difficulty {
    /// All levels, easiest first.
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// The number d of the seed formula.
    pub fn rank(self) -> usize {
        self as usize
    }

    /// The level's name, as users type it.
    pub fn name(self) -> &'static str {
        ["easy", "medium", "hard"][self.rank()]
    }
}

impl fmt::Display for Difficulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Difficulty {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|d| d.name() == text)
            .ok_or_else(|| format!("unknown difficulty {text:?}: use easy, medium or hard"))
    }
}

/// The twelve categories, in the paper's order, and that of tasks outside the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// `comparison-sorting`.
    ComparisonSorting,
    /// `non-comparison-sorting`.
    NonComparisonSorting,
    /// `advanced-sorting`.
    AdvancedSorting,
    /// `graph-traversal`.
    GraphTraversal,
    /// `tree-structures`.
    TreeStructures,
    /// `classic-puzzles`.
    ClassicPuzzles,
    /// `automata`.
    Automata,
    /// `string-matching`.
    StringMatching,
    /// `mathematical`.
    Mathematical,
    /// `logic`.
    Logic,
    /// `data-structures`.
    DataStructures,
    /// `system-simulation`.
    SystemSimulation,
    /// Tasks that users define. Not one of [`Category::ALL`], and no name that can be asked for.
    Own,
}

impl Category {
    /// The twelve categories of the benchmark.
    pub const ALL: [Self; 12] = [
        Self::ComparisonSorting,
        Self::NonComparisonSorting,
        Self::AdvancedSorting,
        Self::GraphTraversal,
        Self::TreeStructures,
        Self::ClassicPuzzles,
        Self::Automata,
        Self::StringMatching,
        Self::Mathematical,
        Self::Logic,
        Self::DataStructures,
        Self::SystemSimulation,
    ];

    /// The kebab-case name.
    pub fn name(self) -> &'static str {
        [
            "comparison-sorting",
            "non-comparison-sorting",
            "advanced-sorting",
            "graph-traversal",
            "tree-structures",
            "classic-puzzles",
            "automata",
            "string-matching",
            "mathematical",
            "logic",
            "data-structures",
            "system-simulation",
            "own",
        ][self as usize]
    }

    /// Returns whether its tasks sort an array.
    pub fn sorts(self) -> bool {
        matches!(self, Self::ComparisonSorting | Self::NonComparisonSorting | Self::AdvancedSorting)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Category {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|category| category.name() == text).ok_or_else(|| {
            format!(
                "unknown category {text:?}: use one of {}",
                Self::ALL.map(Self::name).join(", ")
            )
        })
    }
}

/// The subject of a constraint; verifiers choose the kinds that they check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The line parses and can be applied.
    Format,
    /// A property that every valid state of the algorithm keeps, or a condition of a legal move. It
    /// does not say which of several legal moves is next.
    Invariant,
    /// The step is the one that the algorithm prescribes. Checking it means running the algorithm.
    Transition,
    /// Checked on the final state; for search tasks it is the goal test.
    Terminal,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Format, Self::Invariant, Self::Transition, Self::Terminal];

    /// The kind's name, as users type it.
    pub fn name(self) -> &'static str {
        ["format", "invariant", "transition", "terminal"][self as usize]
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            format!("unknown kind {text:?}: use one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// A set of constraint kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// All four kinds.
    pub const ALL: Self = Self(0b1111);
    /// No kind.
    pub const NONE: Self = Self(0);
    /// The kinds that are checked without running the algorithm.
    pub const WITHOUT_TRANSITION: Self =
        Self(1 << Kind::Format as u8 | 1 << Kind::Invariant as u8 | 1 << Kind::Terminal as u8);

    /// Returns whether the kind is in the set.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds of the set, in the order of [`Kind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// The kinds of either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The kinds of both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// All sets but the empty one.
    pub fn sets() -> impl Iterator<Item = Self> {
        // Each number up to `ALL` is the bit set of some kinds; 0 would be none.
        (1..=Self::ALL.0).map(Self)
    }
}

impl Serialize for Kinds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | (1 << kind as u8)))
    }
}

/// The gravity of a violation; its weight is in the paper's severity table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// w = 1.0.
    Critical,
    /// w = 0.6.
    Major,
    /// w = 0.2.
    Minor,
}

impl Severity {
    /// The weight w of eq. 2 in tenths, so that sums compare exactly with thresholds.
    pub fn tenths(self) -> u32 {
        match self {
            Self::Critical => 10,
            Self::Major => 6,
            Self::Minor => 2,
        }
    }

    /// The weight w of eq. 2: 1.0, 0.6 or 0.2.
    pub fn weight(self) -> f64 {
        f64::from(self.tenths()) / 10.0
    }
}

/// A named constraint of a task.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Constraint {
    /// The constraint's name, unique within its task.
    pub name: &'static str,
    /// What the constraint looks at.
    pub kind: Kind,
    /// How grave a violation is.
    pub severity: Severity,
    /// What the constraint demands, in words.
    pub meaning: &'static str,
}

/// The paper's figures for a task: stated steps, and accuracy in per cent without and with PRIME.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PaperFigures {
    /// Steps of a trace, as the paper states them.
    pub steps: u64,
    /// Accuracy without PRIME, in per cent.
    pub baseline: f64,
    /// Accuracy with PRIME, in per cent.
    pub prime: f64,
}

/// The constant part of a task.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spec {
    /// 0–85, in the order of the paper's result tables.
    pub id: u16,
    /// Kebab-case; what users type; never changes.
    pub slug: &'static str,
    /// The task's name for people.
    pub title: &'static str,
    /// The task's category.
    pub category: Category,
    /// The size parameters in words, one text per difficulty.
    pub sizes: [&'static str; 3],
    /// Forms of an action line, in the language of [`super::pattern`].
    pub actions: &'static [&'static str],
    /// At most 32; the first is `format`.
    pub constraints: &'static [Constraint],
    /// The smallest set of kinds that is known to be sound: every complete trace that these find
    /// clean ends in a right answer ([`crate::judge::soundness`]).
    pub sound: Kinds,
    /// Answer fields that decide whether two answers are the same; empty means all.
    pub decisive: &'static [&'static str],
    /// Input fields that an executor and its prompts must not see.
    pub hidden: &'static [&'static str],
    /// The paper's figures for the task.
    pub paper: PaperFigures,
    /// The texts of the task's page.
    #[serde(skip)]
    pub page: &'static Page,
}

impl Spec {
    /// Seed of an instance: `base·1,000,000 + id·10,000 + d·1,000 + index`.
    pub fn seed(&self, base_seed: u64, difficulty: Difficulty, index: u32) -> u64 {
        // Wrapping, because a client may choose any base seed.
        base_seed.wrapping_mul(1_000_000).wrapping_add(
            u64::from(self.id) * 10_000 + difficulty.rank() as u64 * 1_000 + u64::from(index),
        )
    }
}
