//! Resumes the open runs of a journal, each from its last committed step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::Execution;
use super::execute::{Start, failed_outcome};
use super::suspend::resolution;
use crate::runs::error::RunError;
use crate::runs::live::admission::RunSlot;
use crate::runs::live::live_run::LiveRun;
use crate::runs::progress::Progress;
use crate::runs::spec::RunSpec;
use crate::runs::store::replay::{NotReplayed, Recovered, replay_run};
use prime_journal::{DamagedRow, JournalError, RunRow, RunRows};
use prime_protocol::{Ending, Outcome, Replayed, SuspendedRun};
use prime_report::TraceLine;
use prime_retry::Backoff;

/// The pauses between reads of a journal that cannot be reached.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5) };

/// Pause before the program of a task is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Blocks the thread before another attempt.
pub(super) fn wait(pauses: &mut u32) {
    std::thread::park_timeout(PAUSES.delay(*pauses));
    *pauses += 1;
}

impl Execution {
    /// Resumes every open run. They are visible and count at once. One thread replays them one by
    /// one; another replays those whose task is a program, which may have to be waited for. Returns
    /// how many there are.
    ///
    /// # Errors
    /// When the journal cannot be read, or the thread cannot be started.
    pub fn resume(self: &Arc<Self>) -> Result<usize, RunError> {
        let RunRows { rows, damaged, .. } = self.store.journal().open_runs()?;
        for DamagedRow { id, reason } in damaged {
            tracing::error!(run = id, reason, "skipping a run whose row in the journal is damaged");
        }

        let count = rows.len();
        let known = rows.into_iter().filter_map(|row| self.register(row));
        let (asked, computed): (Vec<_>, Vec<_>) =
            known.partition(|(live, ..)| live.spec.is_of_program);

        for runs in [computed, asked] {
            let execution = Arc::clone(self);
            let replay_all = move || {
                for (live, row, slot) in runs {
                    execution.resume_run(&live, &row, slot);
                }
            };
            let thread = std::thread::Builder::new().name("resume".to_owned()).spawn(replay_all);
            thread.map_err(|error| {
                RunError::Unreadable(format!("no thread for resuming runs: {error}"))
            })?;
        }
        Ok(count)
    }

    /// Makes an open run visible and counts it; `None` if this version cannot read it.
    pub(super) fn register(&self, row: RunRow) -> Option<(Arc<LiveRun>, RunRow, RunSlot)> {
        let spec: RunSpec = match serde_json::from_str(&row.spec) {
            Ok(spec) => spec,
            Err(error) => {
                tracing::error!(run = %row.id, %error, "skipping a run that another version accepted and this one cannot read");
                return None;
            }
        };

        let context = spec.context();
        let progress = Progress { is_under_way: row.head.seq > 0, ..Progress::default() };
        let stream = self.store.stream(&row, progress);
        let live = Arc::new(LiveRun::new(&row, spec, context, stream));

        self.live.insert(&live);
        let slot = self.live.slot_for_open_run(&row.owner);
        Some((live, row, slot))
    }

    /// Replays a registered run, and executes it from there. Blocks meanwhile. A journal that
    /// cannot be reached delays the run but does not end it.
    pub(super) fn resume_run(self: &Arc<Self>, live: &Arc<LiveRun>, row: &RunRow, slot: RunSlot) {
        let mut pauses = 0;

        while let Err(error) = self.complete_fork(live, row) {
            match error {
                RunError::Journal(error) if error.is_passing() => {
                    if !self.waits_to_read(live, &error, &mut pauses) {
                        return;
                    }
                }
                error => {
                    let reason = format!("the fork cannot be completed: {error}");
                    return self.give_up(live, reason, slot);
                }
            }
        }

        let head = live.stream.committed().head;
        let tasks = self.store.tasks().asked_by(&row.owner);
        let Recovered { problem, replayed, mut progress } = loop {
            // A task that panics on its events must not keep other runs from resuming.
            let recovered = catch_unwind(AssertUnwindSafe(|| {
                replay_run(self.store.journal(), &tasks, &row.id, &live.spec, head.seq)
            }));

            let reason = match recovered {
                Ok(Ok(recovered)) => break recovered,
                Ok(Err(NotReplayed::Journal(error))) if error.is_passing() => {
                    if self.waits_to_read(live, &error, &mut pauses) {
                        continue;
                    }
                    return;
                }
                Ok(Err(NotReplayed::Task(missing))) => {
                    return self.wait_for_task(live, row.clone(), slot, &missing);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "its events cannot be replayed: panicked".to_owned(),
            };
            let reason = format!("this version cannot resume the run: {reason}");
            return self.give_up(live, reason, slot);
        };

        live.set_waiting_for(None);
        progress.is_under_way = head.seq > 0;
        live.stream.replayed(progress);

        // A run without events starts; it does not resume.
        let is_resumed = head.seq > 0;
        match replayed {
            Replayed::Open(mut suspended) => {
                if !self.resolve(live, &mut suspended) {
                    return;
                }
                let suspended = is_resumed.then_some(suspended);
                self.launch(Arc::clone(live), Start { problem, suspended, is_resumed }, slot);
            }
            Replayed::Over(outcome) => {
                if is_resumed {
                    self.record_resumption(live);
                }
                self.conclude_soon(live, *outcome, slot);
            }
        }
    }

    /// Gives the steps that wait for approval the decisions about them. Returns false like
    /// [`Execution::waits_to_read`].
    fn resolve(&self, live: &Arc<LiveRun>, suspended: &mut SuspendedRun) -> bool {
        let mut pauses = 0;
        while !suspended.held.is_empty() {
            match self.store.journal().approvals().of_run(&live.stream.id) {
                Ok(rows) => {
                    for step in &mut suspended.held {
                        let row = rows.iter().find(|row| row.number == step.number);
                        step.resolution = row.and_then(resolution);
                        if step.resolution.is_none() {
                            step.resolution = live.spec.new_line_of(step.number);
                        }
                    }
                    return true;
                }
                Err(error) if self.waits_to_read(live, &error, &mut pauses) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Waits before a run's events are read again. Returns false if the run is not to be executed
    /// here any more: then it stays as the journal has it, for the next process.
    fn waits_to_read(&self, live: &Arc<LiveRun>, error: &JournalError, pauses: &mut u32) -> bool {
        if live.stream.is_abandoned() || self.live.is_draining() {
            live.stream.abandon();
            self.live.forget(live);
            return false;
        }

        tracing::warn!(run = %live.stream.id, %error, "the run waits until its events can be read");
        wait(pauses);
        true
    }

    /// Waits until the program of the run's task is configured, or answers again, and then resumes
    /// the run. Does not block.
    fn wait_for_task(
        self: &Arc<Self>,
        live: &Arc<LiveRun>,
        row: RunRow,
        slot: RunSlot,
        missing: &str,
    ) {
        if live.set_waiting_for(Some(missing.to_owned())) {
            let run = &live.stream.id;
            tracing::warn!(%run, %missing, "a run waits for the program of its task");
        }
        let (execution, live) = (Arc::clone(self), Arc::clone(live));
        let mut replacements = self.app.replacements();
        replacements.mark_unchanged();
        self.arbiter.spawn(async move {
            let ended = tokio::select! {
                biased;
                () = live.cancelled() => Some(Ending::Cancelled),
                () = execution.deadline_of(&live) => Some(Ending::DeadlinePassed),
                replaced = replacements.changed() => if replaced.is_err() {
                    return;
                } else {
                    None
                },
                () = tokio::time::sleep(ASK_AGAIN) => None,
            };
            if let Some(ending) = ended {
                let elapsed_ms = live.stream.committed().progress.elapsed_ms;
                live.stream.append(&TraceLine::Stopped { ending: &ending, elapsed_ms });
                let outcome = Outcome::without_answer(ending);
                return execution.conclude(&live, outcome, slot).await;
            }
            let resume = move || execution.resume_run(&live, &row, slot);
            let thread = std::thread::Builder::new().name("resume".to_owned()).spawn(resume);
            if let Err(error) = thread {
                tracing::error!(%error, "no thread for resuming a run: the next process resumes it");
            }
        });
    }

    fn give_up(self: &Arc<Self>, live: &Arc<LiveRun>, reason: String, slot: RunSlot) {
        tracing::error!(run = %live.stream.id, %reason, "a run is given up");
        let outcome = failed_outcome(reason, live);
        self.conclude_soon(live, outcome, slot);
    }
}
