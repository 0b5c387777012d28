//! Resumes the open runs of a journal, each from its last committed step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::admission::RunSlot;
use super::event_stream::RowUpdate;
use super::execute::{Start, conclude, failed_outcome};
use super::live_run::LiveRun;
use super::progress::Progress;
use super::record::Status;
use super::replay::{Recovered, replay_run};
use super::service::{RunError, Runs, context_of};
use super::spec::{RunSpec, UNRECORDED};
use prime_agent_set::Basis;
use prime_journal::{DamagedRow, RunRow, RunRows};
use prime_protocol::Replayed;
use prime_report::{RunResult, TraceLine};

impl Runs {
    /// Resumes every open run. They are visible and count at once; a thread replays them one after
    /// the other.
    ///
    /// # Errors
    /// When the journal cannot be read, or the thread cannot be started.
    pub fn resume(self: &Arc<Self>) -> Result<usize, RunError> {
        let RunRows { rows, damaged, .. } = self.journal.open_runs()?;
        for DamagedRow { id, reason } in damaged {
            tracing::error!(run = id, reason, "skipping a run whose row in the journal is damaged");
        }
        let count = rows.len();
        let known: Vec<_> = rows.into_iter().filter_map(|row| self.register(row)).collect();
        let runs = Arc::clone(self);
        std::thread::Builder::new()
            .name("resume".to_owned())
            .spawn(move || {
                known.into_iter().for_each(|(live, row, slot)| runs.resume_run(&live, &row, slot))
            })
            .map_err(|error| {
                RunError::Unreadable(format!("no thread for resuming runs: {error}"))
            })?;
        Ok(count)
    }

    /// Makes an open run visible and counts it; `None` if this version cannot read it.
    pub(super) fn register(
        self: &Arc<Self>,
        row: RunRow,
    ) -> Option<(Arc<LiveRun>, RunRow, RunSlot)> {
        let spec: RunSpec = match serde_json::from_str(&row.spec) {
            Ok(spec) => spec,
            Err(error) => {
                tracing::error!(run = %row.id, %error, "skipping a run that another version accepted and this one cannot read");
                return None;
            }
        };
        let context = match &spec.recorded {
            Some(recorded) => context_of(&spec, recorded.basis),
            None => {
                let agents = self.app().agents_named(&spec.agents);
                let mut context =
                    context_of(&spec, agents.as_ref().map_or(Basis::NONE, |agents| agents.basis()));
                // Custom agents are never recorded.
                if agents.map_or(true, |agents| agents.recorded().is_some()) {
                    context.notes.push(UNRECORDED.to_owned());
                }
                context
            }
        };
        let progress = Progress { is_under_way: row.head.seq > 0, ..Progress::default() };
        let live = Arc::new(LiveRun::new(&row, spec, context, self.stream(&row, progress)));
        self.live.insert(row.id.clone(), Arc::clone(&live));
        let slot = self.slot_for_open_run(&row.owner);
        Some((live, row, slot))
    }

    pub(super) fn resume_run(self: &Arc<Self>, live: &Arc<LiveRun>, row: &RunRow, slot: RunSlot) {
        if let Err(reason) = self.complete_fork(live, row) {
            return self.give_up(live, reason, slot);
        }
        let head = live.stream.committed().head;
        // A task that panics on its events must not keep other runs from resuming.
        let recovered = catch_unwind(AssertUnwindSafe(|| {
            replay_run(self.journal.as_ref(), &row.id, &live.spec, head.seq)
        }));
        let recovered = match recovered
            .unwrap_or_else(|_| Err("its events cannot be replayed: panicked".to_owned()))
        {
            Ok(recovered) => recovered,
            Err(reason) => {
                return self.give_up(
                    live,
                    format!("this version cannot resume the run: {reason}"),
                    slot,
                );
            }
        };
        let Recovered { problem, replayed, mut progress } = recovered;
        progress.is_under_way = head.seq > 0;
        live.stream.append_raw(&[], 0, &[], progress.clone());
        // A run without events starts; it does not resume.
        let is_resumed = head.seq > 0;
        match replayed {
            Replayed::Open(suspended) => {
                let suspended = is_resumed.then_some(suspended);
                self.launch(Arc::clone(live), Start { problem, suspended, is_resumed }, slot);
            }
            Replayed::Over(outcome) => {
                if is_resumed {
                    self.record_resumption(live);
                }
                let (runs, live) = (Arc::clone(self), Arc::clone(live));
                self.arbiter.spawn(async move { conclude(&runs, &live, *outcome, slot).await });
            }
        }
    }

    /// Records that this process goes on with the run.
    pub(super) fn record_resumption(&self, live: &LiveRun) {
        let resumed = live.resumed.fetch_add(1, Ordering::Relaxed) + 1;
        self.metrics.resumed();
        let events = live.stream.committed().head.seq;
        live.stream.append(&TraceLine::Resumed { resumed });
        drop(live.stream.update(self.open_row(live, Status::Running)));
        tracing::info!(run = %live.stream.id, events, "run resumed");
    }

    /// The row of an open run.
    pub(super) fn open_row(&self, live: &LiveRun, status: Status) -> RowUpdate {
        let mut result = RunResult::open(&live.context);
        live.stream.uncommitted_progress().fill(&mut result, live.spec.plan.trajectories());
        RowUpdate {
            updated_ms: (self.clock)(),
            status: status.name().to_owned(),
            is_over: false,
            resumed: live.resumed.load(Ordering::Relaxed),
            summary: serde_json::to_string(&result).expect("invariant: results serialise"),
        }
    }

    fn give_up(self: &Arc<Self>, live: &Arc<LiveRun>, reason: String, slot: RunSlot) {
        tracing::error!(run = %live.stream.id, %reason, "a run is given up");
        let outcome = failed_outcome(reason, live);
        let (runs, live) = (Arc::clone(self), Arc::clone(live));
        self.arbiter.spawn(async move { conclude(&runs, &live, outcome, slot).await });
    }
}
