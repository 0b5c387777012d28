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
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: io::Error },
    #[error(
        "{}, line {line}: a record of schema {found}, but this version reads schema {SCHEMA}; make the report with the \
         version of prime-agents that wrote it", path.display()
    )]
    Schema { path: PathBuf, line: usize, found: u64 },
    #[error("{}, line {line}: no record: {reason}; remove the line, or restore the file", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    #[error(
        "{}: a Parquet file, which reports write for other tools; name the records that `study run` wrote (JSON Lines, plain \
         or compressed by gzip)", path.display()
    )]
    Parquet { path: PathBuf },
    #[error("{}, line {line}: {column}: {value:?} is no name that this version knows", path.display())]
    Name { path: PathBuf, line: usize, column: &'static str, value: String },
    #[error(
        "{}, line {line}: {what}: no run has that; remove the line, or restore the file",
        path.display()
    )]
    Contradiction { path: PathBuf, line: usize, what: String },
    #[error(
        "{}, line {line}: {key} is in {} already; a run counts once", path.display(), first.display()
    )]
    Duplicate { path: PathBuf, line: usize, key: Box<Key>, first: PathBuf },
    #[error(
        "{}, line {line}: the program of the task `{task}` is not that of the records before it \
         (`task_digest` {found}, not {before}): results of different programs do not belong \
         together; report them apart, or run the study again with one of the programs",
        path.display()
    )]
    OtherProgram { path: PathBuf, line: usize, task: String, found: String, before: String },
}

/// First bytes of files compressed by gzip.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// First bytes of Parquet files.
const PARQUET: &[u8] = b"PAR1";

/// Records of different runs, each with where it stands.
struct Gathered<Origin> {
    records: Vec<Record>,
    /// By record.
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

/// The programs of users' tasks, by the names of the tasks.
#[derive(Default)]
struct Programs(BTreeMap<String, String>);

impl Programs {
    /// Refuses a record whose task another program computed before.
    fn check(&mut self, path: &Path, line: usize, record: &Record) -> Result<(), ReadError> {
        // A task of the benchmark has none, and a record of one has no digest.
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
    pub records: Vec<Record>,
    /// The line of each record in its file, counted from 1.
    lines: Vec<usize>,
    /// Bytes of a last line that was not written whole because the writer was killed. They are
    /// ignored.
    pub torn_bytes: usize,
    /// Bytes of the whole lines.
    pub whole_bytes: u64,
    /// Whether the last line is whole but lacks its newline.
    pub(super) lacks_newline: bool,
    /// Whether the file is compressed.
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
/// If the file cannot be read or decompressed, is Parquet, a line other than the last is no record,
/// a record has another schema, or a run was measured twice.
pub fn read(path: &Path) -> Result<Records, ReadError> {
    let failed = |reason| ReadError::File { path: path.to_owned(), reason };

    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    // By content, because a name may be anything.
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
/// As [`read`], and if a run is there twice.
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
