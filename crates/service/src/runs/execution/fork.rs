//! Forks: a new run that starts with a copy of the first events of another, so that either can be
//! removed on its own.

use std::sync::Arc;

use super::Execution;
use super::execute::{Start, failed_outcome};
use crate::runs::approvals::policy::ApprovalPolicy;
use crate::runs::error::RunError;
use crate::runs::live::live_run::LiveRun;
use crate::runs::progress::Progress;
use crate::runs::record::{Imported, RunRecord};
use crate::runs::spec::{NewLine, Origin, RunSpec};
use crate::runs::store::replay::{Recovered, replay_before, replay_run, waiting_step};
use prime_journal::{Journal, JournalError, RunRow};
use prime_protocol::Replayed;
use prime_report::{RecordedEvent, TraceLine};

/// Where a fork begins, and what it changes.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// The last event to copy; with a line, the step whose place the line takes.
    pub seq: u64,
    /// Another seed from there on.
    pub seed: Option<u64>,
    /// The spec of the parent with other agents; its own by default.
    pub spec_with_agents: Option<RunSpec>,
    /// A line in place of the step's, and who gives it.
    pub line: Option<(String, String)>,
}

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
    /// Starts a run from the state of another.
    ///
    /// # Errors
    /// When the run or the event does not exist, the run was over at that event, or the event is
    /// not a step that a line can take the place of; or as for a new run.
    pub async fn fork(
        self: &Arc<Self>,
        parent: &str,
        fork: Fork,
        owner: &str,
    ) -> Result<RunRecord, RunError> {
        let (execution, parent, owner) = (Arc::clone(self), parent.to_owned(), owner.to_owned());
        let begin = async move { execution.begin_fork(&parent, fork, &owner).await };
        self.run_detached(begin).await
    }

    async fn begin_fork(
        self: &Arc<Self>,
        parent: &str,
        Fork { seq, seed, spec_with_agents, line }: Fork,
        owner: &str,
    ) -> Result<RunRecord, RunError> {
        if self.live.is_draining() {
            return Err(RunError::Draining);
        }

        // The state to start from.
        let row = self.store.row(parent).await?;
        let imported = Imported::of_summary(&row.summary);
        if imported.map_err(|error| RunError::Unreadable(error.to_string()))?.is_some() {
            return Err(RunError::Conflict(
                "the run was imported: this daemon has judged none of its steps, and a fork would \
                 take over their verdicts. Try the run again (`retry`)"
                    .to_owned(),
            ));
        }
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
        let has_line = line.is_some();
        let replay = move |journal: &dyn Journal| {
            Ok(if has_line {
                replay_before(journal, &tasks, &name, &of, seq)
            } else {
                replay_run(journal, &tasks, &name, &of, seq).map(|recovered| (recovered, 0))
            })
        };
        let (recovered, number) = self.store.read(replay).await??;
        let Recovered { problem, replayed, mut progress } = recovered;
        let Replayed::Open(mut suspended) = replayed else {
            return Err(RunError::Conflict(format!(
                "the run was over at event {seq}: give an earlier one"
            )));
        };

        let line = line.map(|(line, by)| NewLine { line, by, number });
        if let Some(line) = &line {
            let step = suspended.held.iter_mut().find(|step| step.number == number);
            step.ok_or(RunError::NoSuchStep(seq))?.resolution = Some(line.resolution());
        }
        let seq = seq - u64::from(has_line);

        // Acceptance, as of a new run.
        self.check_day(owner).await?;
        let slot = self.reserve_slot(owner)?;
        let origin = Origin { run: parent.to_owned(), seq, line };
        let mut spec = RunSpec { forked_from: Some(origin), ..spec };
        spec.sampling.seed = seed.unwrap_or(spec.sampling.seed);
        // The daemon's own rule is that of all runs, from here on also of this one.
        spec.approval = ApprovalPolicy::of(&self.app().settings().run).or(spec.approval);
        // The parent's key may have been allowed more.
        let priority_max = self.app().settings().priority_max_of(owner);
        let (queueing, passed) = spec.queueing.again(self.store.now_ms(), priority_max);
        spec.queueing = queueing;
        spec.notes.extend(passed.map(|passed| format!("forked: {passed}")));
        self.check_engines(&spec)?;
        self.check_waiting(owner, &spec).await?;
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

        // The events after the copies, one by one: with the last, the fork is complete.
        if seq == origin.seq {
            let basis = live.spec.plan.basis;
            let judge = live.spec.judge();
            let run = origin.run.as_str();
            live.stream.append(&TraceLine::Forked { run, parent_seq: seq, basis, judge: &judge });
            seq += 1;
            live.stream.durable(seq).await.map_err(|()| not_copied(live))?;
        }
        if let Some(line) = origin.line.as_ref().filter(|_| seq == origin.seq + 1) {
            let (run, number) = (origin.run.clone(), line.number);
            let replaced = origin.seq + 1;
            let step =
                move |journal: &dyn Journal| Ok(waiting_step(journal, &run, replaced, number));
            let mut waiting = self.store.read(step).await??;
            waiting.push(b'\n');
            live.stream.append_raw(&waiting, 1, &[], Progress::default());
            live.stream.durable(seq + 1).await.map_err(|()| not_copied(live))?;
        }
        Ok(())
    }

    /// Completes a fork that an earlier process left incomplete.
    ///
    /// # Errors
    /// When the parent run was removed, or cannot be read.
    pub(super) fn complete_fork(&self, live: &LiveRun, row: &RunRow) -> Result<(), RunError> {
        let is_complete = live
            .spec
            .forked_from
            .as_ref()
            .is_none_or(|origin| row.head.seq > origin.seq + u64::from(origin.line.is_some()));
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
