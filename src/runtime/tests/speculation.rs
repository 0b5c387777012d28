//! Speculative proceed: proposals that are begun before the verdict on the step before them. Time is that of the cell's
//! thread, and is stopped: it jumps to the next timer whenever nothing else is to do.

mod pace;
mod resuming;
mod same;
mod waste;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::agents::ScriptedExecutor;
use prime_bench::tasks::TaskRng;
use prime_protocol::{Speculations, Usage};

/// Draws from what a turn is, so that every run of a test draws the same.
fn draw_of(trajectory: &Trajectory, line: &str, salt: u64) -> TaskRng {
    let mut hasher = DefaultHasher::new();
    trajectory.stack.lines().for_each(|line| line.hash(&mut hasher));
    (trajectory.counts.proposals, trajectory.counts.pops, line, salt).hash(&mut hasher);
    TaskRng::new(hasher.finish())
}

/// Counts what becomes of an executor's proposals.
#[derive(Default)]
struct Probe {
    begun: AtomicU64,
    completed: AtomicU64,
}

impl Probe {
    /// Proposals that were begun, and those of them that were given up.
    fn begun_and_given_up(&self) -> (u64, u64) {
        let begun = self.begun.load(Ordering::SeqCst);
        (begun, begun - self.completed.load(Ordering::SeqCst))
    }
}

/// What one proposal costs.
const COST: Usage = Usage { prompt: 10, completion: 1 };

/// An executor that takes its time, and writes down all that it is shown.
struct Slow<E> {
    inner: E,
    /// Milliseconds of virtual time, from this to this.
    millis: (usize, usize),
    probe: Arc<Probe>,
}

/// Everything that an executor can see of a trajectory.
fn shown(trajectory: &Trajectory, sampling: Sampling) -> String {
    let lines: Vec<_> = trajectory.stack.lines().collect();
    let (feedback, counts) = (&trajectory.feedback, trajectory.counts);
    let (state, notes) = (trajectory.machine.state(), trajectory.stack.notes());
    format!("{lines:?} {state} {:?} {feedback:?} {counts:?} {notes:?} {sampling:?}", trajectory.machine.choices())
}

#[async_trait]
impl<E: Executor> Executor for Slow<E> {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        self.probe.begun.fetch_add(1, Ordering::SeqCst);
        let millis = draw_of(trajectory, "", sampling.seed).size(self.millis.0, self.millis.1);
        tokio::time::sleep(Duration::from_millis(millis as u64)).await;
        let proposal = self.inner.propose(trajectory, sampling).await?;
        self.probe.completed.fetch_add(1, Ordering::SeqCst);
        Ok(Proposal { derivation: shown(trajectory, sampling), usage: COST, ..proposal })
    }
}

/// A verifier that takes its time, and finds by chance what is there or not.
#[derive(Clone, Copy)]
struct Moody {
    millis: (usize, usize),
    /// Percent of the steps that are tolerable, and of those that are not; the others are judged by the rules.
    tolerable: u64,
    intolerable: u64,
}

#[async_trait]
impl Verifier for Moody {
    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let mut rng = draw_of(trajectory, line, 1);
        tokio::time::sleep(Duration::from_millis(rng.size(self.millis.0, self.millis.1) as u64)).await;
        let mood = rng.below(100);
        if mood >= self.tolerable + self.intolerable {
            return rules().judge(trajectory, line).await;
        }
        let tenths = if mood < self.tolerable { 2 } else { 6 };
        let feedback = Some(format!("mood {mood} at {line}"));
        Ok(Verdict { score: Score::from_tenths(tenths), feedback, ..Verdict::default() })
    }
}

/// Executors of a kind, whose cell's clock is stopped.
fn stopped<E: Executor + 'static, V: Verifier + 'static>(
    executor: impl Fn() -> E + Send + Sync + 'static,
    verifier: impl Fn() -> V + Send + Sync + 'static,
) -> (AgentSet, Made) {
    let make = move |made| {
        // The first one is made on the cell's thread, before anything has waited.
        if made == 0 {
            tokio::time::pause();
        }
        executor()
    };
    agents(make, move |_| verifier(), |_| threshold())
}

/// A run's events.
#[derive(Clone, Debug, Default)]
struct Traced {
    /// Of each trajectory its steps, in words.
    steps: BTreeMap<(u32, u32), Vec<String>>,
    /// All steps, in their order.
    order: Vec<String>,
    ends: BTreeMap<(u32, u32), String>,
    votes: Vec<String>,
    mishaps: u64,
    speculations: Speculations,
    usage: Usage,
    elapsed_ms: u64,
}

#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Traced>>);

impl Trace {
    fn get(&self) -> Traced {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Trace {
    fn observe(&self, event: &Event<'_>) {
        let mut traced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |id: &TurnId| (id.round, id.trajectory);
        match event {
            Event::Step {
                id,
                depth,
                proposal,
                is_applicable,
                verdict,
                decision,
                usage,
                speculations,
                elapsed_ms,
                ..
            } => {
                let step = format!("{depth} {proposal:?} {is_applicable} {verdict:?} {decision:?}");
                traced.order.push(format!("{id:?} {step}"));
                traced.steps.entry(key(id)).or_default().push(step);
                traced.usage.add(*usage);
                traced.speculations.add(*speculations);
                traced.elapsed_ms = *elapsed_ms;
            }
            Event::TrajectoryEnded { id, end, reward } => {
                traced.ends.insert(key(id), format!("{end:?} {reward:?}"));
            }
            Event::Voted { round, winner, agreement } => traced.votes.push(format!("{round} {winner:?} {agreement}")),
            Event::Mishap { .. } | Event::TurnFailed { .. } => traced.mishaps += 1,
            Event::Started | Event::Chosen { .. } | Event::Stopped { .. } | Event::Finished(_) => {}
        }
    }
}

/// Carries out a run with these agents.
fn traced(agents: AgentSet, problem: &Arc<dyn Problem>, plan: RunPlan, seed: u64) -> (Traced, Outcome) {
    let trace = Trace::default();
    let mut submission = Submission { observer: Arc::new(trace.clone()), ..submission(problem, plan) };
    submission.sampling.seed = seed;
    let outcome = in_system(async { outcome_of(shared(agents).submit(submission)).await });
    (trace.get(), outcome)
}

/// A slow executor that errs, with its probe.
fn erring(error_rate: f64, millis: (usize, usize)) -> (impl Fn() -> Slow<ScriptedExecutor> + Clone, Arc<Probe>) {
    let probe = Arc::<Probe>::default();
    let kept = Arc::clone(&probe);
    (move || Slow { inner: ScriptedExecutor::new(error_rate), millis, probe: Arc::clone(&probe) }, kept)
}
