//! Preference pairs from people's reviews: a line that a reviewer rejects, and a better one that
//! was proposed in the same state of the same run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures::{Stream, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::runs::error::RunError;
use crate::runs::reader::RunReader;
use crate::runs::reader::trace::TraceContent;
use crate::runs::record::RunRecord;
use prime_bench::tasks::{self, Problem};
use prime_journal::{Journal, JournalError, Position, Review, SearchQuery};
use prime_lessons::compact;
use prime_protocol::{Approval, ApprovalVerdict, Decision};

/// Most events of a run that gives pairs: its steps are replayed.
const EVENTS_MAX: u64 = 200_000;
/// Flagged events in a page.
const FLAGS: u32 = 1_000;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatMessage {
    /// `user` or `assistant`.
    pub role: &'static str,
    /// The text.
    pub content: String,
}

impl ChatMessage {
    fn of(role: &'static str, content: String) -> Vec<Self> {
        vec![Self { role, content }]
    }
}

/// Why a line is better than the rejected one. A smaller one counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preferred {
    /// A reviewer accepted it.
    Accepted,
    /// A person put it in the place of one that waited for approval.
    Edited,
    /// It was committed, and no fault was found with it.
    Committed,
}

/// A prompt with a line to prefer and one to reject, in the columns of `data dpo`.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PreferencePair {
    /// The step as small models are asked for it.
    pub prompt: Vec<ChatMessage>,
    /// The better completion.
    pub chosen: Vec<ChatMessage>,
    /// The completion that the reviewer rejects.
    pub rejected: Vec<ChatMessage>,
    /// Minus the violation score of the better line.
    pub chosen_score: f64,
    /// Minus the violation score of the rejected line.
    pub rejected_score: f64,
    /// The id of the run that both lines come from.
    pub source: String,
    /// The slug of the task.
    pub task: String,
    /// The level of the instance; empty for an input of the client's own.
    pub difficulty: String,
    /// Why the better line is better.
    pub preferred: Preferred,
    /// The event of the better line.
    pub chosen_seq: u64,
    /// The event of the rejected line.
    pub rejected_seq: u64,
    /// Who rejected it.
    pub reviewer: String,
    /// The reviewer's note; may be empty.
    pub note: String,
    /// The node that has executed the run, if another daemon has; this one judged none of its
    /// steps.
    #[schema(required)]
    pub imported_from: Option<String>,
}

/// Why a rejected step gives no pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// No better line was proposed in its state.
    NoBetterLine,
    /// Another step with the same line has given the same pair.
    Repeated,
    /// Its problem is no task of the benchmark, and has no one-line prompt.
    OwnTask,
    /// Its run has more than 200,000 events.
    TooLong,
    /// Its run cannot be replayed by this version.
    Unreadable,
}

/// A rejected step without a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LeftOutStep {
    /// Why there is none.
    pub left_out: LeftOut,
    /// The id of the run.
    pub run: String,
    /// The number of the step's event.
    pub seq: u64,
}

/// What a rejected step gives.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PairLine {
    /// A pair.
    Pair(Box<PreferencePair>),
    /// None.
    LeftOut(LeftOutStep),
}

/// The newest reviews of a run, by the numbers of their events.
type Reviews = BTreeMap<u64, Review>;

fn newest_reviews(journal: &dyn Journal, id: &str) -> Result<Reviews, JournalError> {
    let (mut found, mut last) = (Reviews::new(), 0);
    loop {
        let page = journal.reviews(id, last, FLAGS)?;
        let Some(next) = page.last().map(|flagged| flagged.seq) else { return Ok(found) };
        let newest = page
            .into_iter()
            .filter_map(|mut flagged| flagged.reviews.pop().map(|review| (flagged.seq, review)));
        found.extend(newest);
        last = next;
    }
}

/// A line as it was proposed.
#[derive(Clone, Deserialize)]
struct Proposed {
    seq: u64,
    action: String,
    #[serde(default)]
    derivation: String,
    applicable: bool,
    score: f64,
    decision: Decision,
    #[serde(default)]
    approval: Option<Approval>,
    state: Option<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Step(Box<Proposed>),
    #[serde(other)]
    Other,
}

impl Proposed {
    fn completion(&self) -> String {
        if self.derivation.is_empty() {
            self.action.clone()
        } else {
            format!("{}\n{}", self.derivation, self.action)
        }
    }

    fn key(&self) -> Option<String> {
        self.state.as_ref().map(Value::to_string)
    }

    /// Why the line is preferred to others in its state; `None` if it is not.
    fn merit(&self, reviews: &Reviews) -> Option<Preferred> {
        let is_edited = |approval: &Approval| approval.verdict == ApprovalVerdict::Edit;
        match reviews.get(&self.seq) {
            Some(review) if review.is_rejected => None,
            Some(_) => Some(Preferred::Accepted),
            None if self.action.is_empty() || self.decision != Decision::Proceed => None,
            None if self.approval.as_ref().is_some_and(is_edited) => Some(Preferred::Edited),
            None => (self.applicable && self.score == 0.0).then_some(Preferred::Committed),
        }
    }
}

/// The steps of a piece of a trace.
fn proposed(lines: &[u8]) -> Result<Vec<Proposed>, RunError> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = |line| match serde_json::from_slice(line) {
        Ok(Event::Step(step)) => Some(Ok(*step)),
        Ok(Event::Other) => None,
        Err(error) => Some(Err(RunError::Unreadable(error.to_string()))),
    };
    lines.filter_map(read).collect()
}

/// What is known of a run whose reviews become pairs.
struct Rejections {
    run: String,
    task: String,
    difficulty: String,
    imported_from: Option<String>,
    reviews: Reviews,
    problem: Arc<dyn Problem>,
    /// The rejected lines.
    rejected: Vec<Proposed>,
    /// The best line of each of their states, other than the rejected ones.
    better: BTreeMap<String, Vec<(Preferred, Proposed)>>,
}

/// The lines that a reviewer rejects, by the state in which they were proposed.
type Refused<'r> = BTreeMap<String, BTreeSet<&'r str>>;

impl Rejections {
    /// Keeps a line that is better than others in a state of a rejected one.
    fn see(&mut self, step: Proposed) {
        let Some(merit) = step.merit(&self.reviews) else { return };
        let Some(better) = step.key().and_then(|key| self.better.get_mut(&key)) else { return };
        // The first proposal of a line stands for it, unless a later one has more merit.
        match better.iter_mut().find(|(_, known)| known.action == step.action) {
            Some((known, _)) if *known <= merit => {}
            Some(known) => *known = (merit, step),
            None => better.push((merit, step)),
        }
    }

    /// The best line in the state of a rejected one.
    fn better_than(
        &self,
        rejected: &Proposed,
        refused: &Refused<'_>,
    ) -> Option<&(Preferred, Proposed)> {
        let state = rejected.key()?;
        let others = self.better.get(&state)?.iter();
        // A line that was rejected at one step of the state is better than none at another one,
        // whatever was said of it there.
        let refused = refused.get(&state);
        let is_refused = |step: &Proposed| refused.is_some_and(|all| all.contains(&*step.action));
        others.filter(|(_, step)| !is_refused(step)).min_by_key(|(merit, step)| (*merit, step.seq))
    }

    fn pair(
        &self,
        rejected: &Proposed,
        refused: &Refused<'_>,
    ) -> Result<Option<PreferencePair>, RunError> {
        let Some((merit, chosen)) = self.better_than(rejected, refused) else { return Ok(None) };
        let (Some(state), Some(review)) = (&rejected.state, self.reviews.get(&rejected.seq)) else {
            return Ok(None);
        };
        let machine = self.problem.machine_at(state);
        let machine = machine.map_err(|error| RunError::Unreadable(error.to_string()))?;
        Ok(Some(PreferencePair {
            prompt: ChatMessage::of("user", compact(machine.as_ref())),
            chosen: ChatMessage::of("assistant", chosen.completion()),
            rejected: ChatMessage::of("assistant", rejected.completion()),
            chosen_score: 0.0 - chosen.score,
            rejected_score: 0.0 - rejected.score,
            source: self.run.clone(),
            task: self.task.clone(),
            difficulty: self.difficulty.clone(),
            preferred: *merit,
            chosen_seq: chosen.seq,
            rejected_seq: rejected.seq,
            reviewer: review.by.clone(),
            note: review.note.clone(),
            imported_from: self.imported_from.clone(),
        }))
    }

    fn lines(&self) -> Result<VecDeque<PairLine>, RunError> {
        let mut refused = Refused::new();
        for rejected in &self.rejected {
            if let Some(state) = rejected.key() {
                refused.entry(state).or_default().insert(&rejected.action);
            }
        }

        let mut seen = BTreeSet::new();
        let mut lines = VecDeque::new();
        for rejected in &self.rejected {
            let line = match self.pair(rejected, &refused)? {
                None => left_out(LeftOut::NoBetterLine, &self.run, rejected.seq),
                Some(pair) if !seen.insert((rejected.key(), rejected.completion())) => {
                    left_out(LeftOut::Repeated, &self.run, pair.rejected_seq)
                }
                Some(pair) => PairLine::Pair(Box::new(pair)),
            };
            lines.push_back(line);
        }
        Ok(lines)
    }
}

fn left_out(left_out: LeftOut, run: &str, seq: u64) -> PairLine {
    PairLine::LeftOut(LeftOutStep { left_out, run: run.to_owned(), seq })
}

/// Where the export is.
struct Exported {
    reader: RunReader,
    /// The next page of runs; `None` after the last one.
    query: Option<SearchQuery>,
    runs: VecDeque<RunRecord>,
    lines: VecDeque<PairLine>,
}

impl Exported {
    async fn next(&mut self) -> Result<Option<PairLine>, RunError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            if let Some(record) = self.runs.pop_front() {
                self.lines = self.reader.pairs_of(&record).await?;
                continue;
            }
            let Some(query) = self.query.take() else { return Ok(None) };
            let page = self.reader.find(query.clone()).await?;
            self.runs = page.runs.into();
            let after = page.next.map(|next| next.parse::<Position>()).transpose();
            let after = after.map_err(|error| RunError::Unreadable(format!("{error}")))?;
            self.query = after.map(|after| SearchQuery { after: Some(after), ..query });
        }
    }
}

impl RunReader {
    /// What the rejected steps of the runs that a search finds give, newest runs first. A run that
    /// cannot be read is left out, as are reviews of the last moments.
    pub fn pairs(
        &self,
        query: SearchQuery,
    ) -> impl Stream<Item = Result<PairLine, RunError>> + use<> {
        let query = Some(SearchQuery { is_flagged: Some(true), ..query });
        let (runs, lines) = (VecDeque::new(), VecDeque::new());
        let exported = Exported { reader: self.clone(), query, runs, lines };
        stream::try_unfold(exported, |mut exported| async move {
            Ok(exported.next().await?.map(|line| (line, exported)))
        })
    }

    /// What the rejected steps of one run give.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn pairs_of(&self, record: &RunRecord) -> Result<VecDeque<PairLine>, RunError> {
        let id = record.id.clone();
        let reviews = self.store().read(move |journal| newest_reviews(journal, &id)).await?;
        let rejected: Vec<u64> =
            reviews.iter().filter(|(_, said)| said.is_rejected).map(|(seq, _)| *seq).collect();
        let none = |why| Ok(rejected.iter().map(|seq| left_out(why, &record.id, *seq)).collect());

        if rejected.is_empty() {
            return Ok(VecDeque::new());
        }
        if record.events > EVENTS_MAX {
            return none(LeftOut::TooLong);
        }
        match self.rejections(record, reviews).await {
            Ok(Some(found)) => {
                let lines = tokio::task::spawn_blocking(move || found.lines()).await;
                match lines.map_err(|_| RunError::Draining)? {
                    Err(RunError::Unreadable(_)) => none(LeftOut::Unreadable),
                    lines => lines,
                }
            }
            Ok(None) => none(LeftOut::OwnTask),
            // One run must not hide the pairs of the others.
            Err(error @ (RunError::Draining | RunError::Journal(_))) => Err(error),
            Err(error) => {
                tracing::warn!(run = record.id, %error, "reviews of a run give no pairs");
                none(LeftOut::Unreadable)
            }
        }
    }

    /// The rejected lines of a run, and the better ones in their states; `None` if its task is not
    /// the benchmark's.
    async fn rejections(
        &self,
        record: &RunRecord,
        reviews: Reviews,
    ) -> Result<Option<Rejections>, RunError> {
        let (spec, programs) = self.store().spec_and_tasks(&record.id).await?;
        if tasks::find(&spec.task).is_err() {
            return Ok(None);
        }
        let of = spec.clone();
        let problem = tokio::task::spawn_blocking(move || of.problem(&programs));
        let problem = problem.await.map_err(|_| RunError::Draining)??;
        let level = spec.instance.split('/').nth(1).unwrap_or_default();

        let mut found = Rejections {
            run: record.id.clone(),
            task: spec.task.clone(),
            difficulty: level.to_owned(),
            imported_from: record.imported.as_ref().map(|imported| imported.node.clone()),
            reviews,
            problem,
            rejected: Vec::new(),
            better: BTreeMap::new(),
        };
        // States are long: the first pass finds those that matter, the second the lines in them.
        found = self
            .pass(found, |found, step| {
                if found.reviews.get(&step.seq).is_some_and(|review| review.is_rejected) {
                    found.better.extend(step.key().map(|key| (key, Vec::new())));
                    found.rejected.push(step);
                }
            })
            .await?;
        Ok(Some(self.pass(found, Rejections::see).await?))
    }

    /// Shows all steps of the run, each with the state in which it was proposed.
    async fn pass(
        &self,
        found: Rejections,
        see: impl Fn(&mut Rejections, Proposed) + Copy + Send + 'static,
    ) -> Result<Rejections, RunError> {
        let content = TraceContent { states: true, prompts: false };
        let mut lines = Box::pin(self.trace(&found.run, content).await?);
        let mut found = found;
        while let Some(piece) = lines.try_next().await? {
            let reading = tokio::task::spawn_blocking(move || {
                proposed(&piece)?.into_iter().for_each(|step| see(&mut found, step));
                Ok::<_, RunError>(found)
            });
            found = reading.await.map_err(|_| RunError::Draining)??;
        }
        Ok(found)
    }
}
