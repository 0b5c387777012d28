//! Assignees of flagged events. Anybody may still give a review.

use std::collections::BTreeMap;

use crate::error::JournalError;

/// Which assignment to list runs by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// To nobody; only events without a review count.
    Nobody,
    /// To this person, with a review or without one; only those without one if the list is of runs
    /// that need a review.
    To(String),
}

/// The part of a store that holds who is to review flagged events.
pub trait Assignees {
    /// Assigns a flagged event to somebody instead of whom it was assigned to, or to nobody.
    /// Durable when this returns. The run may be over.
    ///
    /// # Errors
    /// [`JournalError::Refused`] if there is no such run, or the event is not flagged, and those of
    /// the store; then nothing has changed.
    fn assign(&self, run: &str, seq: u64, assignee: Option<&str>) -> Result<(), JournalError>;

    /// The assigned events of a run from `first` to `last`, with their assignees.
    ///
    /// # Errors
    /// The store cannot be read.
    fn assigned(
        &self,
        run: &str,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<u64, String>, JournalError>;
}
