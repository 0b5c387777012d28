//! Taking up the open runs of a journal: each is folded from its events and goes on from its last committed step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::follow::{conclude, failed};
use super::live::{LiveRun, Status};
use super::progress::Progress;
use super::service::{Place, RunError, Runs, solved};
use super::spec::RunSpec;
use super::stream::{RowUpdate, SavedRun};
use crate::report::{Recorded, RunResult, TraceLine};
use prime_bench::tasks::{Kinds, Problem};
use prime_journal::{Journal, RunRow, Snapshot};
use prime_protocol::{Replay, Replayed, RunInput, TurnId};

/// Bytes of events that are read at once.
const READ_BYTES: usize = 4 << 20;

/// A run as its events left it.
pub(super) struct Recovered {
    pub problem: Arc<dyn Problem>,
    pub folded: Replayed,
    pub progress: Progress,
}

/// Does one recorded event.
///
/// # Errors
/// When the event cannot be read, or cannot have happened.
pub(super) fn apply(fold: &mut Replay, event: &[u8], progress: &mut Progress) -> Result<(), String> {
    let recorded = Recorded::read(event).map_err(|error| format!("it is no event: {error}"))?;
    let applied = match recorded {
        Recorded::Step(step) => {
            progress.see_step(&step);
            let verdict = step.verdict();
            fold.apply(step.happened(&verdict), step.elapsed_ms)
        }
        Recorded::TurnFailed { round, trajectory, reason, elapsed_ms } => {
            progress.elapsed_ms = elapsed_ms;
            fold.apply(RunInput::Failed { id: TurnId { round, trajectory }, reason }, elapsed_ms)
        }
        Recorded::Stopped { ending, elapsed_ms } => {
            progress.elapsed_ms = elapsed_ms;
            fold.apply(RunInput::Stopped { ending }, elapsed_ms)
        }
        Recorded::Other => Ok(()),
    };
    applied.map_err(|error| error.to_string())
}

/// A run as a snapshot has it; `None`, said in the log, where this version cannot read it.
fn restore(id: &str, spec: &RunSpec, problem: &Arc<dyn Problem>, saved: &Snapshot) -> Option<(u64, Progress, Replay)> {
    let read = serde_json::from_slice::<SavedRun>(&saved.body).map_err(|error| error.to_string());
    let restored = read.and_then(|SavedRun { progress, run }| {
        let suspended = run.restore(problem, spec.plan.clone()).map_err(|error| error.to_string())?;
        Ok((saved.seq, progress, Replay::from_suspended(suspended)))
    });
    restored.inspect_err(|error| tracing::warn!(run = id, error, "a snapshot is of no use: all events are folded")).ok()
}

/// Folds a run's events up to `last_seq`.
///
/// # Errors
/// Which event, and why.
pub(super) fn fold(journal: &dyn Journal, id: &str, spec: &RunSpec, last_seq: u64) -> Result<Recovered, String> {
    let problem = spec.problem()?;
    let saved = journal.snapshot(id).map_err(|error| error.to_string())?.filter(|saved| saved.seq <= last_seq);
    let restored = saved.and_then(|saved| restore(id, spec, &problem, &saved));
    let (mut seq, mut progress, mut fold) =
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
            apply(&mut fold, event, &mut progress).map_err(|error| format!("event {at}: {error}"))?;
            seq = at;
        }
    }
    Ok(Recovered { problem, folded: fold.finish(), progress })
}

impl Runs {
    /// Takes up every open run. They are known and count at once; folding them goes on beside.
    ///
    /// # Errors
    /// When the journal cannot be read, or the thread that folds cannot be started.
    pub fn resume(self: &Arc<Self>) -> Result<usize, RunError> {
        let rows = self.journal.open_runs()?;
        let count = rows.len();
        let mut known = Vec::with_capacity(count);
        for row in rows {
            let spec: RunSpec = match serde_json::from_str(&row.spec) {
                Ok(spec) => spec,
                Err(error) => {
                    tracing::error!(run = %row.id, %error, "this run was accepted by a version that this one cannot read; it stays as it is");
                    continue;
                }
            };
            let kinds = self.app().runtime_of(&spec.overrides).map_or(Kinds::NONE, |runtime| runtime.agents().kinds());
            let solved = solved(&spec, kinds);
            let under_way = Progress { is_under_way: row.head.seq > 0, ..Progress::default() };
            let live = Arc::new(LiveRun::new(&row, spec, solved, self.stream(&row, under_way)));
            self.live.insert(row.id.clone(), Arc::clone(&live));
            known.push((live, row, self.place_of_old()));
        }
        let runs = Arc::clone(self);
        std::thread::Builder::new()
            .name("resume".to_owned())
            .spawn(move || known.into_iter().for_each(|(live, row, place)| runs.take_up(&live, &row, place)))
            .map_err(|error| RunError::Unreadable(format!("no thread to resume runs with: {error}")))?;
        Ok(count)
    }

    fn take_up(self: &Arc<Self>, live: &Arc<LiveRun>, row: &RunRow, place: Place) {
        if let Err(reason) = self.complete_fork(live, row) {
            return self.give_up(live, reason, place);
        }
        let head = live.stream.committed().head;
        // A task whose code panics on its events keeps no other run from being taken up.
        let folded = catch_unwind(AssertUnwindSafe(|| fold(self.journal.as_ref(), &row.id, &live.spec, head.seq)));
        let recovered = match folded.unwrap_or_else(|_| Err("its events cannot be folded: panicked".to_owned())) {
            Ok(recovered) => recovered,
            Err(reason) => {
                return self.give_up(live, format!("the run cannot be taken up by this version: {reason}"), place);
            }
        };
        let Recovered { problem, folded, mut progress } = recovered;
        progress.is_under_way = head.seq > 0;
        live.stream.append_raw(&[], 0, &[], progress);
        // A run that had not begun is not resumed, but begun.
        if head.seq > 0 {
            let resumed = live.resumed.fetch_add(1, Ordering::Relaxed) + 1;
            self.metrics.resumed();
            live.stream.append(&TraceLine::Resumed { resumed });
            let mut result = RunResult::open(&live.solved);
            progress.fill(&mut result, live.spec.plan.trajectories());
            drop(live.stream.update(RowUpdate {
                updated_ms: (self.clock)(),
                status: Status::Running.name().to_owned(),
                is_over: false,
                resumed,
                summary: serde_json::to_string(&result).expect("invariant: results serialise"),
            }));
        }
        match folded {
            Replayed::Open(suspended) => {
                let suspended = (head.seq > 0).then_some(suspended);
                tracing::info!(run = %row.id, events = head.seq, "run resumed");
                self.launch(Arc::clone(live), problem, suspended, place);
            }
            Replayed::Over(outcome) => {
                let (runs, live) = (Arc::clone(self), Arc::clone(live));
                self.home.spawn(async move { conclude(&runs, &live, *outcome, place).await });
            }
        }
    }

    fn give_up(self: &Arc<Self>, live: &Arc<LiveRun>, reason: String, place: Place) {
        tracing::error!(run = %live.stream.id, %reason, "a run is given up");
        let outcome = failed(reason, live);
        let (runs, live) = (Arc::clone(self), Arc::clone(live));
        self.home.spawn(async move { conclude(&runs, &live, outcome, place).await });
    }
}
