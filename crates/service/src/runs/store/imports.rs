//! Runs of other daemons that wait to be written: each is a commit of its own, so that a long one
//! shares the fate of no other.

use super::batch::{NotAccepted, Reply};
use super::writer::exit_on_disk_failure;
use crate::runs::search::changed::Changed;
use prime_journal::{Journal, JournalError, Write};

#[derive(Default)]
pub struct Imports(Vec<(Vec<Write>, Reply)>);

impl Imports {
    pub fn push(&mut self, writes: Vec<Write>, reply: Reply) {
        self.0.push((writes, reply));
    }

    /// Writes them all, and replies. Returns whether there were none.
    pub fn commit(&mut self, journal: &dyn Journal, changed: &Changed) -> bool {
        let waiting = std::mem::take(&mut self.0);
        let is_empty = waiting.is_empty();
        for (writes, reply) in waiting {
            let result = match journal.commit(&writes) {
                Ok(()) => {
                    changed.see(&writes);
                    Ok(())
                }
                Err(JournalError::DiskFailed(reason)) => exit_on_disk_failure(&reason),
                Err(error) => Err(NotAccepted::NotWritable(error.to_string())),
            };
            // The client may have gone.
            drop(reply.send(result));
        }
        is_empty
    }
}
