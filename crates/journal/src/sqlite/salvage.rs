//! Checks a journal's file, and saves what can be read of a damaged one. Only reads it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::conditions::Conditions;
use super::connection::{Readers, as_open_error};
use super::lock::Lock;
use super::padded::Padded;
use super::past_damage;
use super::queries::{self, Found};
use super::schema::{self, Found as Content};
use super::{assignees, batches, labels, outbox, resolve, reviews};
use crate::chain::Head;
use crate::error::JournalError;
use crate::journal::{Journal, Write};
use crate::records::{DamagedRow, ReviewCounts, RunRow, Segment};
use crate::verifier::ChainVerifier;

/// Most findings of SQLite's own check.
const FINDINGS_MAX: u32 = 100;
/// Bytes of events, roughly, in one commit.
const COMMIT_BYTES: usize = 4 << 20;

/// The file of a journal that no daemon uses meanwhile.
pub struct SqliteFile {
    path: PathBuf,
    // Dropped in this order.
    readers: Readers,
    /// What is read if the file has lost its end.
    padded: Option<Padded>,
    _lock: Lock,
}

/// A run that has lost events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRun {
    /// The id of the run.
    pub id: String,
    /// Its last event before the damage.
    pub kept: u64,
    /// The last event that was committed, as far as known.
    pub committed: u64,
    /// What is damaged.
    pub reason: String,
}

/// What a file holds, and which parts of it are damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What SQLite's check says about pages and rows, at most a hundred findings.
    pub pages: Vec<String>,
    /// Runs whose rows can be read.
    pub runs: u64,
    /// Events of these runs up to the damage.
    pub events: u64,
    /// Rows of runs that cannot be read.
    pub lost: Vec<DamagedRow>,
    /// Runs that have lost events.
    pub cut: Vec<CutRun>,
    /// Runs whose snapshot, reviews or idempotency key cannot be read.
    pub bare: Vec<DamagedRow>,
}

impl Checked {
    /// Returns whether nothing is damaged.
    pub fn is_whole(&self) -> bool {
        self.pages.is_empty() && self.lost.is_empty() && self.cut.is_empty() && self.bare.is_empty()
    }
}

impl SqliteFile {
    /// # Errors
    /// `InUse` while a daemon uses it, `Open` if there is no such file or it is no journal,
    /// or nothing can be read.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let refused = |reason| JournalError::Open { path: path.to_owned(), reason };
        if !path.exists() {
            return Err(refused("there is no such file".to_owned()));
        }

        let path = &resolve(path).map_err(refused)?;
        let lock = Lock::take(path)?;
        let padded = Padded::of(path)?;
        let read = padded.as_ref().map_or(path.as_path(), Padded::path);

        match schema::inspect(read).map_err(|error| nothing_readable(path, error))? {
            Content::Journal => {
                Ok(Self { path: path.clone(), readers: Readers::new(read), padded, _lock: lock })
            }
            Content::Empty => Err(refused("it is empty: nothing can be read from it".to_owned())),
        }
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.readers.read_alone(read).map_err(|error| nothing_readable(&self.path, error))
    }

    /// What is wrong with the file and its pages.
    fn findings(&self, connection: &Connection) -> Result<Vec<String>, JournalError> {
        let mut all: Vec<_> = self.padded.iter().map(|padded| padded.finding.clone()).collect();
        all.extend(findings(connection)?);
        Ok(all)
    }

    /// # Errors
    /// When nothing can be read at all.
    pub fn check(&self) -> Result<Checked, JournalError> {
        self.read(|connection| {
            let mut checked = Checked { pages: self.findings(connection)?, ..Checked::default() };
            each_run(connection, &mut checked, &mut |_| Ok(()))?;
            Ok(checked)
        })
    }

    /// Writes all runs that can be read to another journal, each with its events up to the first
    /// that is damaged. A run that is not over continues from there. Returns what is in the other
    /// journal now, and what is lost.
    ///
    /// # Errors
    /// When nothing can be read at all, or the other journal cannot be written.
    pub fn salvage(&self, to: &dyn Journal) -> Result<Checked, JournalError> {
        self.read(|connection| {
            let mut saved = Checked { pages: self.findings(connection)?, ..Checked::default() };
            let mut pending = Vec::new();
            let mut bytes = 0;

            each_run(connection, &mut saved, &mut |write| {
                let is_last = matches!(write, Write::Update { .. });
                if let Write::Append { segment, .. } = &write {
                    bytes += segment.body.len();
                }
                pending.push(write);

                if is_last || bytes >= COMMIT_BYTES {
                    bytes = 0;
                    to.commit(&std::mem::take(&mut pending))?;
                }
                Ok(())
            })?;
            relabel(connection, &mut saved, to)?;
            assign(connection, &mut saved, to)?;
            Ok(saved)
        })
    }
}

/// Gives the saved runs the labels that replace those of their specs.
fn relabel(
    connection: &Connection,
    saved: &mut Checked,
    to: &dyn Journal,
) -> Result<(), JournalError> {
    let mut damage = Vec::new();
    let found = readable(labels::all(connection), "labels", &mut damage)?.unwrap_or_default();
    saved.bare.extend(damage.into_iter().map(|reason| DamagedRow { id: String::new(), reason }));
    for (run, labels) in found {
        // One that is lost has no labels either.
        if to.run(&run)?.is_some() {
            to.labels().relabel(&run, &labels)?;
        }
    }
    Ok(())
}

/// Assigns the saved flagged events to the same people.
fn assign(
    connection: &Connection,
    saved: &mut Checked,
    to: &dyn Journal,
) -> Result<(), JournalError> {
    let mut damage = Vec::new();
    let found = readable(assignees::all(connection), "assignees", &mut damage)?;
    saved.bare.extend(damage.into_iter().map(|reason| DamagedRow { id: String::new(), reason }));
    for (run, seq, name) in found.unwrap_or_default() {
        let flagged = to.reviews(&run, seq.saturating_sub(1), 1)?;
        // One that is lost is assigned to nobody either.
        if flagged.first().is_some_and(|flagged| flagged.seq == seq) {
            to.assignees().assign(&run, seq, Some(&name))?;
        }
    }
    Ok(())
}

/// The error of a file of which nothing can be read: says which, and what to do.
fn nothing_readable(path: &Path, error: JournalError) -> JournalError {
    match as_open_error(path, error) {
        JournalError::Damaged(reason) => {
            let reason = format!(
                "it is damaged: {reason}: nothing can be read from it, nor saved with \
                 `prime-agents journal salvage`: restore a backup"
            );
            JournalError::Open { path: path.to_owned(), reason }
        }
        other => other,
    }
}

/// What SQLite's own check finds.
fn findings(connection: &Connection) -> Result<Vec<String>, JournalError> {
    let mut findings = Vec::new();
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;

    let mut rows = statement.query([])?;
    loop {
        match rows.next() {
            Ok(Some(row)) => findings.push(row.get(0)?),
            Ok(None) => break,
            // The check itself cannot continue.
            Err(error) => {
                findings.push(error.to_string());
                break;
            }
        }
    }

    findings.retain(|finding: &String| finding != "ok");
    Ok(findings)
}

/// Reads all runs, oldest first, as the writes that recreate them; the last of each is its update.
fn each_run(
    connection: &Connection,
    checked: &mut Checked,
    write: &mut dyn FnMut(Write) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let transaction = connection.unchecked_transaction()?;
    let (keys, gaps) = past_damage::all(&transaction)?;
    checked.lost.extend(gaps);

    for key in keys {
        let no = key.no;
        let mut found = Found::default();
        past_damage::add(&transaction, &mut found, &Conditions::default(), key)?;

        // Only its events may be damaged: then the run is there without them.
        if !found.damaged.is_empty()
            && let Ok(alone) = Found::without_events(&transaction, no)
            && alone.damaged.is_empty()
        {
            found = alone;
        }
        checked.lost.append(&mut found.damaged);

        for (no, row) in found.rows {
            copy_run(&transaction, checked, no, &row, write)?;
        }
    }
    Ok(())
}

fn copy_run(
    transaction: &Connection,
    checked: &mut Checked,
    no: i64,
    row: &RunRow,
    write: &mut dyn FnMut(Write) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let id = &row.id;
    // What else belongs to the run may be damaged by itself: the run is then copied without it.
    let mut bare = Vec::new();

    let key = readable(queries::key_of(transaction, no), "idempotency key", &mut bare)?;
    let new = RunRow {
        is_over: false,
        reviews: ReviewCounts::default(),
        head: Head::genesis(&row.spec),
        ..row.clone()
    };
    write(Write::Accept { row: new, key: key.flatten() })?;

    let append = &mut |segment| write(Write::Append { id: id.clone(), segment });
    let (head, cut) = events(transaction, no, row, append)?;
    checked.runs += 1;
    checked.events += head.seq;

    if let Some(snapshot) =
        readable(queries::snapshot_of(transaction, no, id), "snapshot", &mut bare)?.flatten()
        && snapshot.seq <= head.seq
    {
        write(Write::Save { id: id.clone(), snapshot })?;
    }

    let flagged = reviews::flagged_of(transaction, no, 0, u32::MAX);
    let flagged = readable(flagged, "reviews", &mut bare)?.unwrap_or_default();
    for flagged in flagged.into_iter().filter(|flagged| flagged.seq <= head.seq) {
        let seq = flagged.seq;
        write(Write::Flag { id: id.clone(), seqs: vec![seq] })?;
        for review in flagged.reviews {
            write(Write::Review { id: id.clone(), seq, review })?;
        }
    }

    let messages = readable(outbox::waiting(transaction, id), "messages", &mut bare)?;
    if let Some(messages) = messages.filter(|messages| !messages.is_empty()) {
        write(Write::Enqueue { id: id.clone(), messages })?;
    }

    write(Write::Update {
        id: id.clone(),
        updated_ms: row.updated_ms,
        status: row.status.clone(),
        is_over: row.is_over,
        resumed: row.resumed,
        summary: row.summary.clone(),
    })?;

    checked.cut.extend(cut);
    if !bare.is_empty() {
        checked.bare.push(DamagedRow { id: id.clone(), reason: bare.join("; ") });
    }
    Ok(())
}

/// What was read, or `None` if it is damaged, with the reason.
fn readable<T>(
    read: Result<T, JournalError>,
    what: &str,
    damage: &mut Vec<String>,
) -> Result<Option<T>, JournalError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(JournalError::Damaged(reason)) => {
            damage.push(format!("its {what}: {reason}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reads a run's events as far as its chain holds. Returns its last event, and what comes then if
/// that is not all.
fn events(
    transaction: &Connection,
    no: i64,
    row: &RunRow,
    append: &mut dyn FnMut(Segment) -> Result<(), JournalError>,
) -> Result<(Head, Option<CutRun>), JournalError> {
    let mut rows = [(no, row.clone())];
    let mut unread = Vec::new();
    // The head in the run's own rows stands where the batches cannot be read.
    readable(batches::set_heads(transaction, &mut rows), "last events", &mut unread)?;
    let committed = rows[0].1.head;

    let mut verifier = ChainVerifier::new(&row.id, &row.spec);
    let reason = loop {
        let after = verifier.head().seq;
        // One at a time, so that a damaged segment hides none before it.
        let segments = match queries::segments_of(transaction, no, &row.id, after, 1) {
            Err(JournalError::Damaged(reason)) => break Some(reason),
            segments => segments?,
        };
        if segments.is_empty() {
            let is_whole = verifier.head() == committed && unread.is_empty();
            break (!is_whole).then(|| {
                unread.pop().unwrap_or_else(|| format!("event {} is missing", after + 1))
            });
        }

        for segment in segments {
            if let Err(damage) = verifier.follow(&segment) {
                return Ok((verifier.head(), Some(cut(row, &verifier, committed, damage.reason))));
            }
            append(segment)?;
        }
    };

    let head = verifier.head();
    Ok((head, reason.map(|reason| cut(row, &verifier, committed, reason))))
}

fn cut(row: &RunRow, verifier: &ChainVerifier, committed: Head, reason: String) -> CutRun {
    let kept = verifier.head().seq;
    CutRun { id: row.id.clone(), kept, committed: committed.seq.max(kept), reason }
}
