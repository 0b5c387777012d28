//! Human review of flagged steps.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RunStore;
use crate::runs::decision::decision_name;
use crate::runs::error::RunError;
use crate::runs::record::timestamp;
use prime_journal::{Assigned, FlaggedEvent, Journal, JournalError, Review, Segment};
use prime_protocol::Opinion;
use prime_report::{RecordedEvent, StepLine};

/// Maximum number of reviews of one step; repeated ones do not count.
const REVIEWS_MAX: usize = 100;
/// Bytes of events after which a page ends early.
const PAGE_BYTES: usize = 16 << 20;

/// What a reviewer decides about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    /// The step is right.
    Accept,
    /// The step is wrong.
    Reject,
}

/// A review of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewLine {
    /// What the reviewer decided.
    pub verdict: ReviewDecision,
    /// What the reviewer noted; left out if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The name of the reviewer's API key; `local` without keys.
    pub by: String,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub at: String,
}

impl From<&Review> for ReviewLine {
    fn from(review: &Review) -> Self {
        Self {
            verdict: if review.is_rejected {
                ReviewDecision::Reject
            } else {
                ReviewDecision::Accept
            },
            note: review.note.clone(),
            by: review.by.clone(),
            at: timestamp(review.at_ms),
        }
    }
}

/// A step that needs review, with its reviews.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlaggedStep {
    /// The number of its event.
    pub seq: u64,
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Committed steps below it.
    pub depth: u64,
    /// The proposed line.
    pub action: String,
    /// The violation score that the run used.
    pub score: f64,
    /// The names of the violated constraints.
    pub violations: Vec<String>,
    /// The decision on the step: `proceed`, `retry` or `backtrack`.
    pub decision: String,
    /// What each verifier found.
    pub opinions: Vec<Opinion>,
    /// The newest review; null without any.
    #[schema(required)]
    pub review: Option<ReviewLine>,
    /// The name of its assignee; null if it has none.
    #[serde(default)]
    #[schema(required)]
    pub assignee: Option<String>,
    /// Earlier reviews, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ReviewLine>,
}

impl FlaggedStep {
    fn new(flagged: &FlaggedEvent, assignee: Option<String>, step: &StepLine<'_>) -> Self {
        let mut history: Vec<_> = flagged.reviews.iter().map(ReviewLine::from).collect();
        // The newest review counts; the others are the history.
        let review = history.pop();
        Self {
            seq: flagged.seq,
            round: step.round,
            trajectory: step.trajectory,
            depth: step.depth as u64,
            action: step.action.clone().into_owned(),
            score: step.score.value(),
            violations: step.violations.iter().map(|name| name.clone().into_owned()).collect(),
            decision: decision_name(step.decision).to_owned(),
            opinions: step.opinions.to_vec(),
            review,
            assignee,
            history,
        }
    }
}

/// The segment that holds an event.
fn segment_of(journal: &dyn Journal, id: &str, seq: u64) -> Result<Segment, JournalError> {
    let segment = journal.segments(id, seq.saturating_sub(1), 0)?.into_iter().next();
    segment.ok_or_else(|| {
        JournalError::Damaged(format!("run {id:?}: event {seq} is flagged but missing"))
    })
}

/// Reads the flagged steps, at most about `PAGE_BYTES` of events. Returns whether all are there.
fn steps(
    journal: &dyn Journal,
    id: &str,
    flags: &[FlaggedEvent],
) -> Result<(Vec<FlaggedStep>, bool), JournalError> {
    let mut steps = Vec::with_capacity(flags.len());
    let mut current: Option<Segment> = None;
    let mut bytes = 0;
    let (Some(first), Some(last)) = (flags.first(), flags.last()) else { return Ok((steps, true)) };
    let mut assignees = journal.assignees().assigned(id, first.seq, last.seq)?;
    for flagged in flags {
        let seq = flagged.seq;
        // Flags come in order, so that the last segment often has the next one too.
        let segment = match current.take().filter(|segment| segment.last_seq() >= seq) {
            Some(segment) => segment,
            None if bytes >= PAGE_BYTES => return Ok((steps, false)),
            None => {
                let segment = segment_of(journal, id, seq)?;
                bytes += segment.body.len();
                segment
            }
        };

        let event = segment.events().find(|(at, _)| *at == seq).map(|(_, event)| event);
        match event.map(RecordedEvent::read) {
            Some(Ok(RecordedEvent::Step(step))) => {
                let assignee = assignees.remove(&seq);
                steps.push(FlaggedStep::new(flagged, assignee, &step));
            }
            _ => {
                return Err(JournalError::Damaged(format!(
                    "run {id:?}: event {seq} is flagged but is not a step"
                )));
            }
        }
        current = Some(segment);
    }
    Ok((steps, true))
}

impl RunStore {
    /// The steps of a run after event `after` that need review, and are `assigned` so: at most
    /// `limit`, fewer where events are large or others were passed over. The second value is `after`
    /// of the next page; `None` at the end.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn reviews(
        &self,
        id: &str,
        after: u64,
        limit: u32,
        assigned: Option<Assigned>,
    ) -> Result<(Vec<FlaggedStep>, Option<u64>), RunError> {
        let id = id.to_owned();
        let page = move |journal: &dyn Journal| {
            let flags = journal.reviews(&id, after, limit)?;
            let (mut steps, is_whole) = steps(journal, &id, &flags)?;
            let has_more = !is_whole || flags.len() == limit as usize;
            let next = steps.last().filter(|_| has_more).map(|step| step.seq);
            match assigned {
                None => {}
                Some(Assigned::Nobody) => steps.retain(|step| step.assignee.is_none()),
                Some(Assigned::To(name)) => {
                    steps.retain(|step| step.assignee.as_ref() == Some(&name));
                }
            }
            Ok((steps, next))
        };
        self.read(page).await
    }

    /// Adds a review of a flagged step; it is durable when this returns. A repetition of the newest
    /// review changes nothing.
    ///
    /// # Errors
    /// `NotFlagged` when the event needs no review, `Conflict` when it has too many, and those of
    /// the journal.
    pub async fn review(
        &self,
        id: &str,
        seq: u64,
        decision: ReviewDecision,
        note: String,
        by: String,
    ) -> Result<FlaggedStep, RunError> {
        let review = Review {
            at_ms: self.now_ms(),
            by,
            is_rejected: decision == ReviewDecision::Reject,
            note,
        };

        let known = self.flagged(id, seq).await?;
        let repeats = known.reviews.last().is_some_and(|newest| newest.repeats(&review));
        if !repeats {
            if known.reviews.len() >= REVIEWS_MAX {
                let message = format!(
                    "event {seq} has {REVIEWS_MAX} reviews, the most that are kept; the newest stands"
                );
                return Err(RunError::Conflict(message));
            }
            self.writer.review(id.to_owned(), seq, review).await?;
        }

        self.flagged_step(id, seq).await
    }

    /// Assigns a flagged step to somebody, or to nobody; durable when this returns. The last
    /// assignment stands. Others may review the step all the same.
    ///
    /// # Errors
    /// `NotFlagged` when the event needs no review, and those of the journal.
    pub async fn assign(
        &self,
        id: &str,
        seq: u64,
        assignee: Option<String>,
    ) -> Result<FlaggedStep, RunError> {
        self.flagged(id, seq).await?;
        let name = id.to_owned();
        self.read(move |journal| journal.assignees().assign(&name, seq, assignee.as_deref()))
            .await?;
        self.flagged_step(id, seq).await
    }

    /// A flagged step as it is durable.
    async fn flagged_step(&self, id: &str, seq: u64) -> Result<FlaggedStep, RunError> {
        let (name, flagged) = (id.to_owned(), [self.flagged(id, seq).await?]);
        let (steps, _) = self.read(move |journal| steps(journal, &name, &flagged)).await?;
        steps.into_iter().next().ok_or_else(|| RunError::NotFlagged { id: id.to_owned(), seq })
    }

    async fn flagged(&self, id: &str, seq: u64) -> Result<FlaggedEvent, RunError> {
        let name = id.to_owned();
        let found = match seq.checked_sub(1) {
            Some(before) => self.read(move |journal| journal.reviews(&name, before, 1)).await?,
            None => Vec::new(),
        };
        let flagged = found.into_iter().find(|flagged| flagged.seq == seq);
        flagged.ok_or_else(|| RunError::NotFlagged { id: id.to_owned(), seq })
    }
}
