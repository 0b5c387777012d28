//! The file to which a study's records are appended. A process that is killed leaves whole lines
//! and at most one torn one, which the next process removes, so that a run is either recorded or
//! run again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::read::{ReadError, read};
use super::record::{Key, Record, Status};

/// Why a record cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The records that the file has already cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file cannot be opened, locked or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// Another process holds the file's lock.
    #[error("{}: another process adds records to it; wait for it, or choose another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is compressed, and records cannot be appended to it.
    #[error("{}: compressed records can only be read; decompress the file (gunzip) to add to it", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// The run was measured before.
    #[error("{}: {key} is there already; a run counts once", path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The key of the run.
        key: Box<Key>,
    },
}

/// A file of records, open for appending by this process alone.
#[derive(Debug)]
pub struct RecordLog {
    path: PathBuf,
    file: File,
    /// The newest status of each run.
    statuses: BTreeMap<Key, Status>,
    records: Vec<Record>,
    torn_bytes: usize,
}

impl RecordLog {
    /// Opens or creates a file, and removes a torn last line.
    ///
    /// # Errors
    /// Like [`read`], and if another process has it open, or it is compressed.
    pub fn open(path: &Path) -> Result<Self, AppendError> {
        let failed = |reason| AppendError::File { path: path.to_owned(), reason };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        // Locked before reading. The kernel releases the lock however this process ends.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(AppendError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
        }

        let found = read(path)?;
        if found.is_compressed {
            return Err(AppendError::Compressed { path: path.to_owned() });
        }
        // The torn line is removed, and new records follow the last whole one.
        file.set_len(found.whole_bytes).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if found.lacks_newline {
            file.write_all(b"\n").map_err(failed)?;
        }

        let statuses = found.records.iter().map(|record| (record.key(), record.status)).collect();
        let (records, torn_bytes) = (found.records, found.torn_bytes);
        Ok(Self { path: path.to_owned(), file, statuses, records, torn_bytes })
    }

    /// The records found when the file was opened.
    pub fn found(&self) -> &[Record] {
        &self.records
    }

    /// Bytes of the torn line that was removed; 0 if there was none.
    pub fn torn_bytes(&self) -> usize {
        self.torn_bytes
    }

    /// True if a run was measured; a run that was not is due again.
    pub fn is_measured(&self, key: &Key) -> bool {
        self.statuses.get(key) == Some(&Status::Measured)
    }

    /// Adds a record with one write, which survives the death of this process; [`RecordLog::sync`]
    /// makes it survive a crash of the machine. It replaces a record of the same run that was not
    /// measured.
    ///
    /// # Errors
    /// If the run was measured already, or the file cannot be written.
    pub fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let key = record.key();
        if self.is_measured(&key) {
            return Err(AppendError::Duplicate { path: self.path.clone(), key: Box::new(key) });
        }

        let mut line = serde_json::to_vec(record).expect("invariant: a record serialises");
        line.push(b'\n');

        let failed = |reason| AppendError::File { path: self.path.clone(), reason };
        let before = self.file.stream_position().map_err(failed)?;
        if let Err(reason) = self.file.write_all(&line) {
            // The disk may be full: a part of this line must not stand before the next one.
            let undone =
                self.file.set_len(before).and_then(|()| self.file.seek(SeekFrom::Start(before)));
            return Err(failed(undone.err().unwrap_or(reason)));
        }

        self.statuses.insert(key, record.status);
        Ok(())
    }

    /// Waits until everything is on the disk.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&self) -> Result<(), AppendError> {
        self.file.sync_all().map_err(|reason| AppendError::File { path: self.path.clone(), reason })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::read::read_all;
    use super::*;
    use crate::testing::record;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_record_of_an_earlier_version_says_verified_where_it_means_accepted() {
        let folder = folder();
        let path = folder.path().join("runs.jsonl");
        let now = serde_json::to_string(&record("prime", "n-queens", 0)).unwrap();
        let before = now.replace(r#""accepted":true"#, r#""verified":true"#);
        assert_ne!(before, now);

        fs::write(&path, before + "\n").unwrap();
        assert_eq!(read(&path).unwrap().records, [record("prime", "n-queens", 0)]);
    }

    #[test]
    fn appended_records_are_read_back() {
        let folder = folder();
        let path = folder.path().join("runs.jsonl");
        let all = [record("prime", "n-queens", 0), record("prime", "n-queens", 1)];

        let mut log = RecordLog::open(&path).unwrap();
        all.iter().for_each(|record| log.append(record).unwrap());
        log.sync().unwrap();

        assert_eq!(read(&path).unwrap().records, all);
        assert!(log.is_measured(&all[1].key()));
        assert!(matches!(log.append(&all[1]), Err(AppendError::Duplicate { .. })));
        assert!(matches!(RecordLog::open(&path), Err(AppendError::InUse { .. })));

        drop(log);
        assert_eq!(RecordLog::open(&path).unwrap().found(), all);
    }

    #[test]
    fn a_run_that_was_not_measured_is_due_again() {
        let folder = folder();
        let path = folder.path().join("runs.jsonl");
        let measured = record("prime", "n-queens", 0);
        let failed = Record { status: Status::NotMeasured, right: false, ..measured.clone() };

        let mut log = RecordLog::open(&path).unwrap();
        log.append(&failed).unwrap();
        assert!(!log.is_measured(&failed.key()));

        log.append(&measured).unwrap();

        drop(log);
        assert_eq!(read(&path).unwrap().records, [measured]);
        assert!(RecordLog::open(&path).unwrap().is_measured(&failed.key()));
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_lines() {
        let folder = folder();
        let path = folder.path().join("runs.jsonl");
        let all = [record("prime", "n-queens", 0), record("prime", "n-queens", 1)];
        let mut log = RecordLog::open(&path).unwrap();
        all.iter().for_each(|record| log.append(record).unwrap());
        drop(log);

        let bytes = fs::read(&path).unwrap();
        let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in
            (0..=bytes.len()).step_by(37).chain([first - 1, first, bytes.len() - 1, bytes.len()])
        {
            fs::write(&path, &bytes[..cut]).unwrap();
            // A line that lacks only its newline is whole.
            let whole = usize::from(cut >= first - 1) + usize::from(cut >= bytes.len() - 1);

            assert_eq!(read(&path).unwrap().records, all[..whole], "{cut}");

            let mut log = RecordLog::open(&path).unwrap();
            all[whole..].iter().for_each(|record| log.append(record).unwrap());
            assert_eq!(fs::read(&path).unwrap(), bytes, "{cut}");
        }
    }

    #[test]
    fn broken_files_are_refused_with_line_and_remedy() {
        let folder = folder();
        let path = folder.path().join("runs.jsonl");
        let line = serde_json::to_string(&record("prime", "n-queens", 0)).unwrap();
        let cases = [
            (format!("{{\n{line}\n"), "line 1: no record"),
            (
                format!("{line}\n{}\n", line.replace("\"schema\":1", "\"schema\":7")),
                "line 2: a record of schema 7",
            ),
            ("{\"schema\":9,\"other\":true}\n".to_owned(), "schema 9"),
            (line.replace("\"easy\"", "\"eassy\"") + "\n", "difficulty: \"eassy\""),
            (
                line.replace("\"format,invariant,terminal\"", "\"format,transitoin\"") + "\n",
                "checked_kinds: \"transitoin\"",
            ),
            (
                line.replace("\"right\"", "\"wright\"") + "\n",
                "line 1: no record: unknown field `wright`",
            ),
            (format!("{line}\n{line}\n"), "line 2: prime on n-queens/easy/000"),
        ];
        for (text, message) in cases {
            fs::write(&path, &text).unwrap();
            let error = RecordLog::open(&path).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains("runs.jsonl"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "a refused file is left as it is");
        }

        fs::write(&path, [0xff, 0xfe, b'\n']).unwrap();
        assert!(read(&path).is_err());
        assert!(matches!(read(&folder.path().join("none")), Err(ReadError::File { .. })));
    }

    #[test]
    fn compressed_records_are_read_and_never_written() {
        let folder = folder();
        let path = folder.path().join("runs.jsonl.gz");
        let all = [record("prime", "n-queens", 0), record("prime", "n-queens", 1)];
        let lines: String =
            all.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();

        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(lines.as_bytes()).unwrap();
        let bytes = encoder.finish().unwrap();

        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap().records, all);

        let error = RecordLog::open(&path).unwrap_err().to_string();
        assert!(error.contains("runs.jsonl.gz") && error.contains("gunzip"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);

        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(
            matches!(read(&path), Err(ReadError::File { .. })),
            "half of it is not the beginning of the records"
        );

        fs::write(&path, b"PAR1rest").unwrap();
        assert!(matches!(read(&path), Err(ReadError::Parquet { .. })));
    }

    #[test]
    fn several_files_are_one_without_repetition() {
        let folder = folder();
        let paths = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name));

        for (path, index) in paths.iter().zip(0..) {
            RecordLog::open(path).unwrap().append(&record("prime", "n-queens", index)).unwrap();
        }

        assert_eq!(read_all(&paths).unwrap().records.len(), 2);
        let twice = [paths[0].clone(), paths[0].clone()];
        let error = read_all(&twice).unwrap_err().to_string();
        assert!(error.contains("prime on n-queens/easy/000, base seed 7, repeat 0"), "{error}");
    }

    #[test]
    fn a_run_that_is_there_twice_is_named_with_the_file_and_line_that_count() {
        let folder = folder();
        let [a, b, c] = ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| folder.path().join(name));
        let measured = record("prime", "n-queens", 0);
        let failed = Record { status: Status::NotMeasured, right: false, ..measured.clone() };

        // The run in `a` was not measured, so that the one in `b` counts.
        RecordLog::open(&a).unwrap().append(&failed).unwrap();
        RecordLog::open(&b).unwrap().append(&measured).unwrap();
        // Two lines of one run are one record, the second of which counts.
        let mut log = RecordLog::open(&c).unwrap();
        let other = record("prime", "n-queens", 1);
        log.append(&Record { status: Status::NotMeasured, ..other.clone() }).unwrap();
        log.append(&other).unwrap();
        log.append(&measured).unwrap();
        drop(log);

        let error = read_all(&[a, b, c]).unwrap_err().to_string();
        assert!(error.contains("c.jsonl, line 3: prime on n-queens/easy/000"), "{error}");
        assert!(error.contains("is in ") && error.contains("b.jsonl already"), "{error}");
    }
}
