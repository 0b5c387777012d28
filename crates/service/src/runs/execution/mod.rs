//! Carries out runs: `accept`s new ones that pass `admission`, lets them `begin` in turn,
//! `execute`s each on the runtime with its `accepted_agents` or not at all, `resume`s and `fork`s
//! from what the journal has, and follows the `leases` of a shared journal. `suspend` takes runs
//! that wait for approval out of memory. `rows` is what it writes about a run beside its events,
//! `notices` what it tells webhooks.

pub(super) mod accept;
mod accepted_agents;
mod admission;
mod begin;
mod current_app;
pub(super) mod daily_cost;
mod execute;
pub mod fork;
mod key_locks;
pub(super) mod leases;
pub(super) mod new_run;
mod notices;
pub(super) mod observers;
mod payload;
mod recorder;
mod resume;
pub(super) mod retry;
mod rows;
mod sent;
mod suspend;

use std::sync::Arc;

use actix::ArbiterHandle;
use tokio::sync::{Notify, oneshot, watch};
use tracing::Instrument as _;

use super::cluster_link::ClusterLink;
use super::error::RunError;
use super::live::LiveRuns;
use super::queue::limits::QueueLimits;
use super::queue::places::Places;
use super::queue::rates::Rates;
use super::store::RunStore;
use crate::app::App;
use crate::webhooks::Webhooks;
use current_app::CurrentApp;
use daily_cost::Tries;
use key_locks::KeyLocks;
use observers::Observers;

/// Starts runs, and executes each of them to its end.
pub struct Execution {
    app: CurrentApp,
    store: Arc<RunStore>,
    live: Arc<LiveRuns>,
    cluster: Arc<ClusterLink>,
    observers: Observers,
    /// The receivers of messages, which a reload replaces.
    webhooks: Arc<watch::Sender<Arc<Webhooks>>>,
    /// Where runs wait until they are executed.
    places: Arc<Places>,
    /// How many runs were accepted lately.
    rates: Rates,
    /// What turns have cost that belong to no run.
    tries: Tries,
    /// Requests with a key that are being accepted.
    keys: KeyLocks,
    /// Notified when steps have begun to wait for approval.
    held: Notify,
    /// Executes the runs. Not a thread of the server, whose threads end before the process does.
    arbiter: ArbiterHandle,
}

impl Execution {
    /// Must be called within an actix system, whose arbiter executes the runs.
    pub fn new(
        app: Arc<App>,
        store: Arc<RunStore>,
        live: Arc<LiveRuns>,
        cluster: Arc<ClusterLink>,
        observers: Observers,
    ) -> Self {
        let places = Arc::<Places>::default();
        places.limit(QueueLimits::of(app.settings(), app.runtime().plan()));
        Self {
            app: CurrentApp::new(app),
            store,
            live,
            cluster,
            observers,
            webhooks: Arc::new(watch::Sender::new(Arc::default())),
            places,
            rates: Rates::default(),
            tries: Tries::default(),
            keys: KeyLocks::default(),
            held: Notify::new(),
            arbiter: actix::Arbiter::current(),
        }
    }

    /// The configuration and agents of new runs.
    pub fn app(&self) -> Arc<App> {
        self.app.get()
    }

    /// Replaces [`Execution::app`] for new runs and those that wait for their agents; open runs
    /// keep theirs.
    pub fn replace(&self, app: App) {
        self.cluster.limit_open_runs(app.settings().server.queue_max);
        self.places.limit(QueueLimits::of(app.settings(), app.runtime().plan()));
        self.app.replace(app);
    }

    pub fn webhooks(&self) -> &watch::Sender<Arc<Webhooks>> {
        &self.webhooks
    }

    pub fn observers(&self) -> &Observers {
        &self.observers
    }

    /// Checks that there is room, so that a run can be refused before anything is computed for it.
    /// Only [`Execution::accept`] decides.
    ///
    /// # Errors
    /// `Full`, `OwnerFull` or `Draining`.
    pub fn has_room(&self, owner: &str) -> Result<(), RunError> {
        let (app, elsewhere) = (self.app(), self.cluster.open_elsewhere());
        self.live.check_room(owner, &app.settings().server, elsewhere)
    }

    /// Completes `work` even when the request is dropped because its client disconnected: half of
    /// it must not stay.
    ///
    /// # Errors
    /// Those of `work`, or `Draining` when the process ends first.
    pub async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RunError>> + Send + 'static,
    ) -> Result<T, RunError> {
        let (reply, result) = oneshot::channel();
        let work = async move {
            // The caller may have stopped waiting.
            drop(reply.send(work.await));
        };
        self.arbiter.spawn(work.in_current_span());
        result.await.unwrap_or(Err(RunError::Draining))
    }
}
