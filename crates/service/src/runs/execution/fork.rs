//! Forks: a new run that starts with a copy of the first events of another, so that either can be
//! removed on its own.

use std::sync::Arc;

use super::Execution;
use super::execute::{Start, failed_outcome};
use crate::runs::error::RunError;
use crate::runs::live::live_run::LiveRun;
use crate::runs::progress::Progress;
use crate::runs::record::RunRecord;
use crate::runs::spec::{Origin, Queueing, RunSpec};
use crate::runs::store::replay::{Recovered, replay_run};
use prime_journal::{JournalError, RunRow};
use prime_protocol::Replayed;
use prime_report::{RecordedEvent, TraceLine};

/// Bytes of events per copy.
const COPY_BYTES: usize = 1 << 20;

/// True if an event is a step that needs review.
fn needs_review(event: &[u8]) -> bool {
    matches!(RecordedEvent::read(event), Ok(RecordedEvent::Step(step)) if step.needs_review)
}

/// Why events of a fork did not become durable.
fn not_copied(live: &LiveRun) -> RunError {
    if live.stream.committed().is_refused {
        RunError::Journal(JournalError::Refused("the events of the fork".to_owned()))
    } else {
        RunError::Draining
    }
}

impl Execution {
    /// Starts a run from the state of another after its event `seq`. `seed` replaces the parent's
    /// seed from there on, and `spec_with_agents` its spec: the same but for the agents.
    ///
    /// # Errors
    /// When the run or the event does not exist, or the run was over at that event; or as for a new
    /// run.
    pub async fn fork(
        self: &Arc<Self>,
        parent: &str,
        seq: u64,
        seed: Option<u64>,
        spec_with_agents: Option<RunSpec>,
        owner: &str,
    ) -> Result<RunRecord, RunError> {
        let (execution, parent, owner) = (Arc::clone(self), parent.to_owned(), owner.to_owned());
        let fork =
            async move { execution.begin_fork(&parent, seq, seed, spec_with_agents, &owner).await };
        self.run_detached(fork).await
    }

    async fn begin_fork(
        self: &Arc<Self>,
        parent: &str,
        seq: u64,
        seed: Option<u64>,
        spec_with_agents: Option<RunSpec>,
        owner: &str,
    ) -> Result<RunRecord, RunError> {
        if self.live.is_draining() {
            return Err(RunError::Draining);
        }

        // The state to start from.
        let row = self.store.row(parent).await?;
        let head = self.live.get(parent).map_or(row.head, |live| live.stream.committed().head);
        if seq > head.seq {
            return Err(RunError::Conflict(format!(
                "seq is {seq}, but the run has the events 1 to {}",
                head.seq
            )));
        }
        let spec = match spec_with_agents {
            Some(spec) => spec,
            None => serde_json::from_str(&row.spec)
                .map_err(|error| RunError::Unreadable(error.to_string()))?,
        };
        let (name, of, tasks) =
            (parent.to_owned(), spec.clone(), self.store.tasks().asked_by(owner));
        let recovered = self
            .store
            .read(move |journal| Ok(replay_run(journal, &tasks, &name, &of, seq)))
            .await?;
        let Recovered { problem, replayed, mut progress } = recovered?;
        let Replayed::Open(suspended) = replayed else {
            return Err(RunError::Conflict(format!(
                "the run was over at event {seq}: give an earlier one"
            )));
        };

        // Acceptance, as of a new run.
        self.check_day(owner).await?;
        let slot = self.reserve_slot(owner)?;
        let mut spec =
            RunSpec { forked_from: Some(Origin { run: parent.to_owned(), seq }), ..spec };
        spec.sampling.seed = seed.unwrap_or(spec.sampling.seed);
        // The parent's times are past, and its key may have been allowed more.
        let priority_max = self.app().settings().priority_max_of(owner);
        let priority = spec.queueing.priority.min(priority_max);
        spec.queueing = Queueing { priority, ..Queueing::default() };
        self.check_engines(&spec)?;
        self.count_rates(owner, &spec.task)?;
        let (live, row) = self.prepare(owner, spec)?;
        self.store.accept(row, None).await?;

        // The fork is visible while the parent's events are copied.
        self.live.insert(&live);
        if let Err(error) = self.copy(&live).await {
            // While the process ends, nothing can be written: the next one completes the copy.
            if !self.live.is_draining() {
                let outcome = failed_outcome(format!("the fork failed: {error}"), &live);
                self.conclude(&live, outcome, slot).await;
            }
            return Err(error);
        }

        progress.is_under_way = true;
        live.stream.replayed(progress);
        let start = Start { suspended: Some(suspended), ..Start::new(problem) };
        self.launch(Arc::clone(&live), start, slot);
        Ok(live.record())
    }

    /// Copies the parent's events that are missing, and waits until they are durable.
    async fn copy(&self, live: &LiveRun) -> Result<(), RunError> {
        let Some(origin) = &live.spec.forked_from else { return Ok(()) };
        let mut seq = live.stream.committed().head.seq;
        // The event `Forked` comes after the copies: with it, the copy is complete.
        if seq > origin.seq {
            return Ok(());
        }

        while seq < origin.seq {
            let segments = self.store.segments(&origin.run, seq, COPY_BYTES).await?;
            let (mut events, mut count, mut flagged) = (Vec::new(), 0, Vec::new());
            for (at, event) in segments.iter().flat_map(|segment| segment.events()) {
                if at > seq && at <= origin.seq {
                    events.extend_from_slice(event);
                    events.push(b'\n');
                    count += 1;
                    if needs_review(event) {
                        flagged.push(count);
                    }
                }
            }

            // The parent was removed meanwhile.
            if count == 0 {
                return Err(RunError::Conflict(format!(
                    "event {} of {} is not in the journal any more",
                    seq + 1,
                    origin.run
                )));
            }

            // One portion after the other, so that a long copy does not fill the memory.
            seq += u64::from(count);
            live.stream.append_raw(&events, count, &flagged, Progress::default());
            live.stream.durable(seq).await.map_err(|()| not_copied(live))?;
        }

        let basis = live.spec.plan.basis;
        let judge = live.spec.judge();
        let (run, seq) = (origin.run.as_str(), origin.seq);
        live.stream.append(&TraceLine::Forked { run, seq, basis, judge: &judge });
        live.stream.durable(origin.seq + 1).await.map_err(|()| not_copied(live))
    }

    /// Completes a fork that an earlier process left incomplete.
    ///
    /// # Errors
    /// When the parent run was removed, or cannot be read.
    pub(super) fn complete_fork(&self, live: &LiveRun, row: &RunRow) -> Result<(), RunError> {
        let is_complete =
            live.spec.forked_from.as_ref().is_none_or(|origin| row.head.seq > origin.seq);
        if is_complete {
            return Ok(());
        }

        // The thread that resumes runs has no runtime of its own.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| RunError::Unreadable(format!("no runtime: {error}")))?;
        runtime.block_on(self.copy(live))
    }
}
