//! What users see of a step that waits for approval, or waited.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::error::RunError;
use crate::runs::record::timestamp;
use prime_journal::ApprovalRow;
use prime_protocol::{Approval, ApprovalVerdict, HeldStep, Resolution};
use prime_runtime::Event;
use prime_settings::ApproveElse;

/// A step that waits, as the journal keeps it beside the events.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldLine {
    /// The slug of the run's task.
    pub task: String,
    /// The instance's name, or `input`.
    pub instance: String,
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Committed steps before it.
    pub depth: u64,
    /// The line that the executor proposes.
    pub action: String,
    /// What the executor wrote before it; left out if nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub derivation: String,
    /// The violation score, with which the step would be committed.
    #[schema(minimum = 0.0)]
    pub score: f64,
    /// The names of the violated constraints.
    pub violations: Vec<String>,
    /// True if the verifiers disagree so much that a person should look at it.
    pub flagged: bool,
    /// What happens if nobody decides in time: `reject`, `accept` or `end`.
    #[schema(inline)]
    pub otherwise: ApproveElse,
    /// Milliseconds since 1970 at which it began to wait.
    #[serde(rename = "since_ms")]
    #[schema(ignore)]
    since_ms: u64,
}

impl HeldLine {
    /// The step of an event.
    pub fn of_event(step: &Event<'_>, about: &About<'_>) -> Option<Self> {
        let Event::Step { id, depth, proposal, verdict, .. } = step else { return None };
        Some(Self {
            task: about.task.to_owned(),
            instance: about.instance.to_owned(),
            round: id.round,
            trajectory: id.trajectory,
            depth: *depth as u64,
            action: proposal.line.clone(),
            derivation: proposal.derivation.clone(),
            score: verdict.score.value(),
            violations: verdict.violations.iter().map(ToString::to_string).collect(),
            flagged: verdict.needs_review,
            otherwise: about.otherwise,
            since_ms: about.now_ms,
        })
    }

    /// The step that an earlier process held.
    pub fn of_held(step: &HeldStep, about: &About<'_>) -> Self {
        Self {
            task: about.task.to_owned(),
            instance: about.instance.to_owned(),
            round: step.id.round,
            trajectory: step.id.trajectory,
            depth: step.trajectory.stack.depth() as u64,
            action: step.line.clone(),
            derivation: step.derivation.clone(),
            score: step.verdict.score.value(),
            violations: step.verdict.violations.iter().map(ToString::to_string).collect(),
            flagged: step.verdict.needs_review,
            otherwise: about.otherwise,
            since_ms: about.now_ms,
        }
    }
}

/// The run of a step that waits.
#[derive(Clone, Copy)]
pub struct About<'a> {
    pub task: &'a str,
    pub instance: &'a str,
    pub otherwise: ApproveElse,
    pub now_ms: u64,
}

/// A decision as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRow {
    pub verdict: ApprovalVerdict,
    pub by: String,
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl DecisionRow {
    /// The decision of a row, if there is one that this version can read.
    pub fn of(row: &ApprovalRow) -> Option<Self> {
        serde_json::from_str(row.decision.as_deref()?).ok()
    }

    /// The decision on its way to the run.
    pub fn resolution(self, number: u32) -> Resolution {
        let Self { verdict, by, reason, line, .. } = self;
        Resolution { approval: Approval { number, verdict, by, reason, proposed: None }, line }
    }
}

/// A decision about a step that waited.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalDecision {
    /// What was decided.
    pub verdict: ApprovalVerdict,
    /// The name of the reviewer's API key; `local` without keys, `deadline` if nobody decided in
    /// time, `cancel` if the run was cancelled.
    pub by: String,
    /// When: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub at: String,
    /// The reviewer's reason; left out if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub reason: String,
    /// The reviewer's line; left out unless the line was edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<String>,
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It can be decided.
    Waiting,
    /// It was decided.
    Decided,
    /// Its run or its round ended first.
    Void,
}

/// A step that waits for approval, or waited.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalRecord {
    /// The id of the run.
    pub run: String,
    /// The number of the approval in its run, from 1.
    pub number: u32,
    /// Whether it waits.
    pub state: ApprovalState,
    /// The step.
    #[serde(flatten)]
    pub step: HeldLine,
    /// Since when it waits: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub since: String,
    /// When it must be decided: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub due: String,
    /// What was decided; null if nothing was.
    #[schema(required)]
    pub decision: Option<ApprovalDecision>,
}

impl ApprovalRecord {
    /// Reads a row.
    ///
    /// # Errors
    /// When another version wrote it.
    pub fn of_row(row: &ApprovalRow) -> Result<Self, RunError> {
        let unreadable = |error: serde_json::Error| RunError::Unreadable(error.to_string());
        let step: HeldLine = serde_json::from_str(&row.body).map_err(unreadable)?;
        let decision = row.decision.as_deref().map(serde_json::from_str::<DecisionRow>);
        let decision = decision.transpose().map_err(unreadable)?;
        let state = match (&decision, row.is_void) {
            (Some(_), _) => ApprovalState::Decided,
            (None, true) => ApprovalState::Void,
            (None, false) => ApprovalState::Waiting,
        };
        Ok(Self {
            run: row.run.clone(),
            number: row.number,
            state,
            since: timestamp(step.since_ms),
            due: timestamp(row.due_ms),
            step,
            decision: decision.map(|decision| ApprovalDecision {
                verdict: decision.verdict,
                by: decision.by,
                at: timestamp(decision.at_ms),
                reason: decision.reason,
                line: decision.line,
            }),
        })
    }
}
