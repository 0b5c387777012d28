//! The findings of attacks on each task, from a file that `bench corrupt --adversarial --table`
//! writes. Results quote it without a search.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::AttackRow;
use crate::fnv1a;
use crate::judge::detection::digest;
use crate::tasks::{AnyTask, Kinds};

/// Version of the search; raised when it changes.
const VERSION: u32 = 1;
/// The kinds that are attacked: with `transition`, every step is compared with the algorithm's, and
/// there is nothing to find.
pub const ATTACKED: Kinds = Kinds::WITHOUT_TRANSITION;
/// The command that makes the file.
const COMMAND: &str = "prime-agents bench corrupt --adversarial --table crates/bench/src/judge/soundness/soundness.json";

const TEXT: &str = include_str!("soundness.json");
static CURRENT: LazyLock<SoundnessTable> =
    LazyLock::new(|| serde_json::from_str(TEXT).expect("invariant: a test reads the file"));

/// The findings of attacks on a task with `format`, `invariant` and `terminal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoundnessRow {
    /// The task's slug.
    pub task: String,
    /// The digest of the constraints that were attacked.
    pub constraints: String,
    /// Number of attacks that were tried.
    pub attacks: u64,
    /// Clean traces that left the algorithm's path and ended.
    pub ended: u64,
    /// Number of them that end in a wrong answer.
    pub wrong: u64,
}

/// The attacks on all tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoundnessTable {
    /// Version of the method of attacking.
    pub version: u32,
    /// The command that made the file.
    pub command: String,
    /// Seed of the instances and of the search.
    pub seed: u64,
    /// A row for each task, in benchmark order.
    pub rows: Vec<SoundnessRow>,
}

impl SoundnessRow {
    /// The row of a task's attacks.
    pub fn new(task: &'static dyn AnyTask, row: &AttackRow) -> Self {
        Self {
            task: row.task.to_owned(),
            constraints: digest(task.spec().constraints),
            attacks: row.walks,
            ended: row.ended,
            wrong: row.wrong,
        }
    }
}

impl SoundnessTable {
    /// The table of this version of the benchmark.
    pub fn current() -> &'static Self {
        &CURRENT
    }

    /// A table of this version's method.
    pub fn new(seed: u64, rows: Vec<SoundnessRow>) -> Self {
        Self { version: VERSION, command: COMMAND.to_owned(), seed, rows }
    }

    /// The attacks on a task; `None` outside the benchmark.
    pub fn row(&self, task: &str) -> Option<&SoundnessRow> {
        self.rows.iter().find(|row| row.task == task)
    }

    /// Writes the table as JSON with a line for each task, so that a diff shows what changed.
    pub fn to_json(&self) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| serde_json::to_string(row).expect("invariant: rows serialise"))
            .collect();
        let command = serde_json::Value::from(self.command.as_str());
        format!(
            "{{\n\"version\": {}, \"command\": {command}, \"seed\": {},\n\"rows\": [\n{}\n]\n}}\n",
            self.version,
            self.seed,
            rows.join(",\n")
        )
    }

    /// Identifies this table in results: its version, and a digest of its figures.
    pub fn id(&self) -> String {
        let digest = fnv1a(self.to_json().bytes());
        format!("{}-{:08x}", self.version, digest >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks;

    #[test]
    fn the_file_is_as_the_command_writes_it() {
        assert_eq!(SoundnessTable::current().to_json(), TEXT);
        assert_eq!(SoundnessTable::current().command, COMMAND);
    }

    #[test]
    fn it_says_of_every_task_what_its_page_says() {
        let table = SoundnessTable::current();
        assert_eq!(table.rows.len(), tasks::all().count());

        for task in tasks::all() {
            let spec = task.spec();
            let row = table.row(spec.slug).expect("measured");
            assert_eq!(
                row.constraints,
                digest(spec.constraints),
                "{}: the constraints have changed: {COMMAND}",
                spec.slug
            );
            assert!(row.wrong == 0 || spec.sound == Kinds::ALL, "{}", spec.slug);
        }
    }
}
