//! Pages of runs.

use super::RunReader;
use crate::runs::error::RunError;
use crate::runs::record::RunRecord;
use prime_journal::{DamagedRow, JournalError, Query, RunRows};

/// A page of a listing.
#[derive(Default)]
pub struct RunPage {
    pub runs: Vec<RunRecord>,
    /// The runs whose rows are damaged, or were written by a version that this one does not
    /// understand.
    pub unreadable: Vec<String>,
    /// Where the next page begins.
    pub next: Option<String>,
}

impl RunPage {
    fn leave_out(&mut self, id: String, reason: &str) {
        tracing::warn!(run = id, reason, "a list leaves out a row that cannot be read");
        self.unreadable.push(id);
    }
}

impl RunReader {
    /// Runs, newest first. A row that cannot be read is named, and does not hide the others.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn list(&self, query: Query) -> Result<RunPage, RunError> {
        let RunRows { rows, damaged, next } =
            self.store.read(move |journal| journal.list(&query)).await?;
        let mut page = RunPage { next, ..RunPage::default() };

        for DamagedRow { id, reason } in damaged {
            page.leave_out(id, &reason);
        }

        for mut row in rows {
            if let Some(live) = self.live.unfinished(&row.id) {
                self.count_events(&live).await;
                page.runs.push(live.record().with_reviews(row.reviews));
                continue;
            }

            if !row.is_over {
                // It ended after its row was read. One that was removed since is listed as it was.
                row = match self.store.row(&row.id).await {
                    Err(RunError::NotFound(_)) => row,
                    Err(RunError::Journal(JournalError::Damaged(reason))) => {
                        page.leave_out(row.id, &reason);
                        continue;
                    }
                    read => read?,
                };
            }

            match RunRecord::of_row(&row) {
                Ok(record) => page.runs.push(record),
                Err(error) => page.leave_out(row.id, &error.to_string()),
            }
        }
        self.cluster.name_missing_agents(&mut page.runs).await?;
        Ok(page)
    }
}
