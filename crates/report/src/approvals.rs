//! What became of the steps of a run that waited for approval.

use serde::{Deserialize, Serialize};

use prime_protocol::ApprovalVerdict;

/// Number of a run's steps that waited for approval, by what was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approvals {
    /// Steps that waited, those that still do included.
    pub asked: u32,
    /// Lines that were accepted as they were.
    pub accepted: u32,
    /// Lines that were rejected.
    pub rejected: u32,
    /// Lines that a reviewer wrote, whatever the verifier found. If there are some, a person took
    /// part in the answer.
    pub edited: u32,
}

impl Approvals {
    /// Counts a decision.
    pub fn decided(&mut self, verdict: ApprovalVerdict) {
        match verdict {
            ApprovalVerdict::Accept => self.accepted += 1,
            ApprovalVerdict::Reject => self.rejected += 1,
            ApprovalVerdict::Edit => self.edited += 1,
            ApprovalVerdict::End => {}
        }
    }

    /// The counts; `None` if no step waited.
    #[must_use]
    pub fn if_any(self) -> Option<Self> {
        (self.asked > 0).then_some(self)
    }
}
