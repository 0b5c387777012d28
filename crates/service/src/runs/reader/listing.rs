//! Pages of runs.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::RunReader;
use crate::runs::error::RunError;
use crate::runs::record::{RunRecord, Status};
use crate::runs::search::{Excerpt, excerpts};
use prime_journal::{
    DamagedRow, Journal, JournalError, Noted, Query, RunRow, RunRows, SearchPage, SearchQuery,
};

/// Most runs of an answer that try a run again.
const RETRIES_MAX: u32 = 100;

/// Why a search found a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct WhyFound {
    /// Where the words of `q` stand, up to three excerpts. Left out without words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 3)]
    pub excerpts: Vec<Excerpt>,
    /// How many lines of the run `constraint` refused. Left out without a constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, required = false)]
    pub refused: Option<u64>,
}

/// A page of a listing.
#[derive(Default)]
pub struct RunPage {
    /// The runs of the page.
    pub runs: Vec<RunRecord>,
    /// The runs whose rows are damaged, or were written by a version that this one does not
    /// understand.
    pub unreadable: Vec<String>,
    /// Where the next page begins; `None` on the last page.
    pub next: Option<String>,
    /// Why a search for words or a constraint found these runs, by their ids.
    pub found: BTreeMap<String, WhyFound>,
    /// True if a search has not seen all runs, because the index of an earlier version is being
    /// made.
    pub is_incomplete: bool,
}

impl RunPage {
    fn leave_out(&mut self, id: String, reason: &str) {
        tracing::warn!(run = id, reason, "a list leaves out a row that cannot be read");
        self.unreadable.push(id);
    }
}

/// The rows of a page. Some old rows that say verified are shown as unverified
/// ([`RunRecord::of_row`]), so that a list of unverified runs looks at both.
fn rows(journal: &dyn Journal, query: &Query) -> Result<RunRows, JournalError> {
    let mut page = journal.list(query)?;
    if query.status.as_deref() != Some(Status::Unverified.name()) {
        return Ok(page);
    }

    let status = Some(Status::Verified.name().to_owned());
    let old = journal.list(&Query { status, ..query.clone() })?;
    page.rows.extend(old.rows);
    page.damaged.extend(old.damaged);
    // The order of the journal: newest first, then by descending ids.
    page.rows.sort_by(|a, b| (b.created_ms, &b.id).cmp(&(a.created_ms, &a.id)));
    let is_full =
        page.next.is_some() || old.next.is_some() || page.rows.len() > query.limit as usize;
    page.rows.truncate(query.limit as usize);
    page.next = page.rows.last().filter(|_| is_full).map(|row| row.id.clone());
    Ok(page)
}

/// What a search finds, and why.
fn searched(
    journal: &dyn Journal,
    query: &SearchQuery,
) -> Result<(SearchPage, BTreeMap<String, WhyFound>), JournalError> {
    let page = journal.search().find(query)?;
    let rows: BTreeMap<&str, &RunRow> = page.rows.iter().map(|row| (&*row.id, row)).collect();
    let found = page.noted.iter().filter_map(|Noted { run, text, refused }| {
        let row = rows.get(&**run)?;
        let excerpts = if text.is_empty() { Vec::new() } else { excerpts(row, text, &query.terms) };
        Some((run.clone(), WhyFound { excerpts, refused: *refused }))
    });
    let found = found.collect();
    Ok((page, found))
}

impl RunReader {
    /// Runs, newest first. A row that cannot be read is named, and does not hide the others.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn list(&self, query: Query) -> Result<RunPage, RunError> {
        // Other statuses are those of the rows; a run may end after its row was read.
        let wanted = query.status.clone().filter(|status| {
            [Status::Verified, Status::Unverified].iter().any(|known| known.name() == status)
        });
        let is_wanted = |record: &RunRecord| {
            wanted.as_deref().is_none_or(|wanted| wanted == record.status.name())
        };
        let RunRows { rows, damaged, next } =
            self.store.read(move |journal| rows(journal, &query)).await?;
        let page = RunPage { next, ..RunPage::default() };
        self.page(page, rows, damaged, is_wanted).await
    }

    /// Runs that a search finds. What has changed in the last moments may be missing.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn find(&self, query: SearchQuery) -> Result<RunPage, RunError> {
        let (SearchPage { rows, damaged, next, .. }, found) =
            self.store.read(move |journal| searched(journal, &query)).await?;
        let page = RunPage {
            found,
            next: next.map(|position| position.to_string()),
            is_incomplete: !self.indexed.is_complete(),
            ..RunPage::default()
        };
        self.page(page, rows, damaged, |_| true).await
    }

    /// The runs that try this one again, newest first, as far as searches know them; `owner` sees
    /// only its own.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn retries(&self, id: &str, owner: Option<String>) -> Result<Vec<String>, RunError> {
        let query = SearchQuery {
            owner,
            terms: vec![id.to_owned()],
            limit: RETRIES_MAX,
            ..SearchQuery::default()
        };
        let found = self.find(query).await?.runs.into_iter();
        let is_retry = |record: &RunRecord| record.retry_of.as_deref() == Some(id);
        Ok(found.filter(is_retry).map(|record| record.id).collect())
    }

    /// Fills a page with the records of rows.
    async fn page(
        &self,
        mut page: RunPage,
        rows: Vec<RunRow>,
        damaged: Vec<DamagedRow>,
        is_wanted: impl Fn(&RunRecord) -> bool,
    ) -> Result<RunPage, RunError> {
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
                // The run ended after its row was read. A run that was removed since is listed as
                // it was.
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
                Ok(record) if is_wanted(&record) => page.runs.push(record),
                Ok(_) => {}
                Err(error) => page.leave_out(row.id, &error.to_string()),
            }
        }
        self.store.label(&mut page.runs).await?;
        self.cluster.name_missing_agents(&mut page.runs).await?;
        Ok(page)
    }
}
