//! Steps that ask for a person: what they are, and what persons said of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::live::timestamp;
use super::service::{RunError, Runs};
use crate::report::{Recorded, StepLine};
use prime_journal::{Flagged, Journal, JournalError, Review, Segment};
use prime_protocol::{Decision, Opinion};

/// Reviews of one step, the repeated ones not counted.
const REVIEWS_MAX: usize = 100;
/// Bytes of events after which a page ends, however few steps it has.
const PAGE_BYTES: usize = 16 << 20;

/// What a person says of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is right.
    Accept,
    /// It is wrong.
    Reject,
}

/// A review of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewLine {
    pub verdict: Verdict,
    /// Left out where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The name of the key that it came with; `local` where there are no keys.
    pub by: String,
    /// RFC 3339, UTC.
    pub at: String,
}

impl From<&Review> for ReviewLine {
    fn from(review: &Review) -> Self {
        Self {
            verdict: if review.is_rejected { Verdict::Reject } else { Verdict::Accept },
            note: review.note.clone(),
            by: review.by.clone(),
            at: timestamp(review.at_ms),
        }
    }
}

/// A step that asks for a person, with what was said of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlaggedStep {
    /// The number of its event.
    pub seq: u64,
    pub round: u32,
    pub trajectory: u32,
    /// Committed steps below it.
    pub depth: u64,
    pub action: String,
    /// The violation score that the run went by.
    pub score: f64,
    /// The names of the constraints that it breaks.
    pub violations: Vec<String>,
    /// What became of it: `proceed`, `retry` or `backtrack`.
    pub decision: String,
    /// What each verifier found.
    pub opinions: Vec<Opinion>,
    /// The newest review; null where nobody has looked at it.
    #[schema(required)]
    pub review: Option<ReviewLine>,
    /// The reviews before that, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ReviewLine>,
}

impl FlaggedStep {
    fn new(flagged: &Flagged, step: &StepLine<'_>) -> Self {
        let mut history: Vec<_> = flagged.reviews.iter().map(ReviewLine::from).collect();
        let review = history.pop();
        let decision = match step.decision {
            Decision::Proceed => "proceed",
            Decision::Retry => "retry",
            Decision::Backtrack => "backtrack",
        };
        Self {
            seq: flagged.seq,
            round: step.round,
            trajectory: step.trajectory,
            depth: step.depth as u64,
            action: step.action.clone().into_owned(),
            score: step.score.value(),
            violations: step.violations.iter().map(|name| name.clone().into_owned()).collect(),
            decision: decision.to_owned(),
            opinions: step.opinions.to_vec(),
            review,
            history,
        }
    }
}

/// The segment that holds an event.
fn segment_of(journal: &dyn Journal, id: &str, seq: u64) -> Result<Segment, JournalError> {
    let segment = journal.segments(id, seq.saturating_sub(1), 0)?.into_iter().next();
    segment.ok_or_else(|| JournalError::Damaged(format!("run {id:?}: event {seq} is flagged, but is not there")))
}

/// Puts their events to flags, until too many bytes were read; says whether all are there.
fn steps(journal: &dyn Journal, id: &str, flags: &[Flagged]) -> Result<(Vec<FlaggedStep>, bool), JournalError> {
    let mut steps = Vec::with_capacity(flags.len());
    let mut at_hand: Option<Segment> = None;
    let mut bytes = 0;
    for flagged in flags {
        let seq = flagged.seq;
        let segment = match at_hand.take().filter(|segment| segment.last_seq() >= seq) {
            Some(segment) => segment,
            None if bytes >= PAGE_BYTES => return Ok((steps, false)),
            None => {
                let segment = segment_of(journal, id, seq)?;
                bytes += segment.body.len();
                segment
            }
        };
        let event = segment.events().find(|(at, _)| *at == seq).map(|(_, event)| event);
        match event.map(Recorded::read) {
            Some(Ok(Recorded::Step(step))) => steps.push(FlaggedStep::new(flagged, &step)),
            _ => return Err(JournalError::Damaged(format!("run {id:?}: event {seq} is flagged, but is no step"))),
        }
        at_hand = Some(segment);
    }
    Ok((steps, true))
}

impl Runs {
    /// The steps of a run that ask for a person, those after event `after`, at most `limit` of them and about as many as
    /// fit into memory well. The second is where the next page begins; `None` at the end.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn reviews(&self, id: &str, after: u64, limit: u32) -> Result<(Vec<FlaggedStep>, Option<u64>), RunError> {
        let id = id.to_owned();
        let page = move |journal: &dyn Journal| {
            let flags = journal.reviews(&id, after, limit)?;
            let (steps, is_whole) = steps(journal, &id, &flags)?;
            let has_more = !is_whole || flags.len() == limit as usize;
            let next = steps.last().filter(|_| has_more).map(|step| step.seq);
            Ok((steps, next))
        };
        self.read(page).await
    }

    /// Keeps what a person says of a step that asks for one; when this returns, it is durable. What repeats the newest
    /// review changes nothing.
    ///
    /// # Errors
    /// `NotFlagged` when the event asks for nobody, `Conflict` when too much was said of it, and those of the journal.
    pub async fn review(
        &self,
        id: &str,
        seq: u64,
        verdict: Verdict,
        note: String,
        by: String,
    ) -> Result<FlaggedStep, RunError> {
        let review = Review { at_ms: (self.clock)(), by, is_rejected: verdict == Verdict::Reject, note };
        let known = self.flagged(id, seq).await?;
        let repeats = known.reviews.last().is_some_and(|newest| newest.repeats(&review));
        if !repeats {
            if known.reviews.len() >= REVIEWS_MAX {
                let message =
                    format!("event {seq} has {REVIEWS_MAX} reviews, and may have no more: it keeps the newest");
                return Err(RunError::Conflict(message));
            }
            self.writer.review(id.to_owned(), seq, review).await.map_err(RunError::NotWritable)?;
        }
        let (name, flagged) = (id.to_owned(), [self.flagged(id, seq).await?]);
        let (steps, _) = self.read(move |journal| steps(journal, &name, &flagged)).await?;
        steps.into_iter().next().ok_or_else(|| RunError::NotFlagged { id: id.to_owned(), seq })
    }

    async fn flagged(&self, id: &str, seq: u64) -> Result<Flagged, RunError> {
        let name = id.to_owned();
        let found = match seq.checked_sub(1) {
            Some(before) => self.read(move |journal| journal.reviews(&name, before, 1)).await?,
            None => Vec::new(),
        };
        let flagged = found.into_iter().find(|flagged| flagged.seq == seq);
        flagged.ok_or_else(|| RunError::NotFlagged { id: id.to_owned(), seq })
    }
}
