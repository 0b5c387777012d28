//! The ring with agents that err, panic, refuse, hang or never answer: whatever they do, a run ends
//! as the protocol says.

mod approvals;
mod broken;
mod custom;
mod deaths;
mod ended_turns;
mod ends;
mod hangs;
mod mishaps;
mod own;
mod sets;
mod spans;
mod speculation;
mod storms;
mod whole;
mod writing;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Diversity, Event, Observer, Placement, RestartLimit, RunHandle, RunSampling, Runtime,
    RuntimePlan, Silent, Submission,
};
use prime_bench::tasks::{self, Difficulty, Kinds, Problem, Spec};
use prime_protocol::{
    Budget, Cost, Decision, End, Limits, Outcome, RewardWeights, Role, RunPlan, Score, Strategy,
    Thresholds, Trajectory, TurnId, Verdict, VoteRule,
};
use prime_roles::{
    AgentError, AgentSetId, Agents, AsyncCoordinator, AsyncExecutor, AsyncVerifier, Basis,
    Coordinator, Executor, Failure, Proposal, ReferenceExecutor, RulesVerifier, Ruling, Sampling,
    ThresholdCoordinator, Verifier, next_agent_set_id,
};

/// The longest that a test waits.
const PATIENCE: Duration = Duration::from_mins(10);

/// Prefix of the panics that a test plans; they are not printed.
const PLANNED: &str = "planned panic";

/// Runs `work` within an actix system, with a timeout.
fn in_system<T>(work: impl Future<Output = T>) -> T {
    // Once for all tests: a second hook would wrap the first.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or_default();
            if !text.starts_with(PLANNED) {
                print(info);
            }
        }));
    });

    actix::System::new()
        .block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("the test hangs") })
}

/// One cell with unlimited restarts.
fn runtime_plan(placement: Placement) -> RuntimePlan {
    RuntimePlan {
        cells: 1,
        placement,
        restart_limit: RestartLimit { restarts_max: 1_000_000, window: Duration::from_mins(1) },
        hang_after: None,
        in_flight_max: 1024,
    }
}

/// Limits that never find a trajectory stuck.
const ENDLESS: Limits =
    Limits { repetitions_max: u32::MAX, stuck_after: u32::MAX, ..Limits::DEFAULT };

fn plan(fanout: u32) -> RunPlan {
    RunPlan {
        strategy: Strategy::Iterative,
        vote: VoteRule::Majority,
        early_stop: true,
        adaptive_rounds: true,
        fanout,
        max_rounds: 3,
        confidence: 0.5,
        limits: Limits { attempts_max: 8, pops_max: 5_000, snapshot_every_frames: 64, ..ENDLESS },
        budget: Budget {
            steps: 1 << 22,
            tokens: 0,
            completion_tokens: 0,
            cost: Cost::ZERO,
            wall_ms: u64::MAX,
        },
        weights: RewardWeights { task: 10.0, verify: 1.0, efficiency: 0.5, format: 0.1 },
        basis: Basis::rules(Kinds::ALL),
        locates: false,
        learnt: Vec::new(),
        speculate: false,
    }
}

fn problem(slug: &str) -> Arc<dyn Problem> {
    tasks::find(slug).expect("listed").generate(Difficulty::Easy, 7)
}

fn submission(problem: &Arc<dyn Problem>, plan: RunPlan) -> Submission {
    let sampling =
        RunSampling { temperature: 0.7, top_p: 0.95, seed: 42, diversity: Diversity::default() };
    Submission {
        problem: Arc::clone(problem),
        plan,
        sampling,
        observer: Arc::new(Silent),
        suspended: None,
    }
}

/// The outcome of a run; its runtime must still exist.
async fn outcome_of(mut handle: RunHandle) -> Outcome {
    handle.outcome().await.expect("the Supervisor lives")
}

fn rules() -> RulesVerifier {
    RulesVerifier::new(Kinds::ALL)
}

fn threshold() -> ThresholdCoordinator {
    ThresholdCoordinator(Thresholds {
        soft: Score::from_tenths(3),
        hard: Score::from_tenths(3),
        retries_max: 2,
    })
}

/// Counts the agents made of each role.
#[derive(Clone, Default)]
struct Made(Arc<[AtomicU64; 3]>);

impl Made {
    fn counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|role: usize| self.0[role].load(Ordering::SeqCst))
    }

    /// Counts one more of this role, and returns its index from 0.
    fn next(&self, role: usize) -> u64 {
        self.0[role].fetch_add(1, Ordering::SeqCst)
    }
}

type Make<A> = Box<dyn Fn() -> Arc<A> + Send + Sync>;

/// Agents from functions.
struct TestAgents {
    id: AgentSetId,
    executor: Make<dyn Executor>,
    verifier: Make<dyn Verifier>,
    coordinator: Make<dyn Coordinator>,
}

impl Agents for TestAgents {
    fn id(&self) -> AgentSetId {
        self.id
    }

    fn name(&self, _: Role) -> &'static str {
        "test"
    }

    fn executor(&self) -> Arc<dyn Executor> {
        (self.executor)()
    }

    fn verifier(&self) -> Arc<dyn Verifier> {
        (self.verifier)()
    }

    fn coordinator(&self) -> Arc<dyn Coordinator> {
        (self.coordinator)()
    }
}

/// Agents made by these functions, which get the number of earlier agents of the role.
fn agents<E: Executor + 'static, V: Verifier + 'static, C: Coordinator + 'static>(
    executor: impl Fn(u64) -> E + Send + Sync + 'static,
    verifier: impl Fn(u64) -> V + Send + Sync + 'static,
    coordinator: impl Fn(u64) -> C + Send + Sync + 'static,
) -> (Arc<dyn Agents>, Made) {
    let made = Made::default();
    let [one, two, three] = [made.clone(), made.clone(), made.clone()];

    let set = TestAgents {
        id: next_agent_set_id(),
        executor: Box::new(move || Arc::new(executor(one.next(0)))),
        verifier: Box::new(move || Arc::new(verifier(two.next(1)))),
        coordinator: Box::new(move || Arc::new(coordinator(three.next(2)))),
    };
    (Arc::new(set), made)
}

/// An executor, a verifier by rules of every kind, and a coordinator by thresholds.
fn checked<E: Executor + 'static>(
    executor: impl Fn(u64) -> E + Send + Sync + 'static,
) -> (Arc<dyn Agents>, Made) {
    agents(executor, |_| rules(), |_| threshold())
}

/// Does something before an agent's work: panics, waits, counts.
#[async_trait]
trait Before: Send + Sync {
    async fn before(&self, seed: u64, trajectory: &Trajectory) -> Result<(), AgentError>;
}

/// An agent that works after a [`Before`].
struct After<B, A>(B, A);

#[async_trait]
impl<B: Before, A: Executor> AsyncExecutor for After<B, A> {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        self.0.before(sampling.seed, trajectory).await?;
        self.1.propose(trajectory, sampling).await
    }
}

#[async_trait]
impl<B: Before, A: Verifier> AsyncVerifier for After<B, A> {
    fn basis(&self, task: &Spec) -> Basis {
        self.1.basis(task)
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        self.0.before(0, trajectory).await?;
        self.1.judge(trajectory, line).await
    }
}

#[async_trait]
impl<B: Before, A: Coordinator> AsyncCoordinator for After<B, A> {
    async fn decide(
        &self,
        trajectory: &Trajectory,
        line: &str,
        verdict: &Verdict,
    ) -> Result<Ruling, AgentError> {
        self.0.before(0, trajectory).await?;
        self.1.decide(trajectory, line, verdict).await
    }
}

/// A reference executor after a [`Before`].
fn reference_after<B: Before>(before: B) -> After<B, ReferenceExecutor> {
    After(before, ReferenceExecutor)
}

/// A step as an observer saw it.
#[derive(Clone, Debug, PartialEq)]
struct SeenStep {
    id: TurnId,
    depth: usize,
    line: String,
    feedback: Option<String>,
    decision: Decision,
}

/// Everything that an observer saw.
#[derive(Default)]
struct Seen {
    steps: Vec<SeenStep>,
    ends: Vec<(TurnId, End)>,
    rounds: Vec<u32>,
    finished: usize,
}

/// Records the events of a run.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Seen>>);

impl Recorder {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        let mut seen = self.seen();
        match event {
            Event::Step { id, depth, proposal, verdict, decision, .. } => {
                let (line, feedback) = (proposal.line.clone(), verdict.feedback.clone());
                seen.steps.push(SeenStep {
                    id: *id,
                    depth: *depth,
                    line,
                    feedback,
                    decision: *decision,
                });
            }
            Event::TrajectoryEnded { id, end, .. } => seen.ends.push((*id, (*end).clone())),
            Event::Voted { round, .. } => seen.rounds.push(*round),
            Event::Finished(_) => seen.finished += 1,
            Event::Started { .. }
            | Event::Waiting { .. }
            | Event::Chosen { .. }
            | Event::Mishap { .. }
            | Event::TurnFailed { .. }
            | Event::Stopped { .. } => {}
        }
    }
}

/// Starts a runtime of one cell with its actors on one thread.
fn shared(agents: Arc<dyn Agents>) -> Runtime {
    Runtime::start(&runtime_plan(Placement::Shared), agents)
}
