//! What a round of retention cannot remove, because it lies on a damaged page. A step that meets
//! such a page is taken back by itself, and the round continues without it: one damaged page must
//! not keep everything else from being removed.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Transaction};

use super::past_damage;
use crate::error::JournalError;
use crate::records::DamagedRow;

/// A step of a round.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The removal of a run, by its number.
    Run(i64),
    /// The removal of the flags and events of a run whose row is gone.
    Events(i64),
    /// The record of what a run holds.
    Size(i64),
    ExpiredKeys,
    /// The oldest keys of an owner with too many.
    Keys(String),
    FreePages,
}

/// The steps that failed, and why.
#[derive(Debug, Default)]
pub(super) struct Unremovable(BTreeMap<Part, String>);

impl Unremovable {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, part: &Part) -> bool {
        self.0.contains_key(part)
    }

    pub(super) fn note(&mut self, part: Part, reason: String) {
        self.0.insert(part, reason);
    }

    /// Takes a step. Returns `None` if something that it needs is damaged; then it has changed
    /// nothing.
    ///
    /// # Errors
    /// Those of the step but for `Damaged`. `Damaged` if the error has ended the whole transaction,
    /// as a sector that the disk cannot read does; the step is noted then, too.
    pub(super) fn attempt<T>(
        &mut self,
        transaction: &mut Transaction<'_>,
        part: Part,
        step: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<Option<T>, JournalError> {
        if self.has(&part) {
            return Ok(None);
        }

        // A statement that meets damage may have changed other pages before: all of that goes back.
        let mut savepoint = transaction.savepoint()?;
        match step(&savepoint) {
            Ok(done) => {
                savepoint.commit()?;
                Ok(Some(done))
            }
            Err(JournalError::Damaged(reason)) => {
                self.note(part, reason.clone());
                if savepoint.is_autocommit() {
                    return Err(JournalError::Damaged(reason));
                }
                savepoint.rollback()?;
                savepoint.commit()?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What stays, with the ids of runs where an index has them.
    pub(super) fn rows(&self, connection: &Connection) -> Result<Vec<DamagedRow>, JournalError> {
        let runs: BTreeSet<i64> = self
            .0
            .keys()
            .filter_map(|part| if let Part::Run(no) = part { Some(*no) } else { None })
            .collect();
        let mut ids: BTreeMap<i64, String> = BTreeMap::new();
        if !runs.is_empty() {
            let (keys, _) = past_damage::all(connection)?;
            ids.extend(
                keys.into_iter().filter(|key| runs.contains(&key.no)).map(|key| (key.no, key.id)),
            );
        }

        let rows = self.0.iter().filter_map(|(part, reason)| {
            let what = match part {
                Part::Run(no) => {
                    let id = ids.remove(no).unwrap_or_default();
                    let row = format!("row {no} of the table `run`: {reason}");
                    return Some(DamagedRow { id, reason: row });
                }
                // The run itself is named if it cannot be removed.
                Part::Size(_) => return None,
                Part::Events(no) => format!("events of the removed run in row {no}"),
                Part::ExpiredKeys => "expired idempotency keys".to_owned(),
                Part::Keys(owner) => format!("the oldest idempotency keys of {owner:?}"),
                Part::FreePages => "the free pages of the file".to_owned(),
            };
            Some(DamagedRow { id: String::new(), reason: format!("{what}: {reason}") })
        });
        Ok(rows.collect())
    }
}
