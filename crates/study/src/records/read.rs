//! Reading records from JSON Lines, which may be compressed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::record::{Key, Record, SCHEMA};

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read or decompressed.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
    /// The record has another version of the columns.
    #[error(
        "{}, line {line}: a record of schema {found}, but this version reads schema {SCHEMA}; make the report with the \
         version of prime-agents that wrote it", path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Version of the record's columns.
        found: u64,
    },
    /// The line is not a record.
    #[error("{}, line {line}: no record: {reason}; remove the line, or restore the file", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// The file is Parquet, which is only written.
    #[error(
        "{}: a Parquet file, which reports write for other tools; name the records that `study run` wrote (JSON Lines, plain \
         or compressed by gzip)", path.display()
    )]
    Parquet {
        /// The file.
        path: PathBuf,
    },
    /// A column holds a name that is not among its allowed ones.
    #[error("{}, line {line}: {column}: {value:?} is not a name that this version knows", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column.
        column: &'static str,
        /// The name that it holds.
        value: String,
    },
    /// The record has values that no run can have.
    #[error(
        "{}, line {line}: {what}: no run has that; remove the line, or restore the file",
        path.display()
    )]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The contradiction, in words.
        what: String,
    },
    /// The run was measured in another file, or in another line of this one.
    #[error(
        "{}, line {line}: {key} is in {} already; a run counts once", path.display(), first.display()
    )]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key of the run.
        key: Box<Key>,
        /// The file whose record counts.
        first: PathBuf,
    },
    /// The task was computed by another program than in the records before.
    #[error(
        "{}, line {line}: the program of the task `{task}` is not that of the records before it \
         (`task_digest` {found}, not {before}): results of different programs do not belong \
         together; report them apart, or run the study again with one of the programs",
        path.display()
    )]
    OtherProgram {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Name of the user's task.
        task: String,
        /// The record's digest of the program.
        found: String,
        /// The digest of the program in the records before.
        before: String,
    },
}

/// First bytes of files compressed by gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// First bytes of Parquet files.
const PARQUET: &[u8] = b"PAR1";

/// Records of different runs, each with its origin.
struct Gathered<Origin> {
    records: Vec<Record>,
    /// The origin of each record.
    origins: Vec<Origin>,
    places: BTreeMap<Key, usize>,
}

impl<Origin: Clone> Gathered<Origin> {
    fn new() -> Self {
        Self { records: Vec::new(), origins: Vec::new(), places: BTreeMap::new() }
    }

    /// Adds a record, replacing a record of the same run that was not measured.
    ///
    /// # Errors
    /// Where the run was measured already: its key, and the origin of the record that counts.
    fn add(&mut self, record: Record, origin: Origin) -> Result<(), (Key, Origin)> {
        match self.places.entry(record.key()) {
            Entry::Vacant(place) => {
                place.insert(self.records.len());
                self.records.push(record);
                self.origins.push(origin);
            }
            Entry::Occupied(place) => {
                let place = *place.get();
                if self.records[place].is_measured() {
                    return Err((record.key(), self.origins[place].clone()));
                }
                self.records[place] = record;
                self.origins[place] = origin;
            }
        }
        Ok(())
    }
}

/// Digests of the programs of users' tasks, by the names of the tasks.
#[derive(Default)]
struct Programs(BTreeMap<String, String>);

impl Programs {
    /// Refuses a record whose task was computed by another program in an earlier record.
    fn check(&mut self, path: &Path, line: usize, record: &Record) -> Result<(), ReadError> {
        // A benchmark task has no program, and its records have no digest.
        let Some(found) = &record.task_digest else { return Ok(()) };
        let before = self.0.entry(record.task.clone()).or_insert_with(|| found.clone());
        if before == found {
            return Ok(());
        }
        let (task, before) = (record.task.clone(), before.clone());
        Err(ReadError::OtherProgram {
            path: path.to_owned(),
            line,
            task,
            found: found.clone(),
            before,
        })
    }
}

/// Records of a file.
#[derive(Debug, Default)]
pub struct Records {
    /// One record for each run, in the order of the lines.
    pub records: Vec<Record>,
    /// The line of each record in its file, counted from 1.
    pub(super) lines: Vec<usize>,
    /// Bytes of a last line that was not written whole because the writer was killed. They are
    /// ignored.
    pub torn_bytes: usize,
    /// Bytes of the whole lines.
    pub whole_bytes: u64,
    /// True if the last line is whole but lacks its newline.
    pub(super) lacks_newline: bool,
    /// True if the file is compressed.
    pub(super) is_compressed: bool,
}

impl From<Vec<Record>> for Records {
    fn from(records: Vec<Record>) -> Self {
        Self { records, ..Self::default() }
    }
}

/// The field that every version of a record has.
#[derive(Deserialize)]
struct Version {
    schema: u64,
}

fn parse(path: &Path, line: usize, text: &str) -> Result<Record, ReadError> {
    let path = || path.to_owned();
    match serde_json::from_str::<Record>(text) {
        Ok(record) if record.schema == SCHEMA => match record.unknown_name() {
            None => match record.contradiction() {
                None => Ok(record),
                Some(what) => Err(ReadError::Contradiction { path: path(), line, what }),
            },
            Some((column, value)) => Err(ReadError::Name { path: path(), line, column, value }),
        },
        Ok(record) => Err(ReadError::Schema { path: path(), line, found: record.schema.into() }),
        // The version explains an unreadable record better than the field that serde stumbled over.
        Err(reason) => match serde_json::from_str::<Version>(text) {
            Ok(Version { schema }) if schema != u64::from(SCHEMA) => {
                Err(ReadError::Schema { path: path(), line, found: schema })
            }
            _ => Err(ReadError::Line { path: path(), line, reason: reason.to_string() }),
        },
    }
}

/// Reads a file of records, which may be compressed by gzip. A last line that is not whole is
/// ignored and counted. Where a run was not measured at first, its later record counts.
///
/// # Errors
/// If the file cannot be read or decompressed, is Parquet, a line other than the last is not a
/// record, a record has another schema, or a run was measured twice.
pub fn read(path: &Path) -> Result<Records, ReadError> {
    let failed = |reason| ReadError::File { path: path.to_owned(), reason };

    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    // The content decides, because a file may have any name.
    let start = file.fill_buf().map_err(failed)?;
    if start.starts_with(PARQUET) {
        return Err(ReadError::Parquet { path: path.to_owned() });
    }

    if start.starts_with(GZIP) {
        let records = read_lines(path, BufReader::new(MultiGzDecoder::new(file)))?;
        return Ok(Records { is_compressed: true, ..records });
    }
    read_lines(path, file)
}

fn read_lines(path: &Path, mut reader: impl BufRead) -> Result<Records, ReadError> {
    let failed = |reason| ReadError::File { path: path.to_owned(), reason };

    let mut records = Records::default();
    let (mut text, mut gathered) = (Vec::new(), Gathered::new());
    let mut programs = Programs::default();

    for line in 1.. {
        text.clear();
        let bytes = reader.read_until(b'\n', &mut text).map_err(failed)?;
        if bytes == 0 {
            break;
        }

        let is_whole = text.last() == Some(&b'\n');
        let parsed = match std::str::from_utf8(&text) {
            Ok(text) => parse(path, line, text.trim_end()),
            Err(reason) => {
                Err(ReadError::Line { path: path.to_owned(), line, reason: reason.to_string() })
            }
        };

        match parsed {
            Ok(record) => {
                programs.check(path, line, &record)?;
                gathered.add(record, line).map_err(|(key, _)| {
                    let (path, first) = (path.to_owned(), path.to_owned());
                    ReadError::Duplicate { path, line, key: Box::new(key), first }
                })?;
                records.whole_bytes += bytes as u64;
                records.lacks_newline = !is_whole;
            }
            // Torn by a crash. A whole line that cannot be read is an error instead.
            Err(ReadError::Line { .. }) if !is_whole => records.torn_bytes = bytes,
            Err(error) => return Err(error),
        }
    }

    (records.records, records.lines) = (gathered.records, gathered.origins);
    Ok(records)
}

/// Reads several files as one, in order.
///
/// # Errors
/// Like [`read`], and if a run is there twice.
pub fn read_all(paths: &[PathBuf]) -> Result<Records, ReadError> {
    let mut all = Records::default();
    // Each record's file is kept beside it, so that the error can name both.
    let (mut gathered, mut programs) = (Gathered::new(), Programs::default());
    for path in paths {
        let records = read(path)?;

        for (line, record) in records.lines.into_iter().zip(records.records) {
            programs.check(path, line, &record)?;
            gathered.add(record, path).map_err(|(key, first)| ReadError::Duplicate {
                path: path.clone(),
                line,
                key: Box::new(key),
                first: first.clone(),
            })?;
        }

        all.torn_bytes += records.torn_bytes;
        all.whole_bytes += records.whole_bytes;
    }

    all.records = gathered.records;
    Ok(all)
}
