//! Adds the run of a bundle to the journal. What the run did is replayed here, so that its record
//! says what its events say, whatever the head of the bundle claims.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde_json::Value;

use super::format::{BundleError, Head, Reviewed};
use super::parse::{Parsed, parse};
use crate::runs::error::RunError;
use crate::runs::labels::check_labels;
use crate::runs::progress::Progress;
use crate::runs::record::{Imported, RunRecord, Status, timestamp};
use crate::runs::service::Runs;
use crate::runs::spec::{NoProblem, RunSpec};
use crate::runs::store::replay::{NotReplayed, apply};
use prime_agent_set::Names;
use prime_agent_set::task_program::TaskPrograms;
use prime_journal::{Head as ChainHead, Review, ReviewCounts, RunRow, Segment, Write};
use prime_protocol::{Assurance, Cost, Ending, Outcome, Replay, Replayed};
use prime_report::{RecordedEvent, RunResult};

/// Longest id of a run, in bytes.
const ID_BYTES_MAX: usize = 64;
/// How far the clock of another node may be ahead, in milliseconds.
const AHEAD_MS: u64 = 600_000;
/// Most reviews of a step, and most bytes of each, as for reviews that are made here.
const REVIEWS_MAX: usize = 100;
const REVIEW_BYTES_MAX: usize = 4_096;

/// Most bytes of a record, unless requests may be larger.
const RECORD_BYTES_MAX: usize = 8 << 20;

/// An imported run.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The run as its users see it.
    pub record: RunRecord,
    /// False if the same run was here already.
    pub is_new: bool,
}

/// Longest texts of a head and of a spec that lists show, in bytes.
const TEXT_BYTES_MAX: usize = 1_000;
/// The time of the first release: no run is older.
const FIRST_MS: u64 = 1_767_225_600_000;
/// Longest time of a run: ten years, in milliseconds.
const ELAPSED_MS_MAX: u64 = 315_576_000_000;
/// Highest cost of a run: a billion.
const COST_MAX: Cost = Cost::from_nanos(1_000_000_000_000_000_000);

/// An event, as far as every event has it; with what the last one says of the end of its run.
#[derive(Deserialize)]
struct AnyEvent {
    event: String,
    answer: Option<Value>,
    assurance: Option<Assurance>,
}

/// The names of events that this version knows, but for the last one's.
const EVENTS: [&str; 11] = [
    "started",
    "step",
    "waiting",
    "mishap",
    "turn_failed",
    "stopped",
    "trajectory_ended",
    "chosen",
    "voted",
    "resumed",
    "forked",
];

/// What is known of a run after its events.
struct Known {
    outcome: Outcome,
    progress: Progress,
    /// Numbers of the steps that a person should review.
    flagged: Vec<u64>,
}

fn broken(record: u64, reason: &dyn std::fmt::Display) -> BundleError {
    BundleError::Broken { record, reason: reason.to_string() }
}

fn check_head(head: &Head, now_ms: u64) -> Result<(), BundleError> {
    let wrong = |reason: String| Err(BundleError::Head(reason));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let id = head.run.as_bytes();
    if id.len() > ID_BYTES_MAX || !id.starts_with(b"run_") || !id.iter().copied().all(is_plain) {
        return wrong(format!("{:?} is not the id of a run", head.run));
    }
    // Retention goes by these times.
    if head.created_ms > now_ms.saturating_add(AHEAD_MS) {
        return wrong(format!(
            "its run was accepted {} ms after 1970, which is to come: set the clock of this daemon, \
             or of the other one",
            head.created_ms
        ));
    }
    if head.created_ms < FIRST_MS {
        let created = timestamp(head.created_ms);
        return wrong(format!("its run was accepted at {created}, before there was this program"));
    }
    if !head.status.is_over() {
        return wrong("its run is not over".to_owned());
    }
    for (name, text) in [("node", &head.node), ("program", &head.program)] {
        if text.len() > TEXT_BYTES_MAX {
            let length = text.len();
            return wrong(format!(
                "`{name}` has {length} bytes; at most {TEXT_BYTES_MAX} are kept"
            ));
        }
    }
    let mut reviewed = BTreeSet::new();
    for Reviewed { seq, reviews } in &head.reviews {
        let is_long = |text: &String| text.len() > REVIEW_BYTES_MAX;
        if reviews.len() > REVIEWS_MAX
            || !reviewed.insert(*seq)
            || reviews.iter().any(|review| is_long(&review.by) || is_long(&review.note))
        {
            return wrong(format!("event {seq} has more reviews, or longer ones, than are kept"));
        }
        if reviews.iter().any(|review| review.at_ms > now_ms.saturating_add(AHEAD_MS)) {
            return wrong(format!("a review of event {seq} has a time that is to come"));
        }
    }
    check_labels(&head.labels).or_else(|error| wrong(error.to_string()))
}

/// Checks what lists show of a spec.
fn check_spec(spec: &RunSpec) -> Result<(), BundleError> {
    check_labels(&spec.labels).map_err(|error| broken(0, &error))?;
    let Names { executor, verifier, coordinator, .. } = &spec.agents;
    for (name, text) in [
        ("task", &spec.task),
        ("instance", &spec.instance),
        ("executor", executor),
        ("verifier", verifier),
        ("coordinator", coordinator),
    ] {
        if text.len() > TEXT_BYTES_MAX {
            let length = text.len();
            let reason = format!("`{name}` has {length} bytes; at most {TEXT_BYTES_MAX} are kept");
            return Err(broken(0, &reason));
        }
    }
    Ok(())
}

/// Replays the events. May compute for seconds.
fn replayed(parsed: &Parsed, spec: &RunSpec, tasks: &TaskPrograms) -> Result<Known, BundleError> {
    spec.plan.check_size().map_err(|reason| broken(0, &reason))?;
    check_spec(spec)?;
    let problem = spec.problem(tasks).map_err(|error| match error {
        NoProblem::Unreadable(reason) => broken(0, &reason),
        error @ NoProblem::Missing(_) => BundleError::Run(NotReplayed::from(error).into()),
    })?;

    let mut replay = Replay::new(problem, spec.plan.clone());
    let (mut progress, mut flagged, mut finished) = (Progress::default(), Vec::new(), None);
    for (seq, event) in parsed.segments.iter().flat_map(Segment::events) {
        // As a value: one that is nested too deeply could not be shown later.
        let known = serde_json::from_slice::<Value>(event).and_then(AnyEvent::deserialize);
        let known = known.map_err(|error| broken(seq, &error))?;
        match known.event.as_str() {
            "finished" if seq == parsed.last.seq => finished = Some((seq, known)),
            "finished" => return Err(broken(seq, &"events follow the end of the run")),
            name if EVENTS.contains(&name) => {}
            _ => return Err(broken(seq, &"this version does not know such an event")),
        }
        if let Ok(RecordedEvent::Step(step)) = RecordedEvent::read(event)
            && replay.trajectory(step.id()).is_some_and(|at| at.stack.depth() != step.depth)
        {
            return Err(broken(seq, &"its depth is not that of the steps before"));
        }
        apply(&mut replay, event, &mut progress).map_err(|error| match error {
            NotReplayed::Events(reason) => broken(seq, &reason),
            error => BundleError::Run(error.into()),
        })?;
        if matches!(RecordedEvent::read(event), Ok(RecordedEvent::Step(step)) if step.needs_review)
        {
            flagged.push(seq);
        }
    }
    let cost = progress.usage.cost.unwrap_or_default();
    if progress.elapsed_ms > ELAPSED_MS_MAX || cost > COST_MAX {
        let reason = "its time or its cost is beyond what a run can have";
        return Err(broken(parsed.last.seq, &reason));
    }

    let outcome = match replay.finish() {
        Replayed::Over(outcome) => *outcome,
        // It could not be carried out to its end, and its last event does not say why.
        Replayed::Open(_) if parsed.head.status == Status::Failed => {
            let reason = parsed.head.failure.clone().unwrap_or_default();
            Outcome::without_answer(Ending::AgentFailed(reason))
        }
        Replayed::Open(_) => {
            return Err(broken(parsed.last.seq, &"the run is not over after its last event"));
        }
    };
    // Early records have no assurance.
    if let Some((seq, end)) = finished
        && (end.answer != outcome.answer
            || end.assurance.is_some_and(|claimed| Some(claimed) != outcome.assurance))
    {
        return Err(broken(seq, &"the answer or its verdict is not what the steps before lead to"));
    }
    let status = Status::of(&outcome);
    if status != parsed.head.status {
        return Err(BundleError::Head(format!(
            "it says that the run ended as {}, and its events say {}",
            parsed.head.status.name(),
            status.name()
        )));
    }
    Ok(Known { outcome, progress, flagged })
}

/// Everything that adds the run to a journal.
fn writes(
    parsed: Parsed,
    known: Known,
    spec: &RunSpec,
    owner: &str,
    now_ms: u64,
    other_program: bool,
) -> Result<Vec<Write>, BundleError> {
    let Parsed { head, spec: text, segments, .. } = parsed;
    let Known { outcome, progress, flagged } = known;
    let status = Status::of(&outcome);
    let context = spec.context();
    let mut result = RunResult::new(outcome, &context, progress.elapsed_ms, progress.steps);
    result.approvals = progress.approvals.if_any();
    let imported = Imported {
        run: head.run.clone(),
        node: head.node,
        program: head.program,
        at: timestamp(now_ms),
        other_program,
    };

    let id = head.run;
    let row = RunRow {
        id: id.clone(),
        owner: owner.to_owned(),
        created_ms: head.created_ms,
        updated_ms: now_ms,
        task: spec.task.clone(),
        // It must be open to take its events; the last write ends it.
        status: Status::Queued.name().to_owned(),
        is_over: false,
        resumed: head.resumed,
        head: ChainHead::genesis(&text),
        spec: text,
        summary: serde_json::to_string(&RunResult::open(&context))
            .expect("invariant: results serialise"),
        // A run of another daemon takes no part in this one's comparison.
        split: None,
        reviews: ReviewCounts::default(),
    };
    let mut writes = vec![Write::Accept { row, key: None }];
    writes.extend(segments.into_iter().map(|segment| Write::Append { id: id.clone(), segment }));
    if let Some(other) = head.reviews.iter().find(|reviewed| !flagged.contains(&reviewed.seq)) {
        let reason = format!("event {} has reviews, and is not flagged for any", other.seq);
        return Err(BundleError::Head(reason));
    }
    if !flagged.is_empty() {
        writes.push(Write::Flag { id: id.clone(), seqs: flagged });
    }
    for Reviewed { seq, reviews } in head.reviews {
        writes.extend(reviews.into_iter().map(|review| {
            let review = Review::from(review);
            Write::Review { id: id.clone(), seq, review }
        }));
    }
    writes.push(Write::Update {
        id,
        updated_ms: now_ms,
        status: status.name().to_owned(),
        is_over: true,
        resumed: head.resumed,
        summary: imported.mark(&result),
    });
    Ok(writes)
}

impl Runs {
    /// Adds the run of a bundle, for an owner. The run keeps its id, spec, events and chain, and is
    /// marked as imported.
    ///
    /// # Errors
    /// What is wrong with the bundle; or the journal cannot be written. Then nothing has changed.
    pub async fn import<B>(&self, owner: &str, bundle: B) -> Result<Arrived, BundleError>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let body_max = self.app().settings().server.body_bytes_max;
        let most = RECORD_BYTES_MAX.max(usize::try_from(body_max).unwrap_or(usize::MAX));
        let (tasks, now_ms) = (self.store().tasks().asked_by(owner), self.store().now_ms());
        let parsed = tokio::task::spawn_blocking(move || parse(bundle.as_ref(), most));
        let parsed = parsed.await.map_err(|_| RunError::Draining)??;
        check_head(&parsed.head, now_ms)?;
        let id = parsed.head.run.clone();
        let (spec_text, last) = (parsed.spec.clone(), parsed.last);
        if let Some(there) = self.same(&id, &spec_text, last).await? {
            return Ok(Arrived { record: there, is_new: false });
        }

        let (owner_name, labels) = (owner.to_owned(), parsed.head.labels.clone());
        let prepared = tokio::task::spawn_blocking(move || {
            let spec: RunSpec =
                serde_json::from_str(&parsed.spec).map_err(|error| broken(0, &error))?;
            // A task that panics on foreign events must not take the daemon's thread with it.
            let known = catch_unwind(AssertUnwindSafe(|| replayed(&parsed, &spec, &tasks)));
            let known = known.unwrap_or_else(|_| {
                Err(broken(0, &"its task cannot carry out these events: it panicked"))
            })?;
            let labels = Some(labels).filter(|labels| *labels != spec.labels);
            let other = spec.is_of_other_program(&tasks);
            let writes = writes(parsed, known, &spec, &owner_name, now_ms, other)?;
            Ok::<_, BundleError>((writes, labels))
        });
        let (writes, labels) = prepared.await.map_err(|_| RunError::Draining)??;

        let written = self.store().import(writes).await;
        // Another request may have added it meanwhile, or a commit was applied whose answer was
        // lost.
        match (written, self.same(&id, &spec_text, last).await?) {
            (Ok(()), Some(_)) => {}
            (Ok(()), None) => return Err(RunError::NotFound(id).into()),
            (Err(_), Some(there)) => return Ok(Arrived { record: there, is_new: false }),
            (Err(error), None) => return Err(error.into()),
        }
        if let Some(labels) = labels {
            self.store().relabel(&id, &labels).await?;
        }
        let (_, record) = self.reader().get(&id).await?;
        Ok(Arrived { record, is_new: true })
    }

    /// The run of this id, if there is one and it is this very run.
    async fn same(
        &self,
        id: &str,
        spec: &str,
        last: ChainHead,
    ) -> Result<Option<RunRecord>, BundleError> {
        let row = match self.store().row(id).await {
            Ok(row) => row,
            Err(RunError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if row.spec != spec || row.head != last || !row.is_over {
            return Err(BundleError::Differs(id.to_owned()));
        }
        let (_, record) = self.reader().get(id).await?;
        Ok(Some(record))
    }
}
