//! What rounds of retention cannot remove, because it lies on a damaged page: one such page must
//! not keep everything else from being removed. SQLite writes nothing more in a transaction that
//! has met damage, so that a round begins again without the step that met it.
//!
//! A run beside a damaged page stays, too, if its page becomes so empty that SQLite would join
//! both.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

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
    /// The use of an index of runs by their ends: that of all, or that of each owner's.
    Index {
        is_owners: bool,
    },
    ExpiredKeys,
    /// The oldest keys of an owner with too many.
    Keys(String),
    FreePages,
}

/// The steps that failed since the journal was opened, and why. They are not tried again.
#[derive(Debug, Default)]
pub(super) struct Unremovable {
    known: BTreeMap<Part, String>,
    /// Steps that the present rounds would have taken.
    met: BTreeSet<Part>,
}

impl Unremovable {
    /// Other rounds begin, perhaps for another owner.
    pub(super) fn begin(&mut self) {
        self.met.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// True if a step is known to fail. Notes that it was met.
    pub(super) fn has(&mut self, part: &Part) -> bool {
        let has = self.known.contains_key(part);
        if has {
            self.met.insert(part.clone());
        }
        has
    }

    pub(super) fn note(&mut self, part: Part, reason: String) {
        self.met.insert(part.clone());
        self.known.insert(part, reason);
    }

    /// Takes a step. Returns `None` if it is known to fail.
    ///
    /// # Errors
    /// Those of the step. After `Damaged`, which is noted, the transaction must be rolled back.
    pub(super) fn attempt<T>(
        &mut self,
        part: Part,
        step: impl FnOnce() -> Result<T, JournalError>,
    ) -> Result<Option<T>, JournalError> {
        if self.has(&part) {
            return Ok(None);
        }
        match step() {
            Err(JournalError::Damaged(reason)) => {
                self.note(part, reason.clone());
                Err(JournalError::Damaged(reason))
            }
            done => done.map(Some),
        }
    }

    /// What was met.
    pub(super) fn parts(&self) -> Vec<(Part, String)> {
        let met = self.known.iter().filter(|(part, _)| self.met.contains(part));
        met.map(|(part, reason)| (part.clone(), reason.clone())).collect()
    }
}

/// What stays, with the ids of runs where an index has them.
pub(super) fn rows(
    connection: &Connection,
    parts: Vec<(Part, String)>,
) -> Result<Vec<DamagedRow>, JournalError> {
    let runs: BTreeSet<i64> = parts
        .iter()
        .filter_map(|(part, _)| if let Part::Run(no) = part { Some(*no) } else { None })
        .collect();

    let mut ids = BTreeMap::new();
    if !runs.is_empty() {
        let (keys, _) = past_damage::all(connection)?;
        let keys = keys.into_iter().filter(|key| runs.contains(&key.no));
        ids.extend(keys.map(|key| (key.no, key.id)));
    }

    let rows = parts.into_iter().filter_map(|(part, reason)| {
        let mut id = String::new();
        let what = match part {
            Part::Run(no) => {
                id = ids.remove(&no).unwrap_or_default();
                format!("row {no} of the table `run`")
            }
            // The run itself is named if it cannot be removed.
            Part::Size(_) => return None,
            Part::Events(no) => format!("events of the removed run in row {no}"),
            Part::Index { .. } => "an index of the table `run`".to_owned(),
            Part::ExpiredKeys => "expired idempotency keys".to_owned(),
            Part::Keys(owner) => format!("the oldest idempotency keys of {owner:?}"),
            Part::FreePages => "the free pages of the file".to_owned(),
        };
        Some(DamagedRow { id, reason: format!("{what}: {reason}") })
    });
    Ok(rows.collect())
}
