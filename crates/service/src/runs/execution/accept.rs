//! Accepts new runs, each once per idempotency key.

use std::sync::Arc;

use super::Execution;
use super::execute::Start;
use super::new_run::NewRun;
use crate::runs::error::RunError;
use crate::runs::live::admission::RunSlot;
use crate::runs::live::live_run::LiveRun;
use crate::runs::progress::Progress;
use crate::runs::record::{RunRecord, Status};
use crate::runs::spec::RunSpec;
use prime_journal::{ChainHash, Head, IdempotencyKey, ReviewCounts, RunRow};
use prime_report::RunResult;

/// The result of a request for a run.
pub enum Acceptance {
    New(Box<RunRecord>),
    /// The id of the run that the same request, with the same key, was accepted as earlier. It may
    /// have been removed since.
    Earlier(String),
}

/// An id that sorts by time.
fn new_id(now_ms: u64) -> String {
    // Eleven hexadecimal digits of milliseconds last until the year 2527.
    format!("run_{:011x}{:016x}", now_ms & 0xfff_ffff_ffff, rand::random::<u64>())
}

impl Execution {
    /// Accepts a run: when this returns a new one, it is durable and executing.
    ///
    /// # Errors
    /// [`RunError`]; then the run does not exist.
    pub async fn accept(self: &Arc<Self>, new: NewRun) -> Result<Acceptance, RunError> {
        let execution = Arc::clone(self);
        // Boxed, because it is large, and moved several times.
        let accepting = async move { Box::pin(execution.accept_once(new)).await };
        self.run_detached(accepting).await
    }

    async fn accept_once(self: &Arc<Self>, new: NewRun) -> Result<Acceptance, RunError> {
        let Some(key) = new.key.clone() else {
            return self
                .accept_new(new, None)
                .await
                .map(|record| Acceptance::New(Box::new(record)));
        };
        let name = (new.owner.clone(), key.key.clone());
        self.keys.in_turn(name, self.accept_keyed(new, key)).await
    }

    async fn accept_keyed(
        self: &Arc<Self>,
        new: NewRun,
        key: IdempotencyKey,
    ) -> Result<Acceptance, RunError> {
        let owner = new.owner.clone();
        if let Some(id) = self.accepted_earlier(&owner, &key).await? {
            return Ok(Acceptance::Earlier(id));
        }

        match self.accept_new(new, Some(key.clone())).await {
            Ok(record) => Ok(Acceptance::New(Box::new(record))),
            // Another node may have accepted it at the same time.
            Err(error) if self.cluster.is_shared() => {
                self.accepted_earlier(&owner, &key).await?.map(Acceptance::Earlier).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The run for which the key was used with the same request, if any.
    pub(in crate::runs) async fn accepted_earlier(
        &self,
        owner: &str,
        key: &IdempotencyKey,
    ) -> Result<Option<String>, RunError> {
        let (owner, text) = (owner.to_owned(), key.key.clone());
        match self.store.read(move |journal| journal.run_of_key(&owner, &text)).await? {
            Some((id, fingerprint)) if fingerprint == key.fingerprint => Ok(Some(id)),
            Some((id, _)) => Err(RunError::KeyReused(id)),
            None => Ok(None),
        }
    }

    async fn accept_new(
        self: &Arc<Self>,
        new: NewRun,
        key: Option<IdempotencyKey>,
    ) -> Result<RunRecord, RunError> {
        if self.live.is_draining() {
            return Err(RunError::Draining);
        }
        self.check_engines(&new.spec)?;
        let spec = self.queued(&new.owner, new.spec)?;
        self.check_day(&new.owner).await?;
        self.check_waiting(&new.owner, &spec).await?;
        let slot = self.reserve_slot(&new.owner)?;
        // Last, so that a run that is refused for another reason does not count.
        self.count_rates(&new.owner, &spec.task)?;

        let (live, row) = self.prepare(&new.owner, spec)?;
        self.store.accept(row, key).await?;

        // This comes before the launch: the answer shows the run as it was accepted.
        let record = live.record();
        self.launch(live, Start::new(new.problem), slot);
        Ok(record)
    }

    /// Refuses a new run whose engine is out of service; open ones wait for it.
    pub(super) fn check_engines(&self, spec: &RunSpec) -> Result<(), RunError> {
        let lost = spec.recorded.as_ref().and_then(|recorded| self.app().lost_engine(recorded));
        lost.map_or(Ok(()), |lost| Err(RunError::EngineLost(lost.to_string())))
    }

    pub(super) fn reserve_slot(&self, owner: &str) -> Result<RunSlot, RunError> {
        let (app, elsewhere) = (self.app(), self.cluster.open_elsewhere());
        self.live.reserve_slot(owner, &app.settings().server, elsewhere)
    }

    /// Makes a run and its row, without registering either.
    pub(super) fn prepare(
        &self,
        owner: &str,
        mut spec: RunSpec,
    ) -> Result<(Arc<LiveRun>, RunRow), RunError> {
        // Custom agents must exist already; recorded ones are built from their record.
        if spec.recorded.is_none() {
            let agents = self.app().agents_named(&spec.agents);
            agents.map_err(|error| RunError::Agents(error.to_string()))?;
        }
        let context = spec.context();

        let now = self.store.now_ms();
        spec.queueing = spec.queueing.ranked(now, self.app().settings().queue.aging_ms);
        let text = serde_json::to_string(&spec).expect("invariant: specs serialise");
        // The chain begins with the spec, so that a changed one is noticed.
        let head = Head { seq: 0, hash: ChainHash::genesis(&text) };
        let row = RunRow {
            id: new_id(now),
            owner: owner.to_owned(),
            created_ms: now,
            updated_ms: now,
            task: spec.task.clone(),
            status: Status::Queued.name().to_owned(),
            is_over: false,
            resumed: 0,
            spec: text,
            summary: serde_json::to_string(&RunResult::open(&context))
                .expect("invariant: results serialise"),
            split: spec.split.map(|arm| arm.name().to_owned()),
            reviews: ReviewCounts::default(),
            head,
        };

        let stream = self.store.stream(&row, Progress::default());
        Ok((Arc::new(LiveRun::new(&row, spec, context, stream)), row))
    }
}
