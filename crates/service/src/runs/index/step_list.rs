//! Steps as they were recorded: of a trajectory by position, or of the whole run by event.

use serde::Serialize;
use utoipa::ToSchema;

use super::{READ_BYTES, StepIndexes};
use crate::runs::decision::decision_name;
use crate::runs::error::RunError;
use prime_journal::{Journal, JournalError};
use prime_protocol::{TurnId, Usage};
use prime_report::{RecordedEvent, StepLine};

/// Maximum bytes of a text in a list.
const TEXT_BYTES_MAX: usize = 4_096;

/// A step in a list. Long texts are cut.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StepSummary {
    /// The number of its event.
    pub seq: u64,
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Its position in its trajectory, from 0; null in a list of the whole run.
    #[schema(required)]
    pub position: Option<u64>,
    /// Committed steps below it.
    pub depth: u64,
    /// The proposed line.
    pub action: String,
    /// True if `action` was cut to 4 KiB.
    pub cut: bool,
    /// True if the action can be applied in its state.
    pub applicable: bool,
    /// The violation score: the sum of the violations' severities.
    #[schema(minimum = 0.0)]
    pub score: f64,
    /// The names of the violated constraints.
    pub violations: Vec<String>,
    /// `proceed`, `retry` or `backtrack`.
    pub decision: String,
    /// True if the step asks for review by a person.
    pub needs_review: bool,
    /// Tokens that the step cost.
    pub usage: Usage,
    /// Milliseconds of run time so far.
    pub elapsed_ms: u64,
}

/// Consecutive steps.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StepList {
    /// The steps, in ascending order.
    pub steps: Vec<StepSummary>,
    /// Steps of the trajectory, as far as they are indexed; null in a list of the whole run.
    #[schema(required)]
    pub total: Option<u64>,
    /// `from` of the next page of a trajectory, `after` of the next page of the whole run; null at
    /// the end.
    #[schema(required)]
    pub next: Option<u64>,
    /// True if more events of the run are durable than are indexed: ask again.
    pub has_more: bool,
}

pub(super) fn no_such_trajectory(TurnId { round, trajectory }: TurnId) -> RunError {
    RunError::NoSuchTrajectory { round, trajectory }
}

/// The text up to a limit, and whether it was cut.
pub(super) fn cut(text: &str, bytes_max: usize) -> (String, bool) {
    let end = text.floor_char_boundary(bytes_max);
    (text[..end].to_owned(), end < text.len())
}

fn summary(seq: u64, position: Option<u64>, step: &StepLine<'_>) -> StepSummary {
    let (action, is_cut) = cut(&step.action, TEXT_BYTES_MAX);
    StepSummary {
        seq,
        round: step.round,
        trajectory: step.trajectory,
        position,
        depth: step.depth as u64,
        action,
        cut: is_cut,
        applicable: step.applicable,
        score: step.score.value(),
        violations: step.violations.iter().map(|name| name.clone().into_owned()).collect(),
        decision: decision_name(step.decision).to_owned(),
        needs_review: step.needs_review,
        usage: step.usage,
        elapsed_ms: step.elapsed_ms,
    }
}

/// Reads the events with these numbers, in ascending order.
///
/// # Errors
/// When one is missing, or the journal cannot be read; and those of `visit`.
pub(super) fn read_events(
    journal: &dyn Journal,
    id: &str,
    seqs: &[u64],
    mut visit: impl FnMut(u64, &[u8]) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut rest = seqs;
    while let Some(first) = rest.first().copied() {
        // This is the smallest read: the segment that holds the event, and possibly some of the
        // next ones.
        let segments = journal.segments(id, first.saturating_sub(1), 0)?;
        for (seq, event) in segments.iter().flat_map(prime_journal::Segment::events) {
            if rest.first() == Some(&seq) {
                visit(seq, event)?;
                rest = &rest[1..];
            }
        }

        if rest.first() == Some(&first) {
            return Err(
                JournalError::Damaged(format!("run {id:?}: event {first} is missing")).into()
            );
        }
    }
    Ok(())
}

/// Reads a step.
///
/// # Errors
/// When the event is not a step of this version.
pub(super) fn read_step(seq: u64, event: &[u8]) -> Result<StepLine<'_>, RunError> {
    match RecordedEvent::read(event) {
        Ok(RecordedEvent::Step(step)) => Ok(step),
        Ok(_) => Err(RunError::NoSuchStep(seq)),
        Err(error) => Err(RunError::Unreadable(format!("event {seq}: {error}"))),
    }
}

impl StepIndexes {
    /// Steps of a trajectory from position `from` on, at most `limit`.
    ///
    /// # Errors
    /// When the run has no such trajectory, or the journal cannot be read.
    pub async fn of_trajectory(
        &self,
        id: &str,
        turn: TurnId,
        from: u64,
        limit: usize,
    ) -> Result<StepList, RunError> {
        let name = id.to_owned();
        self.ask(id, move |index, journal, has_more| {
            let of = index.trajectory(turn).ok_or_else(|| no_such_trajectory(turn))?;
            let total = of.steps.len();
            let start = usize::try_from(from).map_or(total, |from| from.min(total));

            let seqs: Vec<u64> =
                of.steps[start..].iter().take(limit).map(|step| step.seq).collect();
            let mut steps = Vec::with_capacity(seqs.len());

            read_events(journal, &name, &seqs, |seq, event| {
                let position = start as u64 + steps.len() as u64;
                steps.push(summary(seq, Some(position), &read_step(seq, event)?));
                Ok(())
            })?;

            let end = start + steps.len();
            let next = (end < total).then_some(end as u64);
            Ok(StepList { steps, total: Some(total as u64), next, has_more })
        })
        .await
    }

    /// Steps of all trajectories after event `after`, at most `limit`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn after(&self, id: &str, after: u64, limit: usize) -> Result<StepList, RunError> {
        let id = id.to_owned();
        let read = move |journal: &dyn Journal| {
            let (mut steps, mut seq) = (Vec::new(), after);
            while steps.len() < limit {
                let segments = journal.segments(&id, seq, READ_BYTES / 16)?;
                if segments.is_empty() {
                    return Ok(StepList { steps, total: None, next: None, has_more: false });
                }

                for (at, event) in segments.iter().flat_map(prime_journal::Segment::events) {
                    if at > seq && steps.len() < limit {
                        seq = at;
                        if let Ok(RecordedEvent::Step(step)) = RecordedEvent::read(event) {
                            steps.push(summary(at, None, &step));
                        }
                    }
                }
            }
            Ok(StepList { steps, total: None, next: Some(seq), has_more: false })
        };
        self.store.read(read).await
    }
}
