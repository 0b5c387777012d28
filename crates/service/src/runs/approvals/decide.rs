//! Decisions about steps that wait: the first one stands, wherever the run is.

use std::sync::Arc;
use std::time::Duration;

use super::record::{ApprovalRecord, DecisionRow};
use crate::runs::error::RunError;
use crate::runs::service::Runs;
use prime_journal::{ApprovalQuery, ApprovalRow, Decided};
use prime_protocol::ApprovalVerdict;

/// What a reviewer decides.
#[derive(Clone, Debug)]
pub struct NewDecision {
    /// What happens to the line.
    pub verdict: ApprovalVerdict,
    /// The reviewer's reason; may be empty.
    pub reason: String,
    /// The line that takes its place, with [`ApprovalVerdict::Edit`].
    pub line: Option<String>,
    /// The reviewer.
    pub by: String,
}

/// True if this reviewer has decided the same before.
fn is_same(row: &ApprovalRow, decision: &DecisionRow) -> bool {
    let earlier = DecisionRow::of(row);
    earlier.is_some_and(|earlier| DecisionRow { at_ms: decision.at_ms, ..earlier } == *decision)
}

/// What a decision was, in words.
fn said(record: &ApprovalRecord) -> String {
    let (run, number) = (&record.run, record.number);
    match &record.decision {
        Some(decision) => {
            let reason = if decision.reason.is_empty() {
                String::new()
            } else {
                format!(" ({})", decision.reason)
            };
            let (verdict, by, at) = (decision.verdict.name(), &decision.by, &decision.at);
            format!("{by} has decided approval {number} of run {run} at {at}: {verdict}{reason}")
        }
        None => format!(
            "approval {number} of run {run} is void: the run, or the round of the step, is over"
        ),
    }
}

impl Runs {
    /// Steps that wait, in the order in which they began to, and where the next page begins.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn waiting_approvals(
        &self,
        query: ApprovalQuery,
    ) -> Result<(Vec<ApprovalRecord>, Option<u64>), RunError> {
        let limit = query.limit as usize;
        let rows = self.store().read(move |journal| journal.approvals().waiting(&query)).await?;
        let next = rows.last().filter(|_| rows.len() == limit).map(|row| row.no);
        let records = rows.iter().map(ApprovalRecord::of_row).collect::<Result<_, _>>()?;
        Ok((records, next))
    }

    /// The approvals of a run, decided ones included.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn approvals_of(&self, run: &str) -> Result<Vec<ApprovalRecord>, RunError> {
        let run = run.to_owned();
        let rows = self.store().read(move |journal| journal.approvals().of_run(&run)).await?;
        rows.iter().map(ApprovalRecord::of_row).collect()
    }

    /// Decides about a step that waits; durable when this returns.
    ///
    /// # Errors
    /// `NoSuchApproval`, `Conflict` if it was decided before or its run is over, and those of the
    /// journal.
    pub async fn decide(
        self: &Arc<Self>,
        run: &str,
        number: u32,
        new: NewDecision,
    ) -> Result<ApprovalRecord, RunError> {
        // Half of it must not stay undone because a client disconnects.
        let (this, id) = (Arc::clone(self), run.to_owned());
        self.run_detached(async move { this.decide_once(&id, number, new).await }).await
    }

    async fn decide_once(
        &self,
        run: &str,
        number: u32,
        new: NewDecision,
    ) -> Result<ApprovalRecord, RunError> {
        let NewDecision { verdict, reason, line, by } = new;
        let decision = DecisionRow { verdict, by, at_ms: self.store().now_ms(), reason, line };
        let text = serde_json::to_string(&decision).expect("invariant: decisions serialise");

        let id = run.to_owned();
        let decide = move |journal: &dyn prime_journal::Journal| {
            journal.approvals().decide(&id, number, &text)
        };
        match self.store().read(decide).await? {
            Decided::Unknown => {
                return Err(RunError::NoSuchApproval { id: run.to_owned(), number });
            }
            // A repetition: the answer to the first one may have been lost.
            Decided::Earlier(row) if is_same(&row, &decision) => {}
            Decided::Earlier(row) => {
                return Err(RunError::Conflict(said(&ApprovalRecord::of_row(&row)?)));
            }
            Decided::Now { must_resume: true } => self.execution().resume_parked(run),
            Decided::Now { must_resume: false } => {
                if let Some(live) = self.live(run) {
                    live.approve(decision.resolution(number));
                }
            }
        }
        tracing::info!(run, number, verdict = verdict.name(), "an approval was decided");

        let all = self.approvals_of(run).await?;
        let missing = || RunError::NoSuchApproval { id: run.to_owned(), number };
        all.into_iter().find(|record| record.number == number).ok_or_else(missing)
    }

    /// Ends a run that waits for approval, and waits at most `patience` for that to be durable.
    pub(in crate::runs) async fn end_waiting(
        &self,
        run: &str,
        patience: Duration,
    ) -> Result<(), RunError> {
        let id = run.to_owned();
        let rows = self.store().read(move |journal| journal.approvals().of_run(&id)).await?;
        for row in rows.into_iter().filter(ApprovalRow::waits) {
            let new = NewDecision {
                verdict: ApprovalVerdict::End,
                reason: String::new(),
                line: None,
                by: "cancel".to_owned(),
            };
            match self.decide_once(run, row.number, new).await {
                Ok(_) | Err(RunError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        drop(tokio::time::timeout(patience, self.reader().ended_elsewhere(run)).await);
        Ok(())
    }
}
