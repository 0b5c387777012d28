//! The load on the ring with a journal: null agents, and every run is accepted, recorded and committed as in the daemon. A
//! step counts when it is durable.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;

use super::drive::{self, Launch};
use super::error::LoadError;
use super::histogram::empty;
use super::in_process::greedy;
use super::plan::Plan;
use super::report::Point;
use super::ring::null_agents;
use super::scratch::{Scratch, is_in_memory};
use super::session::{Phase, Session};
use super::watch::{Watch, is_solved};
use crate::agents::Names;
use crate::app::{App, Overrides};
use crate::evaluation::null_problem;
use crate::metrics::Metrics;
use crate::runs::{Committed, LiveRun, NewRun, RunSpec, Runs};
use crate::runtime::{Event, Observer, Wake};
use crate::settings::Settings;
use prime_journal::{SqliteJournal, SqliteOptions};
use prime_protocol::{RunPlan, RunSnapshot};

/// Whose runs they are.
const OWNER: &str = "loadtest";
/// The trajectory whose steps are followed until they are durable: one of equal ones.
const FOLLOWED: u32 = 0;

/// When the steps of the followed trajectory's run were decided, of those that are not known to be durable yet.
type Decided = Arc<Mutex<VecDeque<u64>>>;

/// The way of a run's observer into the run: by the number of its trajectory.
#[derive(Default)]
struct Watches(Mutex<Vec<Option<Arc<Watch>>>>);

/// A run's observer before the one that records it.
struct Recorded {
    watch: Arc<Watch>,
    keeper: Arc<dyn Observer>,
    decided: Option<Decided>,
}

impl Observer for Recorded {
    fn observe(&self, event: &Event<'_>) {
        if let (Event::Step { .. }, Some(decided)) = (event, &self.decided) {
            decided.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.watch.session().now());
        }
        self.watch.observe(event);
        self.keeper.observe(event);
    }

    fn wants_laps(&self) -> bool {
        self.watch.wants_laps()
    }

    fn wants_saved(&self) -> bool {
        self.keeper.wants_saved()
    }

    fn save(&self, saved: RunSnapshot) {
        self.keeper.save(saved);
    }

    fn is_behind(&self) -> bool {
        self.keeper.is_behind() || self.watch.is_behind()
    }

    fn wake_when_free(&self, wake: Wake) {
        // Whoever wakes it, both are asked again.
        if self.keeper.is_behind() { self.keeper.wake_when_free(wake) } else { self.watch.wake_when_free(wake) }
    }
}

/// A trajectory's present run, and the durable steps of those before it.
#[derive(Default)]
struct Kept {
    before: u64,
    /// Over, but perhaps not durable to their last step.
    ending: Vec<Arc<LiveRun>>,
    run: Option<Arc<LiveRun>>,
}

impl Kept {
    /// Puts the next run in the place of the present one.
    fn replace(&mut self, run: Option<Arc<LiveRun>>) {
        self.ending.extend(std::mem::replace(&mut self.run, run));
        let before = &mut self.before;
        self.ending.retain(|run| {
            let committed = run.stream.committed();
            *before += if committed.is_over { committed.progress.proposals } else { 0 };
            !committed.is_over
        });
    }

    fn durable(&self) -> u64 {
        let runs = self.ending.iter().chain(&self.run);
        self.before + runs.map(|run| run.stream.committed().progress.proposals).sum::<u64>()
    }
}

/// The runs of one measurement.
struct Durably<'l> {
    load: &'l DurableLoad,
    steps: u64,
    kept: Vec<Mutex<Kept>>,
    /// From decided to durable, of the followed trajectory.
    commit: Arc<Mutex<Histogram<u64>>>,
}

/// Null agents, and a journal.
pub struct DurableLoad {
    runs: Arc<Runs>,
    names: Names,
    config_hash: String,
    watches: Arc<Watches>,
    followed: Arc<Mutex<Decided>>,
    seed: AtomicU64,
    is_in_memory: bool,
    _scratch: Option<Scratch>,
}

/// The wall clock, in milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

impl DurableLoad {
    /// Opens a new journal, in `journal` or among the temporary files, for loads with at most so many trajectories. Must be
    /// called within an actix system.
    ///
    /// # Errors
    /// When the journal is there already or cannot be made.
    pub fn start(
        mut settings: Settings,
        plan: &Plan,
        journal: Option<&Path>,
        trajectories_max: u32,
    ) -> Result<Self, LoadError> {
        if let Some(path) = journal.filter(|path| path.exists()) {
            return Err(LoadError::JournalExists(path.display().to_string()));
        }
        let scratch = if journal.is_none() { Some(Scratch::new()?) } else { None };
        let path = match (journal, &scratch) {
            (Some(path), _) => path.to_owned(),
            (None, scratch) => scratch.as_ref().map_or_else(Default::default, |scratch| scratch.path().join("load.db")),
        };
        settings.runtime.in_flight_max = u32::MAX;
        // A run that has ended gives its place back a little later than the next one is handed in.
        settings.server.queue_max = trajectories_max.saturating_mul(2).saturating_add(1);
        // The journal says what the runs were made with, so these agents stand under the names that are configured.
        let names = Names::of(&settings);
        let config_hash = settings.hash();
        let app = App::with_agents(settings, null_agents(plan, names.clone())?);
        let store = Arc::new(SqliteJournal::open(&path, SqliteOptions::default())?);
        let metrics = Arc::new(Metrics::new(jiff::Timestamp::now()));
        let runs = Runs::start(Arc::new(app), store, now_ms, metrics, None)?;
        let (watches, followed) = (Arc::new(Watches::default()), Arc::new(Mutex::new(Decided::default())));
        let (of, decided) = (Arc::clone(&watches), Arc::clone(&followed));
        runs.observe_with(Box::new(move |spec, keeper| {
            let trajectory = spec.instance.parse::<u32>().ok();
            let watches = of.0.lock().unwrap_or_else(PoisonError::into_inner);
            let watch = trajectory.and_then(|trajectory| watches.get(trajectory as usize)?.clone());
            let Some(watch) = watch else { return keeper };
            let followed = || Arc::clone(&decided.lock().unwrap_or_else(PoisonError::into_inner));
            let decided = (watch.trajectory() == FOLLOWED).then(followed);
            Arc::new(Recorded { watch, keeper, decided })
        }));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_in_memory = is_in_memory(folder);
        let seed = AtomicU64::new(0);
        Ok(Self { runs, names, config_hash, watches, followed, seed, is_in_memory, _scratch: scratch })
    }

    /// What a reader must know of the journal, if anything.
    pub fn remark(&self) -> Option<String> {
        self.is_in_memory.then(|| {
            "The journal lay on a file system in memory, where making something durable costs nothing: name a file on a \
             disk with --journal."
                .to_owned()
        })
    }

    /// Measures a load.
    ///
    /// # Errors
    /// When a run is not accepted or does not end as it should, or nothing became durable in the time.
    pub async fn measure(&self, plan: &Plan, trajectories: u32) -> Result<Point, LoadError> {
        let steps = plan.run_steps(trajectories)?;
        let kept = (0..trajectories).map(|_| Mutex::default()).collect();
        *self.watches.0.lock().unwrap_or_else(PoisonError::into_inner) = vec![None; trajectories as usize];
        let durably = Durably { load: self, steps, kept, commit: Arc::new(Mutex::new(empty())) };
        let mut measured = drive::measure(plan, trajectories, is_solved, &durably).await?;
        // The next load must not find the end of this one.
        durably.wait(|committed, _| committed.is_over).await;
        durably.let_go().await;
        if let Some((_, commit)) = &mut measured.durable {
            commit.clone_from(&durably.commit.lock().unwrap_or_else(PoisonError::into_inner));
        }
        measured.point()
    }
}

impl Drop for DurableLoad {
    fn drop(&mut self) {
        // The thread that writes must be gone before its file is.
        self.runs.park();
    }
}

impl Durably<'_> {
    fn new_run(&self, trajectory: u32) -> NewRun {
        let problem = null_problem(self.steps);
        let spec = RunSpec {
            task: problem.spec().slug.to_owned(),
            instance: trajectory.to_string(),
            input: problem.input(),
            plan: RunPlan::single(self.steps + 1),
            sampling: greedy(self.load.seed.fetch_add(1, Ordering::Relaxed)),
            overrides: Overrides::default(),
            agents: self.load.names.clone(),
            notes: Vec::new(),
            config_hash: self.load.config_hash.clone(),
            split: None,
            forked_from: None,
            traceparent: None,
        };
        NewRun { owner: OWNER.to_owned(), key: None, spec, problem }
    }

    /// Waits until so much of every present run is durable.
    async fn wait(&self, is_enough: impl Fn(&Committed, &LiveRun) -> bool) {
        for kept in &self.kept {
            let run = kept.lock().unwrap_or_else(PoisonError::into_inner).run.clone();
            if let Some(run) = run {
                // A stream ends with its run at the earliest.
                drop(run.stream.watch().wait_for(|committed| is_enough(committed, &run)).await);
            }
        }
    }

    /// Lets those who followed the runs on this thread give up what they held: they have been told that it is over.
    async fn let_go(&self) {
        for kept in &self.kept {
            let run = kept.lock().unwrap_or_else(PoisonError::into_inner).run.clone();
            while run.as_ref().is_some_and(|run| self.load.runs.live(&run.stream.id).is_some()) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Notes when the steps of a run are durable.
    fn follow(&self, run: &LiveRun, decided: Decided, session: Arc<Session>) {
        let mut committed = run.stream.watch();
        let commit = Arc::clone(&self.commit);
        actix::spawn(async move {
            let mut durable = 0;
            loop {
                let seen = committed.borrow_and_update().progress.proposals;
                let now = session.now();
                for _ in durable..seen {
                    let decided = decided.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    if let Some(decided) = decided.filter(|_| session.is(Phase::Measuring)) {
                        let mut commit = commit.lock().unwrap_or_else(PoisonError::into_inner);
                        commit.saturating_record(now.saturating_sub(decided).max(1));
                    }
                }
                durable = seen;
                if committed.changed().await.is_err() {
                    return;
                }
            }
        });
    }
}

impl Launch for Durably<'_> {
    async fn launch(&self, watch: &Arc<Watch>) -> Result<(), LoadError> {
        let trajectory = watch.trajectory();
        let place = trajectory as usize;
        let lock = |kept: &'_ Mutex<Kept>, run| kept.lock().unwrap_or_else(PoisonError::into_inner).replace(run);
        self.load.watches.0.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(Arc::clone(watch));
        let decided = Decided::default();
        if trajectory == FOLLOWED {
            *self.load.followed.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&decided);
        }
        let accepted = self.load.runs.accept(self.new_run(trajectory)).await?;
        let run = self.load.runs.live(&accepted.record.id);
        match &run {
            Some(run) if trajectory == FOLLOWED => self.follow(run, decided, Arc::clone(watch.session())),
            // Over already, with all of its steps.
            None => self.kept[place].lock().unwrap_or_else(PoisonError::into_inner).before += self.steps,
            Some(_) => {}
        }
        lock(&self.kept[place], run);
        Ok(())
    }

    async fn settle(&self) {
        self.wait(|committed, run| committed.progress.proposals >= run.stream.uncommitted_progress().proposals).await;
    }

    fn halt(&self) {
        for kept in &self.kept {
            if let Some(run) = &kept.lock().unwrap_or_else(PoisonError::into_inner).run {
                run.cancel();
            }
        }
    }

    fn durable(&self) -> Option<u64> {
        let durable = |kept: &Mutex<Kept>| kept.lock().unwrap_or_else(PoisonError::into_inner).durable();
        Some(self.kept.iter().map(durable).sum())
    }
}
