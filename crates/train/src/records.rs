//! The record of a training for its reader: a file of JSON lines beside the model.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{
    TrainError,
    checkpoint::{beside, replace},
};

/// The records of one model.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
}

impl Records {
    /// Opens the file beside the model `out`, and drops the records after `done`: the checkpoint
    /// from which the run continues may be older. `counter` is the field of a record that holds its
    /// step; a run that has not begun (`None`) drops all records.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(out: &Path, counter: &str, done: Option<u64>) -> Result<Self, TrainError> {
        let path = beside(out, ".records.jsonl");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let is_kept = |line: &&str| {
                    let record: Option<Value> = serde_json::from_str(line).ok();
                    record
                        .and_then(|record| record[counter].as_u64())
                        .is_some_and(|at| done.is_some_and(|done| at <= done))
                };

                let kept: String =
                    text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();

                replace(&path, kept.as_bytes())?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(TrainError::Io { action: "read", path, source }),
        }
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&self, record: &impl Serialize) -> Result<(), TrainError> {
        let mut line = serde_json::to_vec(record).expect("invariant: records serialise");
        line.push(b'\n');

        let write =
            || OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(&line);
        write().map_err(|source| TrainError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_lies_behind_the_checkpoint_is_recorded_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("m.gguf");
        let records = Records::open(&out, "step", None).expect("no file yet");

        for step in 1..=5 {
            records.append(&json!({"step": step})).expect("written");
        }

        let left = || std::fs::read_to_string(records.path()).expect("readable");

        // The last line was cut short by a crash.
        std::fs::write(records.path(), left() + "{\"step\": 2, torn").expect("written");

        Records::open(&out, "step", Some(3)).expect("opened");
        assert_eq!(left(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");

        Records::open(&out, "step", None).expect("opened");
        assert_eq!(left(), "");
    }
}
