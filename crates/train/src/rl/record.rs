//! What a run leaves behind for its reader: a line of JSON per iteration.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::evaluation::Held;
use crate::TrainError;

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub iteration: u64,
    /// Processor seconds so far, and those of this iteration by part.
    pub cpu_s: f64,
    pub rollout_s: f64,
    pub update_s: f64,
    pub evaluation_s: f64,
    /// Mean total reward of the episodes.
    pub reward: f64,
    /// Unweighted means: task, verification, efficiency, format. Absent where the reward has no such parts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reward_parts: Option<[f64; 4]>,
    /// Share of the trajectories played from a start with a verified answer, and with a right one.
    pub solved: f64,
    pub right: f64,
    /// Share of groups whose rewards differ.
    pub mixed: f64,
    /// Completions learnt from.
    pub samples: u64,
    /// Mean tokens of a completion.
    pub length: f64,
    /// Per token, in nats.
    pub kl: f64,
    pub entropy: f64,
    /// Share of tokens whose ratio was clipped.
    pub clipped: f64,
    pub loss: f64,
    pub gradient_norm: f64,
    pub rate: f64,
    /// Tokens drawn, and tokens learnt from.
    pub drawn: u64,
    pub learnt: u64,
    /// Where there was an evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held_out: Vec<Held>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The budget is spent.
    Finished,
    /// It was interrupted and can be resumed.
    Interrupted,
    /// The policy moved too far from the initial one.
    KlCollapse,
    /// Held-out instances that the initial policy solved are no longer solved.
    HeldOutCollapse,
}

impl Ending {
    pub fn text(self) -> &'static str {
        match self {
            Self::Finished => "the budget is spent",
            Self::Interrupted => "interrupted, --resume continues",
            Self::KlCollapse => "stopped: the divergence from the initial policy exceeds stop.kl_max",
            Self::HeldOutCollapse => {
                "stopped: the share of held-out instances solved fell by more than stop.solved_drop"
            }
        }
    }
}

/// The file of records beside a model.
pub fn path(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".records.jsonl");
    PathBuf::from(name)
}

/// Removes what was recorded behind `iterations`, or all of it if they are none: the checkpoint may be older.
///
/// # Errors
/// If the file cannot be read or written.
pub fn truncate(path: &Path, iterations: u64) -> Result<(), TrainError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(TrainError::Io { action: "read", path: path.to_owned(), source }),
    };
    let is_kept = |line: &&str| {
        serde_json::from_str::<Record>(line).is_ok_and(|record| record.iteration <= iterations) && iterations > 0
    };
    let kept: String = text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
    crate::checkpoint::replace(path, kept.as_bytes())
}

/// Appends a record.
///
/// # Errors
/// If the file cannot be written.
pub fn append(path: &Path, record: &Record) -> Result<(), TrainError> {
    let mut line = serde_json::to_vec(record).expect("invariant: records serialise");
    line.push(b'\n');
    let write = || OpenOptions::new().create(true).append(true).open(path)?.write_all(&line);
    write().map_err(|source| TrainError::Io { action: "write", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_checkpoint_is_recorded_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("m.gguf.records.jsonl");
        for iteration in 1..=5 {
            append(&file, &Record { iteration, ..Record::default() }).expect("written");
        }
        truncate(&file, 3).expect("truncated");
        let text = std::fs::read_to_string(&file).expect("readable");
        let left: Vec<u64> =
            text.lines().map(|line| serde_json::from_str::<Record>(line).expect("a record").iteration).collect();
        assert_eq!(left, [1, 2, 3]);
        truncate(&file, 0).expect("truncated");
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), "");
        truncate(&folder.path().join("none"), 3).expect("nothing to do");
    }
}
