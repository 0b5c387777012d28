//! The labels that clients give their runs after acceptance. Those of the acceptance are in the
//! run's spec, which never changes.

use std::collections::BTreeMap;

use crate::error::JournalError;

/// The part of a store that holds the labels that replace those of a spec.
pub trait RunLabels {
    /// Replaces a run's labels, as JSON; durable when this returns. The run may be over.
    ///
    /// # Errors
    /// [`JournalError::Refused`] if there is no such run, and those of the store; then nothing has
    /// changed.
    fn relabel(&self, run: &str, labels: &str) -> Result<(), JournalError>;

    /// Replaces a run's labels, as [`relabel`](Self::relabel) does, if those that replaced its
    /// spec's are still `before`. Returns whether it did; false also if there is no such run.
    ///
    /// # Errors
    /// Those of the store; then nothing has changed.
    fn relabel_if(
        &self,
        run: &str,
        before: Option<&str>,
        labels: &str,
    ) -> Result<bool, JournalError>;

    /// The labels of those of these runs that were given others than in their spec, by their ids.
    ///
    /// # Errors
    /// The store cannot be read.
    fn relabelled(&self, runs: &[String]) -> Result<BTreeMap<String, String>, JournalError>;
}
