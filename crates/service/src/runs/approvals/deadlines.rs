//! What happens to steps that nobody has decided in time; and decisions of other nodes, which this
//! one finds by polling.

use std::sync::Arc;
use std::time::Duration;

use super::decide::NewDecision;
use super::record::HeldLine;
use crate::runs::error::RunError;
use crate::runs::service::Runs;
use prime_journal::ApprovalRow;
use prime_protocol::ApprovalVerdict;
use prime_settings::ApproveElse;

/// Steps that one look decides.
const AT_ONCE: u32 = 100;
/// Longest wait between two looks at a journal that other nodes write, too.
const POLL: Duration = Duration::from_secs(2);
/// Longest wait of a node that is alone.
const POLL_ALONE: Duration = Duration::from_mins(10);
/// Pause after a failure of the journal.
const FAILED: Duration = Duration::from_secs(5);

/// What nobody's decision amounts to.
fn decision_of(row: &ApprovalRow) -> NewDecision {
    let step = serde_json::from_str::<HeldLine>(&row.body);
    // Another version's step ends its run, which commits nothing.
    let otherwise = step.map_or(ApproveElse::End, |step| step.otherwise);
    let verdict = match otherwise {
        ApproveElse::Reject => ApprovalVerdict::Reject,
        ApproveElse::Accept => ApprovalVerdict::Accept,
        ApproveElse::End => ApprovalVerdict::End,
    };
    let reason = "nobody decided in time".to_owned();
    NewDecision { verdict, reason, line: None, by: "deadline".to_owned() }
}

impl Runs {
    /// Decides what nobody has decided in time, until the daemon drains.
    pub async fn run_deadlines(self: Arc<Self>) {
        let mut drained = self.drained();
        loop {
            let held = self.execution().held().notified();
            let pause = match self.decide_due().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "deadlines of approvals wait for the journal");
                    FAILED
                }
            };
            if self.is_shared() {
                self.execution().deliver_all().await;
            }

            tokio::select! {
                _ = drained.wait_for(|drained| *drained) => return,
                () = held => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Decides what is due. Returns how long to wait for more.
    async fn decide_due(self: &Arc<Self>) -> Result<Duration, RunError> {
        loop {
            let now_ms = self.store().now_ms();
            let due = move |journal: &dyn prime_journal::Journal| {
                journal.approvals().due(now_ms, AT_ONCE)
            };
            let (due, next_ms) = self.store().read(due).await?;
            for row in &due {
                match self.decide(&row.run, row.number, decision_of(row)).await {
                    // Somebody, or another node, was faster.
                    Ok(_) | Err(RunError::Conflict(_) | RunError::NoSuchApproval { .. }) => {}
                    Err(error) => return Err(error),
                }
            }

            if due.len() < AT_ONCE as usize {
                let poll = if self.is_shared() { POLL } else { POLL_ALONE };
                let left = next_ms.map(Duration::from_millis);
                return Ok(left.map_or(poll, |left| left.min(poll)));
            }
        }
    }
}
