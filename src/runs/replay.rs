//! Rebuilds a run from its journal: the state that its durable events lead to.

use std::sync::Arc;

use super::event_stream::SavedRun;
use super::progress::Progress;
use super::spec::RunSpec;
use crate::report::RecordedEvent;
use prime_bench::tasks::Problem;
use prime_journal::{Journal, Snapshot};
use prime_protocol::{Replay, Replayed, RunInput, TurnId};

/// Bytes of events per read.
const READ_BYTES: usize = 4 << 20;

/// A run after its recorded events.
pub(super) struct Recovered {
    pub problem: Arc<dyn Problem>,
    pub replayed: Replayed,
    pub progress: Progress,
}

/// Applies one recorded event.
///
/// # Errors
/// When the event cannot be read, or cannot have happened.
pub(super) fn apply(replay: &mut Replay, event: &[u8], progress: &mut Progress) -> Result<(), String> {
    let recorded = RecordedEvent::read(event).map_err(|error| format!("not an event: {error}"))?;
    let applied = match recorded {
        RecordedEvent::Step(step) => {
            progress.see_step(&step);
            let verdict = step.verdict();
            replay.apply(step.happened(&verdict), step.elapsed_ms)
        }
        RecordedEvent::TurnFailed { round, trajectory, reason, elapsed_ms } => {
            progress.elapsed_ms = elapsed_ms;
            replay.apply(RunInput::Failed { id: TurnId { round, trajectory }, reason }, elapsed_ms)
        }
        RecordedEvent::Stopped { ending, elapsed_ms } => {
            progress.elapsed_ms = elapsed_ms;
            replay.apply(RunInput::Stopped { ending }, elapsed_ms)
        }
        RecordedEvent::Other => Ok(()),
    };
    applied.map_err(|error| error.to_string())
}

/// Restores a run from a snapshot; logs and returns `None` where this version cannot read it.
fn restore(id: &str, spec: &RunSpec, problem: &Arc<dyn Problem>, saved: &Snapshot) -> Option<(u64, Progress, Replay)> {
    let read = serde_json::from_slice::<SavedRun>(&saved.body).map_err(|error| error.to_string());
    let restored = read.and_then(|SavedRun { progress, run }| {
        let suspended = run.restore(problem, spec.plan.clone()).map_err(|error| error.to_string())?;
        Ok((saved.seq, progress, Replay::from_suspended(suspended)))
    });
    restored
        .inspect_err(|error| {
            tracing::warn!(run = id, error, "ignoring an unreadable snapshot: all events are replayed");
        })
        .ok()
}

/// Replays a run's events up to `last_seq`, from its snapshot where there is one.
///
/// # Errors
/// The event that cannot be replayed, and why.
pub(super) fn replay_run(journal: &dyn Journal, id: &str, spec: &RunSpec, last_seq: u64) -> Result<Recovered, String> {
    let problem = spec.problem()?;
    let saved = journal.snapshot(id).map_err(|error| error.to_string())?.filter(|saved| saved.seq <= last_seq);
    let restored = saved.and_then(|saved| restore(id, spec, &problem, &saved));
    let (mut seq, mut progress, mut replay) =
        restored.unwrap_or_else(|| (0, Progress::default(), Replay::new(Arc::clone(&problem), spec.plan.clone())));
    while seq < last_seq {
        let segments = journal.segments(id, seq, READ_BYTES).map_err(|error| error.to_string())?;
        if segments.is_empty() {
            return Err(format!("event {} is missing", seq + 1));
        }
        for (at, event) in segments.iter().flat_map(|segment| segment.events()) {
            if at <= seq || at > last_seq {
                continue;
            }
            if at != seq + 1 {
                return Err(format!("event {} is missing", seq + 1));
            }
            apply(&mut replay, event, &mut progress).map_err(|error| format!("event {at}: {error}"))?;
            seq = at;
        }
    }
    Ok(Recovered { problem, replayed: replay.finish(), progress })
}
