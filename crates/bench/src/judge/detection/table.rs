//! The table as a file: a header that describes the measurement, and a row for each task.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Detection;
use crate::fnv1a;
use crate::tasks::{Constraint, Kinds};

/// Version of the method of measuring; raised when the method changes.
const VERSION: u32 = 1;
/// The command that makes the file.
pub(super) const COMMAND: &str =
    "prime-agents bench corrupt --table crates/bench/src/judge/detection/detection.json";

// Compiled in, so that a verdict needs no I/O.
pub(super) static TEXT: &str = include_str!("detection.json");
static CURRENT: LazyLock<DetectionTable> =
    LazyLock::new(|| DetectionTable::read(TEXT).expect("invariant: a test reads the file"));

/// Wrong steps of a task, and the number that each set of kinds found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionRow {
    /// The task's slug.
    pub task: String,
    /// The [`digest`] of the constraints that were measured.
    pub constraints: String,
    /// Number of wrong steps that were tried.
    pub tried: u64,
    /// Wrong steps found, by the names of the kinds, joined by `+`.
    found: BTreeMap<String, u64>,
}

/// The measured detection of all tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionTable {
    /// Version of the method of measuring.
    pub version: u32,
    /// The command that made the file.
    pub command: String,
    /// Base seed of the instances.
    pub base_seed: u64,
    /// Corrupted traces of each task, a third of them of each level.
    pub traces: u64,
    /// A row for each task, in benchmark order.
    pub rows: Vec<DetectionRow>,
}

/// `format+invariant`.
fn name(kinds: Kinds) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join("+")
}

fn json(row: &DetectionRow) -> String {
    serde_json::to_string(row).expect("invariant: rows serialise")
}

/// A digest of the names and kinds of constraints.
pub fn digest(constraints: &[Constraint]) -> String {
    let mut text = String::new();
    for Constraint { name, kind, .. } in constraints {
        writeln!(text, "{name} {kind}").expect("invariant: writing to a string succeeds");
    }
    format!("{:016x}", fnv1a(text.bytes()))
}

impl DetectionRow {
    pub(super) fn new(task: &str, constraints: String) -> Self {
        let found = Kinds::sets().map(|kinds| (name(kinds), 0)).collect();
        Self { task: task.to_owned(), constraints, tried: 0, found }
    }

    /// Counts a wrong step that `is_found` by some sets of kinds.
    pub(super) fn count(&mut self, is_found: impl Fn(Kinds) -> bool) {
        self.tried += 1;
        for kinds in Kinds::sets() {
            *self.found.entry(name(kinds)).or_default() += u64::from(is_found(kinds));
        }
    }

    /// `None` for no kinds at all.
    pub fn detection(&self, kinds: Kinds) -> Option<Detection> {
        Some(Detection { tried: self.tried, found: *self.found.get(&name(kinds))? })
    }
}

impl DetectionTable {
    /// The table that was measured for this version of the benchmark.
    pub fn current() -> &'static Self {
        &CURRENT
    }

    /// [`DetectionTable::id`] of the current table, computed once: every verified result carries
    /// it.
    pub fn current_id() -> &'static str {
        static ID: LazyLock<String> = LazyLock::new(|| CURRENT.id());
        &ID
    }

    /// A table of this version's method.
    pub fn new(base_seed: u64, traces: u64, rows: Vec<DetectionRow>) -> Self {
        Self { version: VERSION, command: COMMAND.to_owned(), base_seed, traces, rows }
    }

    /// Reads a table.
    ///
    /// # Errors
    /// When the text is not a table.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Writes the table as JSON with a line for each task, so that a diff shows what changed.
    pub fn to_json(&self) -> String {
        // serde_json would write either a single line or one for every value.
        let mut text = format!(
            "{{\n\"version\": {}, \"command\": {}, \"base_seed\": {}, \"traces\": {},\n\"rows\": [\n",
            self.version,
            serde_json::Value::from(self.command.as_str()),
            self.base_seed,
            self.traces
        );

        let rows: Vec<_> = self.rows.iter().map(json).collect();
        text += &rows.join(",\n");
        text + "\n]\n}\n"
    }

    /// Identifies this table in results: the version of the method of measuring, and a digest of
    /// the figures.
    pub fn id(&self) -> String {
        let digest = fnv1a(self.to_json().bytes());
        // Half of the digest tells tables apart and stays short in results.
        format!("{}-{:08x}", self.version, digest >> 32)
    }

    /// The wrong steps of a task that these kinds find; `None` if the table has no such figure.
    pub fn detection(&self, task: &str, kinds: Kinds) -> Option<Detection> {
        self.rows.iter().find(|row| row.task == task)?.detection(kinds)
    }
}
