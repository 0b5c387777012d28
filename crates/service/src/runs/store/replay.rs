//! Rebuilds a run from its journal: the state that its durable events lead to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::RunStore;
use super::event_stream::SavedRun;
use crate::runs::error::RunError;
use crate::runs::progress::Progress;
use crate::runs::spec::{NoProblem, RunSpec};
use prime_agent_set::task_program::TaskPrograms;
use prime_bench::tasks::Problem;
use prime_journal::{Journal, JournalError, Segment, Snapshot};
use prime_protocol::{
    HeldStep, Replay, ReplayError, Replayed, RunInput, SuspendedRun, Trajectory, TurnId,
};
use prime_report::RecordedEvent;

/// Bytes of events per read.
const READ_BYTES: usize = 4 << 20;

/// Why a run was not rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum NotReplayed {
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its events cannot be read, or cannot have happened.
    #[error("{0}")]
    Events(String),
    /// The program of its task is not configured, or does not answer.
    #[error("{0}")]
    Task(String),
    /// The program of its task is not the one that it ran with.
    #[error("{0}")]
    OtherProgram(String),
    /// An event that a line should take the place of is none of a step.
    #[error("event {0} is not a step")]
    NotAStep(u64),
}

impl From<String> for NotReplayed {
    fn from(reason: String) -> Self {
        Self::Events(reason)
    }
}

impl From<NoProblem> for NotReplayed {
    fn from(error: NoProblem) -> Self {
        match error {
            NoProblem::Unreadable(reason) => Self::Events(reason),
            NoProblem::Missing(reason) => Self::Task(reason),
        }
    }
}

impl From<NotReplayed> for RunError {
    fn from(error: NotReplayed) -> Self {
        match error {
            NotReplayed::Journal(error) => Self::Journal(error),
            NotReplayed::Events(reason) => Self::Unreadable(reason),
            NotReplayed::Task(reason) | NotReplayed::OtherProgram(reason) => Self::Conflict(reason),
            NotReplayed::NotAStep(seq) => Self::NoSuchStep(seq),
        }
    }
}

/// A run after its recorded events.
pub struct Recovered {
    pub problem: Arc<dyn Problem>,
    pub replayed: Replayed,
    pub progress: Progress,
}

/// The events of steps that wait for approval, by round and trajectory.
#[derive(Default)]
pub struct HeldLines(BTreeMap<(u32, u32), Vec<u8>>);

/// Applies one recorded event.
///
/// # Errors
/// When the event cannot be read, or cannot have happened.
pub fn apply(
    replay: &mut Replay,
    event: &[u8],
    progress: &mut Progress,
) -> Result<(), NotReplayed> {
    apply_noting(replay, event, progress, &mut HeldLines::default())
}

/// Like [`apply`], and notes which steps wait for approval.
fn apply_noting(
    replay: &mut Replay,
    event: &[u8],
    progress: &mut Progress,
    held: &mut HeldLines,
) -> Result<(), NotReplayed> {
    let recorded = RecordedEvent::read(event).map_err(|error| format!("not an event: {error}"))?;
    let applied = match recorded {
        RecordedEvent::Step(step) => {
            held.0.remove(&(step.round, step.trajectory));
            progress.see_step(&step);
            let verdict = step.verdict();
            replay.apply(step.happened(&verdict), step.elapsed_ms)
        }
        RecordedEvent::Waiting(step) => {
            progress.see_waiting(&step);
            held.0.insert((step.round, step.trajectory), event.to_vec());
            Ok(())
        }
        RecordedEvent::TurnFailed { round, trajectory, reason, usage, elapsed_ms } => {
            held.0.remove(&(round, trajectory));
            progress.elapsed_ms = elapsed_ms;
            progress.usage.add(usage);
            let id = TurnId { round, trajectory };
            replay.apply(RunInput::Failed { id, reason, usage }, elapsed_ms)
        }
        RecordedEvent::Stopped { ending, elapsed_ms } => {
            progress.elapsed_ms = elapsed_ms;
            replay.apply(RunInput::Stopped { ending }, elapsed_ms)
        }
        RecordedEvent::Started { basis }
        | RecordedEvent::Resumed { basis }
        | RecordedEvent::Forked { basis } => {
            // An early record does not say who judged: its steps keep no judge.
            let elapsed_ms = progress.elapsed_ms;
            basis.map_or(Ok(()), |basis| replay.apply(RunInput::JudgedBy(basis), elapsed_ms))
        }
        RecordedEvent::Other => Ok(()),
    };
    applied.map_err(|error| match error {
        ReplayError::Unanswered(reason) => NotReplayed::Task(reason),
        error @ ReplayError::OtherProgram(_) => NotReplayed::OtherProgram(error.to_string()),
        error => NotReplayed::Events(error.to_string()),
    })
}

/// Counts a run's durable events without replaying them: those that its snapshot covers, and as
/// many others as one read returns.
///
/// # Errors
/// When the journal cannot be read.
pub fn durable_counts(
    journal: &dyn Journal,
    id: &str,
    last_seq: u64,
) -> Result<Progress, JournalError> {
    #[derive(Deserialize)]
    struct Saved {
        progress: Progress,
    }

    // Only the counts are read: the state may be large, and this version may not be able to read
    // it.
    let saved = journal.snapshot(id)?.filter(|saved| saved.seq <= last_seq);
    let saved = saved.and_then(|saved| {
        Some((saved.seq, serde_json::from_slice::<Saved>(&saved.body).ok()?.progress))
    });

    // A snapshot that cannot be read counts for nothing; its events are read instead.
    let (seq, mut progress) = saved.unwrap_or_default();
    let segments = journal.segments(id, seq, READ_BYTES)?;
    for (at, event) in segments.iter().flat_map(Segment::events) {
        if at > seq && at <= last_seq {
            match RecordedEvent::read(event) {
                Ok(RecordedEvent::Step(step)) => progress.see_step(&step),
                Ok(RecordedEvent::Waiting(step)) => progress.see_waiting(&step),
                _ => {}
            }
        }
    }

    progress.is_under_way = true;
    Ok(progress)
}

/// Restores a run from a snapshot; logs the reason and returns `None` where this version cannot
/// read it.
fn restore(
    id: &str,
    spec: &RunSpec,
    problem: &Arc<dyn Problem>,
    saved: &Snapshot,
) -> Option<(u64, Progress, Replay)> {
    let read = serde_json::from_slice::<SavedRun>(&saved.body).map_err(|error| error.to_string());
    let restored = read.and_then(|SavedRun { progress, run }| {
        let suspended =
            run.restore(problem, spec.plan.clone()).map_err(|error| error.to_string())?;
        Ok((saved.seq, progress, Replay::from_suspended(suspended)))
    });
    restored
        .inspect_err(|error| {
            tracing::warn!(
                run = id,
                error,
                "ignoring an unreadable snapshot: all events are replayed"
            );
        })
        .ok()
}

/// Replays a run's events up to `last_seq`, from its snapshot where there is one.
///
/// # Errors
/// The event that cannot be replayed, and why.
pub fn replay_run(
    journal: &dyn Journal,
    tasks: &TaskPrograms,
    id: &str,
    spec: &RunSpec,
    last_seq: u64,
) -> Result<Recovered, NotReplayed> {
    replay_to(journal, tasks, id, spec, last_seq)?.finish()
}

/// Replays a run's events up to before the step that is event `seq`, which then waits for approval.
/// Also returns the number of that approval.
///
/// # Errors
/// Like [`replay_run`].
pub fn replay_before(
    journal: &dyn Journal,
    tasks: &TaskPrograms,
    id: &str,
    spec: &RunSpec,
    seq: u64,
) -> Result<(Recovered, u32), NotReplayed> {
    let mut before = replay_to(journal, tasks, id, spec, seq.saturating_sub(1))?;
    let number = before.progress.approvals.asked + 1;
    let waiting = waiting_step(journal, id, seq, number)?;
    let Replaying { replay, progress, held, .. } = &mut before;
    apply_noting(replay, &waiting, progress, held)?;
    Ok((before.finish()?, number))
}

/// The step that is event `seq`, as an event by which it waits for an approval of this number.
///
/// # Errors
/// The event is not a step.
pub fn waiting_step(
    journal: &dyn Journal,
    id: &str,
    seq: u64,
    number: u32,
) -> Result<Vec<u8>, NotReplayed> {
    let segments = journal.segments(id, seq.saturating_sub(1), 0)?;
    let found = segments.iter().flat_map(Segment::events).find(|(at, _)| *at == seq);
    let step = found.and_then(|(_, event)| {
        let mut step: Map<String, Value> = serde_json::from_slice(event).ok()?;
        (step.get("event")? == "step").then(|| {
            step.remove("approval");
            step.insert("event".to_owned(), "waiting".into());
            step.insert("approval_number".to_owned(), number.into());
            step
        })
    });
    let step = step.ok_or(NotReplayed::NotAStep(seq))?;
    Ok(serde_json::to_vec(&step).expect("invariant: maps serialise"))
}

/// A run while its events are replayed.
struct Replaying {
    problem: Arc<dyn Problem>,
    replay: Replay,
    progress: Progress,
    held: HeldLines,
}

impl Replaying {
    fn finish(self) -> Result<Recovered, NotReplayed> {
        let Self { problem, replay, progress, held } = self;
        let mut replayed = replay.finish();
        if let Replayed::Open(suspended) = &mut replayed {
            suspended.holds = progress.approvals.asked;
            hold_again(suspended, held)?;
        }
        Ok(Recovered { problem, replayed, progress })
    }
}

fn replay_to(
    journal: &dyn Journal,
    tasks: &TaskPrograms,
    id: &str,
    spec: &RunSpec,
    last_seq: u64,
) -> Result<Replaying, NotReplayed> {
    let problem = spec.problem(tasks)?;

    let saved = journal.snapshot(id)?.filter(|saved| saved.seq <= last_seq);
    let restored = saved.and_then(|saved| restore(id, spec, &problem, &saved));
    let (mut seq, mut progress, mut replay) = restored.unwrap_or_else(|| {
        (0, Progress::default(), Replay::new(Arc::clone(&problem), spec.plan.clone()))
    });

    let mut held = HeldLines::default();
    while seq < last_seq {
        let segments = journal.segments(id, seq, READ_BYTES)?;
        if segments.is_empty() {
            return Err(format!("event {} is missing", seq + 1).into());
        }
        // A segment may begin before `seq` and end after `last_seq`.
        for (at, event) in segments.iter().flat_map(|segment| segment.events()) {
            if at <= seq || at > last_seq {
                continue;
            }
            if at != seq + 1 {
                return Err(format!("event {} is missing", seq + 1).into());
            }
            apply_noting(&mut replay, event, &mut progress, &mut held).map_err(
                |error| match error {
                    NotReplayed::Events(reason) => {
                        NotReplayed::Events(format!("event {at}: {reason}"))
                    }
                    error => error,
                },
            )?;
            seq = at;
        }
    }
    Ok(Replaying { problem, replay, progress, held })
}

/// Takes out the trajectories whose steps wait for approval.
fn hold_again(suspended: &mut SuspendedRun, held: HeldLines) -> Result<(), NotReplayed> {
    for event in held.0.into_values() {
        let Ok(RecordedEvent::Waiting(step)) = RecordedEvent::read(&event) else { continue };
        // The turns of a closed round are stale.
        let at = suspended.waiting.iter().position(|(id, _)| *id == step.id());
        let Some(at) = at else { continue };

        let (id, mut trajectory) = suspended.waiting.remove(at);
        // An accepted line is applied on an actor's thread, which must not wait for a program.
        let asked = trajectory.machine.foresee_blocking(&step.action);
        asked.map_err(|error| NotReplayed::Task(error.to_string()))?;
        suspended.held.push(HeldStep {
            number: step.approval_number.unwrap_or_default(),
            id,
            trajectory,
            line: step.action.clone().into_owned(),
            derivation: step.derivation.clone().into_owned(),
            reasoning: step.reasoning.clone().into_owned(),
            source: step.source.as_deref().map(str::to_owned),
            tokens: step.tokens.to_vec(),
            logprobs: step.logprobs.to_vec(),
            verdict: step.verdict(),
            usage: step.usage,
            resolution: None,
        });
    }
    Ok(())
}

/// A trajectory as it was when one of its steps was proposed.
pub struct BeforeStep {
    /// The spec of the run.
    pub spec: RunSpec,
    /// Round and trajectory of the step.
    pub id: TurnId,
    /// The trajectory in the state in which the line was proposed.
    pub trajectory: Box<Trajectory>,
    /// The line that was proposed; empty if there was none left.
    pub line: String,
}

impl RunStore {
    /// The trajectory before one of its steps, with its rejected lines and feedback. Replays the
    /// run up to there.
    ///
    /// # Errors
    /// When the event is not a step, this version does not know the run's task, or the journal
    /// cannot be read.
    pub async fn before_step(&self, id: &str, seq: u64) -> Result<BeforeStep, RunError> {
        let ((spec, tasks), name) = (self.spec_and_tasks(id).await?, id.to_owned());
        self.read(move |journal| Ok(before_step(journal, &tasks, &name, spec, seq))).await?
    }
}

fn before_step(
    journal: &dyn Journal,
    tasks: &TaskPrograms,
    id: &str,
    spec: RunSpec,
    seq: u64,
) -> Result<BeforeStep, RunError> {
    let before = seq.checked_sub(1).ok_or(RunError::NoSuchStep(seq))?;

    // The step itself, which says which turn it was.
    let mut found = None;
    for (at, event) in journal.segments(id, before, 0)?.iter().flat_map(Segment::events) {
        if at == seq {
            let recorded = RecordedEvent::read(event);
            let Ok(RecordedEvent::Step(step)) = recorded else {
                return Err(RunError::NoSuchStep(seq));
            };
            found = Some((step.id(), step.action.clone().into_owned()));
        }
    }

    let (turn, line) = found.ok_or(RunError::NoSuchStep(seq))?;

    // This is the state before it, in which every turn in flight waits; one of them is the step's.
    let Recovered { replayed, .. } = replay_run(journal, tasks, id, &spec, before)?;
    let waiting = match replayed {
        Replayed::Open(suspended) => {
            let held = suspended.held.into_iter().map(|step| (step.id, step.trajectory));
            suspended.waiting.into_iter().chain(held).collect()
        }
        Replayed::Over(_) => Vec::new(),
    };
    let trajectory =
        waiting.into_iter().find(|(id, _)| *id == turn).map(|(_, trajectory)| trajectory);

    let missing = || RunError::Unreadable(format!("event {seq}: its turn was not in flight"));
    Ok(BeforeStep { spec, id: turn, trajectory: trajectory.ok_or_else(missing)?, line })
}

#[cfg(test)]
mod tests {
    use prime_journal::{Head, ReviewCounts, RunRow, SqliteJournal, SqliteOptions, Write};

    use super::*;

    /// An event as the trace shows it.
    fn step(depth: u32, decision: &str) -> String {
        format!(
            r#"{{"event":"step","round":1,"trajectory":0,"depth":{depth},"action":"a","applicable":true,"score":0.0,"violations":[],"decision":"{decision}","elapsed_ms":{}}}"#,
            depth + 10
        )
    }

    fn row(spec: &str) -> RunRow {
        RunRow {
            id: "r".to_owned(),
            owner: String::new(),
            created_ms: 1,
            updated_ms: 1,
            task: "n-queens".to_owned(),
            status: "running".to_owned(),
            is_over: false,
            resumed: 0,
            spec: spec.to_owned(),
            summary: "{}".to_owned(),
            split: None,
            reviews: ReviewCounts::default(),
            head: Head::genesis(spec),
        }
    }

    #[test]
    fn durable_events_count_before_they_are_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let journal =
            SqliteJournal::open(&folder.path().join("runs.db"), SqliteOptions::default()).unwrap();
        let row = row(r#"{"what":"these events cannot be replayed, only counted"}"#);
        let started = r#"{"event":"started"}"#.to_owned();
        let events = [
            started,
            step(0, "proceed"),
            step(1, "backtrack"),
            step(0, "retry"),
            step(0, "proceed"),
        ];
        let segment = Segment::following(row.head, events);
        let append = Write::Append { id: "r".to_owned(), segment };
        journal.commit(&[Write::Accept { row, key: None }, append]).unwrap();

        let counts = |last| {
            let progress = durable_counts(&journal, "r", last).unwrap();
            (
                progress.proposals,
                progress.steps,
                progress.retries,
                progress.backtracks,
                progress.elapsed_ms,
            )
        };

        assert_eq!(counts(5), (4, 1, 1, 1, 10));
        assert_eq!(counts(3), (2, 1, 0, 1, 11));

        // The events that a snapshot covers are not counted again.
        let progress = Progress { proposals: 100, steps: 50, rounds: 1, ..Progress::default() };
        let body =
            serde_json::to_vec(&serde_json::json!({"progress": progress, "run": null})).unwrap();
        journal
            .commit(&[Write::Save { id: "r".to_owned(), snapshot: Snapshot { seq: 4, body } }])
            .unwrap();
        assert_eq!(counts(5), (101, 50, 0, 0, 10));
    }
}
