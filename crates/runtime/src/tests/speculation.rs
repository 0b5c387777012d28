//! Speculative proceed: proposals that start before the verdict on the step before them. The clock
//! of the cell's thread is paused: time jumps to the next timer whenever the thread is idle.

mod asked;
mod pace;
mod resuming;
mod same;
mod waste;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use prime_bench::tasks::TaskRng;
use prime_protocol::{Speculations, Usage};
use prime_roles::ScriptedExecutor;

/// A generator seeded by the turn, so that every run of a test draws the same numbers.
fn draw_of(trajectory: &Trajectory, line: &str, salt: u64) -> TaskRng {
    let mut hasher = DefaultHasher::new();
    trajectory.stack.lines().for_each(|line| line.hash(&mut hasher));
    (trajectory.counts.proposals, trajectory.counts.pops, line, salt).hash(&mut hasher);
    TaskRng::new(hasher.finish())
}

/// Counts an executor's proposals.
#[derive(Default)]
struct Probe {
    started: AtomicU64,
    completed: AtomicU64,
}

impl Probe {
    /// Proposals that were started, and how many of them were cancelled.
    fn started_and_cancelled(&self) -> (u64, u64) {
        let started = self.started.load(Ordering::SeqCst);
        (started, started - self.completed.load(Ordering::SeqCst))
    }
}

/// The usage of one proposal.
const COST: Usage = Usage::new(10, 1);

/// A slow executor that records all that it is shown.
struct Slow<E> {
    inner: E,
    /// Milliseconds of virtual time, minimum and maximum.
    millis: (usize, usize),
    probe: Arc<Probe>,
}

/// Everything that an executor can see of a trajectory.
fn shown(trajectory: &Trajectory, sampling: Sampling) -> String {
    let lines: Vec<_> = trajectory.stack.lines().collect();
    let (feedback, counts) = (&trajectory.feedback, trajectory.counts);
    let (state, notes) = (trajectory.machine.state(), trajectory.stack.notes());
    format!(
        "{lines:?} {state} {:?} {feedback:?} {counts:?} {notes:?} {sampling:?}",
        trajectory.machine.choices()
    )
}

#[async_trait]
impl<E: Executor> AsyncExecutor for Slow<E> {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        self.probe.started.fetch_add(1, Ordering::SeqCst);
        let millis = draw_of(trajectory, "", sampling.seed).size(self.millis.0, self.millis.1);

        tokio::time::sleep(Duration::from_millis(millis as u64)).await;
        let proposal = self.inner.propose(trajectory, sampling).await?;
        self.probe.completed.fetch_add(1, Ordering::SeqCst);
        Ok(Proposal { derivation: shown(trajectory, sampling), usage: COST, ..proposal })
    }
}

/// A slow verifier with random verdicts.
#[derive(Clone, Copy)]
struct Moody {
    millis: (usize, usize),
    /// Percentages of tolerable and of intolerable verdicts; the other steps are judged by the
    /// rules.
    tolerable: u64,
    intolerable: u64,
}

#[async_trait]
impl AsyncVerifier for Moody {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::rules(Kinds::ALL)
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let mut rng = draw_of(trajectory, line, 1);
        tokio::time::sleep(Duration::from_millis(rng.size(self.millis.0, self.millis.1) as u64))
            .await;

        let mood = rng.below(100);
        if mood >= self.tolerable + self.intolerable {
            return rules().judge(trajectory, line).await;
        }

        let tenths = if mood < self.tolerable { 2 } else { 6 };
        let feedback = Some(format!("mood {mood} at {line}"));
        Ok(Verdict { score: Score::from_tenths(tenths), feedback, ..Verdict::default() })
    }
}

/// Agents whose cell's clock is paused.
fn stopped<E: Executor + 'static, V: Verifier + 'static>(
    executor: impl Fn() -> E + Send + Sync + 'static,
    verifier: impl Fn() -> V + Send + Sync + 'static,
) -> (Arc<dyn Agents>, Made) {
    let make = move |made| {
        // The first one is made on the cell's thread, before anything waits.
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
    /// The steps of each trajectory, formatted.
    steps: BTreeMap<(u32, u32), Vec<String>>,
    /// All steps, in order.
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
            Event::Voted { round, winner, agreement } => {
                traced.votes.push(format!("{round} {winner:?} {agreement}"));
            }
            Event::Mishap { .. } | Event::TurnFailed { .. } => traced.mishaps += 1,
            Event::Started { .. }
            | Event::Waiting { .. }
            | Event::Chosen { .. }
            | Event::Stopped { .. }
            | Event::Finished(_) => {}
        }
    }
}

/// Runs with these agents.
fn traced(
    agents: Arc<dyn Agents>,
    problem: &Arc<dyn Problem>,
    plan: RunPlan,
    seed: u64,
) -> (Traced, Outcome) {
    let trace = Trace::default();

    let mut submission =
        Submission { observer: Arc::new(trace.clone()), ..submission(problem, plan) };
    submission.sampling.seed = seed;

    let outcome = in_system(async { outcome_of(shared(agents).submit(submission)).await });
    (trace.get(), outcome)
}

/// A slow executor that errs, with its probe.
fn erring(
    error_rate: f64,
    millis: (usize, usize),
) -> (impl Fn() -> Slow<ScriptedExecutor> + Clone, Arc<Probe>) {
    let probe = Arc::<Probe>::default();

    let kept = Arc::clone(&probe);
    (
        move || Slow {
            inner: ScriptedExecutor::new(error_rate),
            millis,
            probe: Arc::clone(&probe),
        },
        kept,
    )
}
