//! The load on the ring with a journal: every run is accepted, recorded and committed as in the
//! daemon. A step counts when it is durable.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::error::LoadError;
use super::in_process::greedy;
use super::plan::Plan;
use super::ring::agents;
use super::watch::{Watch, is_solved};
use prime_agent_set::null_problem;
use prime_agent_set::{Names, configured_names};
use prime_journal::{SqliteJournal, SqliteOptions};
use prime_loadtest::histogram::empty;
use prime_loadtest::report::Point;
use prime_loadtest::{Launch, Phase, Session, Trajectory, measure};
use prime_protocol::{RunPlan, RunSnapshot};
use prime_runtime::{Event, Observer, Wake};
use prime_service::app::{App, Overrides};
use prime_service::metrics::Metrics;
use prime_service::runs::{Committed, LiveRun, NewRun, Queueing, RunSpec, Runs};
use prime_settings::Settings;

/// Owner of the runs.
const OWNER: &str = "loadtest";
/// The trajectory whose steps are timed until they are durable. All are alike.
const FOLLOWED: u32 = 0;

/// f_type of tmpfs and ramfs, from statfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Decision times, in the session's clock, of the followed run's steps that are not known to be
/// durable yet; `None` for steps outside the measurement.
type Decided = Arc<Mutex<VecDeque<Option<u64>>>>;

/// The observer of each trajectory's current run.
#[derive(Default)]
struct Watches(Mutex<Vec<Option<Arc<Watch>>>>);

/// Measures a run, and passes its events on to the observer that records it.
struct Recorded {
    watch: Arc<Watch>,
    recorder: Arc<dyn Observer>,
    decided: Option<Decided>,
}

impl Observer for Recorded {
    fn observe(&self, event: &Event<'_>) {
        if let (Event::Step { .. }, Some(decided)) = (event, &self.decided) {
            let session = self.watch.trajectory().session();
            let at = session.is(Phase::Measuring).then(|| session.now());
            decided.lock().unwrap_or_else(PoisonError::into_inner).push_back(at);
        }

        self.watch.observe(event);
        self.recorder.observe(event);
    }

    fn attach(&self, span: &tracing::Span) {
        self.recorder.attach(span);
    }

    fn wants_timing(&self) -> bool {
        self.watch.wants_timing()
    }

    fn wants_snapshot(&self) -> bool {
        self.recorder.wants_snapshot()
    }

    fn save_snapshot(&self, snapshot: RunSnapshot) {
        self.recorder.save_snapshot(snapshot);
    }

    fn is_behind(&self) -> bool {
        self.recorder.is_behind() || self.watch.is_behind()
    }

    fn wake_when_free(&self, wake: Wake) {
        // After waking, both are checked again.
        if self.recorder.is_behind() {
            self.recorder.wake_when_free(wake);
        } else {
            self.watch.wake_when_free(wake);
        }
    }
}

/// The runs of a trajectory.
#[derive(Default)]
struct TrajectoryRuns {
    /// Durable steps of runs that are complete.
    before: u64,
    /// Runs that are over, but whose last steps may not be durable yet.
    ending: Vec<Arc<LiveRun>>,
    current: Option<Arc<LiveRun>>,
}

impl TrajectoryRuns {
    /// Replaces the current run by the next.
    fn replace(&mut self, run: Option<Arc<LiveRun>>) {
        self.ending.extend(std::mem::replace(&mut self.current, run));

        let before = &mut self.before;
        self.ending.retain(|run| {
            let committed = run.stream.committed();
            *before += if committed.is_over { committed.progress.proposals } else { 0 };
            !committed.is_over
        });
    }

    fn durable(&self) -> u64 {
        let runs = self.ending.iter().chain(&self.current);
        self.before + runs.map(|run| run.stream.committed().progress.proposals).sum::<u64>()
    }
}

/// The runs of one measurement.
struct DurableLaunch<'l> {
    load: &'l DurableLoad,
    steps: u64,
    runs: Vec<Mutex<TrajectoryRuns>>,
    /// Time from decision to commit of the followed trajectory's steps.
    commit: Arc<Mutex<Histogram<u64>>>,
    /// The tasks that record it, each of which ends with its run.
    followers: Mutex<Vec<JoinHandle<()>>>,
}

/// Null agents with a journal.
pub struct DurableLoad {
    runs: Arc<Runs>,
    names: Names,
    config_hash: String,
    watches: Arc<Watches>,
    followed: Arc<Mutex<Decided>>,
    seed: AtomicU64,
    is_in_memory: bool,
    _folder: Option<TempDir>,
}

/// Milliseconds since the Unix epoch.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// True if a folder is on an in-memory file system, where durability costs nothing.
fn is_in_memory(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|system| {
        u64::try_from(system.f_type).is_ok_and(|kind| IN_MEMORY.contains(&kind))
    })
}

impl DurableLoad {
    /// Creates a journal, by default a temporary file. Must be called within an actix system.
    ///
    /// # Errors
    /// If the journal exists or cannot be created.
    pub fn start(
        mut settings: Settings,
        plan: &Plan,
        journal: Option<&Path>,
        trajectories_max: u32,
    ) -> Result<Self, LoadError> {
        if let Some(path) = journal.filter(|path| path.exists()) {
            return Err(LoadError::JournalExists(path.display().to_string()));
        }

        let folder = if journal.is_none() {
            Some(tempfile::Builder::new().prefix("prime-agents-load-").tempdir()?)
        } else {
            None
        };

        let path = match (journal, &folder) {
            (Some(path), _) => path.to_owned(),
            (None, folder) => folder
                .as_ref()
                .map_or_else(Default::default, |folder| folder.path().join("load.db")),
        };

        // Admission control is not what is measured.
        settings.runtime.in_flight_max = u32::MAX;
        // A finished run frees its place slightly after the next one is submitted.
        settings.server.queue_max = trajectories_max.saturating_mul(2).saturating_add(1);

        // The journal records the agents of the runs, so the null agents go by the configured
        // names.
        let names = configured_names(&settings);
        let config_hash = settings.hash();

        let app = App::with_agents(settings, agents(plan, names.clone())?);
        let store = Arc::new(SqliteJournal::open(&path, SqliteOptions::default())?);
        let metrics = Arc::new(Metrics::new(jiff::Timestamp::now()));
        let runs = Runs::start(Arc::new(app), store, now_ms, metrics, None)?;

        let (watches, followed) =
            (Arc::new(Watches::default()), Arc::new(Mutex::new(Decided::default())));
        let (of, decided) = (Arc::clone(&watches), Arc::clone(&followed));
        runs.observe_with(Box::new(move |spec, recorder| {
            let trajectory = spec.instance.parse::<u32>().ok();
            let watches = of.0.lock().unwrap_or_else(PoisonError::into_inner);
            let watch = trajectory.and_then(|trajectory| watches.get(trajectory as usize)?.clone());
            let Some(watch) = watch else { return recorder };

            let followed = || Arc::clone(&decided.lock().unwrap_or_else(PoisonError::into_inner));
            let decided = (watch.trajectory().number() == FOLLOWED).then(followed);
            Arc::new(Recorded { watch, recorder, decided })
        }));

        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_in_memory = is_in_memory(parent);
        let seed = AtomicU64::new(0);

        Ok(Self {
            runs,
            names,
            config_hash,
            watches,
            followed,
            seed,
            is_in_memory,
            _folder: folder,
        })
    }

    /// What a reader must know about the journal, if anything.
    pub fn remark(&self) -> Option<String> {
        self.is_in_memory.then(|| {
            "The journal was on an in-memory file system, where durability costs nothing: name a \
             file on a disk with --journal."
                .to_owned()
        })
    }

    /// Measures a load.
    pub async fn measure(&self, plan: &Plan, trajectories: u32) -> Result<Point, LoadError> {
        let steps = plan.run_steps(trajectories)?;
        let runs = (0..trajectories).map(|_| Mutex::default()).collect();

        *self.watches.0.lock().unwrap_or_else(PoisonError::into_inner) =
            vec![None; trajectories as usize];
        let (commit, followers) = (Arc::new(Mutex::new(empty())), Mutex::default());
        let launch = DurableLaunch { load: self, steps, runs, commit, followers };
        let measured = Box::pin(measure(&plan.measurement(trajectories), &launch)).await?;

        // The next load must not overlap the end of this one.
        launch.wait(|committed, _| committed.is_over).await;
        launch.released().await;
        launch.followed().await;

        let commit = launch.commit.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(measured.point(Some(&commit))?)
    }
}

impl Drop for DurableLoad {
    fn drop(&mut self) {
        // The writer thread must end before its file is deleted.
        self.runs.park();
    }
}

impl DurableLaunch<'_> {
    fn new_run(&self, trajectory: u32) -> NewRun {
        let problem = null_problem(self.steps);
        let spec = RunSpec {
            task: problem.spec().slug.to_owned(),
            instance: trajectory.to_string(),
            input: problem.input(),
            is_of_program: false,
            module: None,
            program: None,
            plan: RunPlan::single(self.steps + 1),
            approval: None,
            sampling: greedy(self.load.seed.fetch_add(1, Ordering::Relaxed)),
            overrides: Overrides::default(),
            agents: self.load.names.clone(),
            recorded: None,
            notes: Vec::new(),
            config_hash: self.load.config_hash.clone(),
            split: None,
            forked_from: None,
            retry_of: None,
            labels: BTreeMap::new(),
            queueing: Queueing::default(),
            traceparent: None,
        };

        NewRun { owner: OWNER.to_owned(), key: None, spec, problem }
    }

    /// Waits until enough of every current run is durable.
    async fn wait(&self, is_enough: impl Fn(&Committed, &LiveRun) -> bool) {
        for runs in &self.runs {
            // The lock is not held across the wait: the launch replaces the current run.
            let run = runs.lock().unwrap_or_else(PoisonError::into_inner).current.clone();
            if let Some(run) = run {
                // A stream never ends before its run.
                drop(run.stream.watch().wait_for(|committed| is_enough(committed, &run)).await);
            }
        }
    }

    /// Yields until the service has released the runs, whose end is committed already.
    async fn released(&self) {
        for runs in &self.runs {
            let run = runs.lock().unwrap_or_else(PoisonError::into_inner).current.clone();
            while run.as_ref().is_some_and(|run| self.load.runs.live(&run.stream.id).is_some()) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Records when the steps of a run become durable.
    fn follow(&self, run: &LiveRun, decided: Decided, session: Arc<Session>) {
        let mut committed = run.stream.watch();
        let commit = Arc::clone(&self.commit);

        let follower = actix::spawn(async move {
            // A new watch shows the current value first, so nothing that is durable already is
            // missed.
            let mut durable = 0;
            loop {
                let (seen, is_over) = {
                    let committed = committed.borrow_and_update();
                    (committed.progress.proposals, committed.is_over)
                };

                record(&commit, &decided, seen - durable, session.now());
                durable = seen;

                if is_over || committed.changed().await.is_err() {
                    return;
                }
            }
        });
        self.followers.lock().unwrap_or_else(PoisonError::into_inner).push(follower);
    }

    /// Waits until the last commit of every followed run is recorded.
    async fn followed(&self) {
        let followers =
            std::mem::take(&mut *self.followers.lock().unwrap_or_else(PoisonError::into_inner));
        for follower in followers {
            // Nothing cancels a follower, and a panic in it has been reported.
            drop(follower.await);
        }
    }
}

/// Records that the next `count` decided steps are durable.
fn record(commit: &Mutex<Histogram<u64>>, decided: &Decided, count: u64, now: u64) {
    let mut commit = commit.lock().unwrap_or_else(PoisonError::into_inner);

    let mut decided = decided.lock().unwrap_or_else(PoisonError::into_inner);

    for _ in 0..count {
        if let Some(Some(at)) = decided.pop_front() {
            commit.saturating_record(now.saturating_sub(at).max(1));
        }
    }
}

impl Launch for DurableLaunch<'_> {
    type Error = LoadError;

    async fn launch(&self, trajectory: &Arc<Trajectory>) -> Result<(), LoadError> {
        let number = trajectory.number();
        let index = number as usize;

        // The wrapper that was given to `observe_with` looks both up while the run is being
        // accepted.
        let watch = Arc::new(Watch::new(Arc::clone(trajectory), is_solved));
        self.load.watches.0.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(watch);

        let decided = Decided::default();
        if number == FOLLOWED {
            *self.load.followed.lock().unwrap_or_else(PoisonError::into_inner) =
                Arc::clone(&decided);
        }

        let accepted = self.load.runs.accept(self.new_run(number)).await?;
        let run = self.load.runs.live(&accepted.record.id);

        match &run {
            Some(run) if number == FOLLOWED => {
                self.follow(run, decided, Arc::clone(trajectory.session()));
            }
            // The run is over already, with all of its steps.
            None => {
                self.runs[index].lock().unwrap_or_else(PoisonError::into_inner).before +=
                    self.steps;
                record(&self.commit, &decided, self.steps, trajectory.session().now());
            }
            Some(_) => {}
        }

        self.runs[index].lock().unwrap_or_else(PoisonError::into_inner).replace(run);

        Ok(())
    }

    async fn settle(&self) {
        self.wait(|committed, run| {
            committed.progress.proposals >= run.stream.uncommitted_progress().proposals
        })
        .await;
    }

    fn halt(&self) {
        for runs in &self.runs {
            if let Some(run) = &runs.lock().unwrap_or_else(PoisonError::into_inner).current {
                run.cancel();
            }
        }
    }

    fn durable(&self) -> Option<u64> {
        let durable = |runs: &Mutex<TrajectoryRuns>| {
            runs.lock().unwrap_or_else(PoisonError::into_inner).durable()
        };

        Some(self.runs.iter().map(durable).sum())
    }
}
