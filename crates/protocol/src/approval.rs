//! Approval of steps by a person or a program: a step that waits for it, and what was decided.

use serde::{Deserialize, Serialize};

use super::trajectory::{Trajectory, Usage, Verdict};
use super::turn::TurnId;

/// What a reviewer decides about a step that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// The line is committed.
    Accept,
    /// The line is refused, like one that the verifier rejects.
    Reject,
    /// Another line takes its place, and is judged by the verifier.
    Edit,
    /// The run ends with what is committed.
    End,
}

impl ApprovalVerdict {
    /// All verdicts.
    pub const ALL: [Self; 4] = [Self::Accept, Self::Reject, Self::Edit, Self::End];

    /// The verdict as JSON and the journal spell it.
    pub fn name(self) -> &'static str {
        ["accept", "reject", "edit", "end"][self as usize]
    }
}

/// A decision about a step that waited, as its event records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approval {
    /// Number of the approval in its run, from 1.
    pub number: u32,
    /// What was decided.
    pub verdict: ApprovalVerdict,
    /// The name of the reviewer's API key; `local` without keys, `deadline` if nobody decided in
    /// time.
    pub by: String,
    /// The reviewer's reason; left out if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The line that the executor had proposed; left out unless the reviewer replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<String>,
}

/// A decision on its way to the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The decision; [`Approval::proposed`] is not set yet.
    pub approval: Approval,
    /// The reviewer's line, if the verdict is [`ApprovalVerdict::Edit`].
    pub line: Option<String>,
}

/// A step that was held before its commit, read back from its event.
pub struct HeldStep {
    /// Number of the approval in its run, from 1.
    pub number: u32,
    /// Its turn.
    pub id: TurnId,
    /// The trajectory in the state in which the line was proposed.
    pub trajectory: Box<Trajectory>,
    /// The line that was proposed.
    pub line: String,
    /// What the executor wrote before the line.
    pub derivation: String,
    /// What the model thought before its answer.
    pub reasoning: String,
    /// The model or server that proposed it, if there are several.
    pub source: Option<String>,
    /// The tokens of the completion.
    pub tokens: Vec<u32>,
    /// ln p of each token of the completion.
    pub logprobs: Vec<f32>,
    /// The verifier's verdict.
    pub verdict: Verdict,
    /// Tokens that the turn's agents spent.
    pub usage: Usage,
    /// The decision, if there is one.
    pub resolution: Option<Resolution>,
}
