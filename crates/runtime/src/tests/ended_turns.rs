//! Turns whose agents never answer: whatever ends their run or their round drops their futures, and
//! with them processes, connections and sequences.

use futures::FutureExt;
use tokio::sync::{oneshot, watch};

use super::*;
use crate::run_table::{Entry, RunTable};
use crate::submission::Load;
use prime_protocol::Ending;

/// Futures of agents: how many were made, and how many still exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    begun: u64,
    live: u64,
}

/// Counts the futures that hold one of its guards.
#[derive(Clone, Default)]
struct Futures(Arc<watch::Sender<Count>>);

struct Guard(Futures);

impl Futures {
    fn guard(&self) -> Guard {
        self.0.send_modify(|count| {
            count.begun += 1;
            count.live += 1;
        });
        Guard(self.clone())
    }

    /// Waits until `begun` futures were made and `live` of them remain.
    async fn until(&self, begun: u64, live: u64) {
        let wanted = Count { begun, live };
        self.0.subscribe().wait_for(|count| *count == wanted).await.expect("it is held here");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.live -= 1);
    }
}

/// The first `hanging` calls never return.
#[derive(Clone)]
struct Hangs {
    hanging: u64,
    calls: Arc<AtomicU64>,
    futures: Futures,
}

impl Hangs {
    fn new(hanging: u64, futures: &Futures) -> Self {
        Self { hanging, calls: Arc::default(), futures: futures.clone() }
    }
}

#[async_trait]
impl Before for Hangs {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < self.hanging {
            let _guard = self.futures.guard();
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Agents; the one of this role hangs at its first calls.
fn hanging(role: Role, hanging: u64, futures: &Futures) -> (Arc<dyn Agents>, Made) {
    let of = |other| Hangs::new(if role == other { hanging } else { 0 }, futures);
    let [one, two, three] = Role::ALL.map(of);
    agents(
        move |_| reference_after(one.clone()),
        move |_| After(two.clone(), rules()),
        move |_| After(three.clone(), threshold()),
    )
}

/// Counts the failures of agents in a run.
#[derive(Clone, Default)]
struct Failures(Arc<AtomicU64>);

impl Observer for Failures {
    fn observe(&self, event: &Event<'_>) {
        if matches!(event, Event::Mishap { .. } | Event::TurnFailed { .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

const TURNS: u32 = 4;

/// Ends a run all of whose turns hang at this role.
fn ends(placement: Placement, role: Role, end: impl Fn(&Runtime, &RunHandle)) {
    in_system(async {
        let (futures, failures) = (Futures::default(), Failures::default());
        let (agents, made) = hanging(role, TURNS.into(), &futures);
        let runtime = Runtime::start(&runtime_plan(placement), agents);

        let problem = problem("bubble-sort");
        let handle = runtime.submit(Submission {
            observer: Arc::new(failures.clone()),
            ..submission(&problem, plan(TURNS))
        });
        futures.until(TURNS.into(), TURNS.into()).await;

        end(&runtime, &handle);
        assert_eq!(outcome_of(handle).await.ending, Ending::Cancelled, "{placement:?} {role}");
        futures.until(TURNS.into(), 0).await;

        let next = outcome_of(runtime.submit(submission(&problem, plan(2)))).await;
        assert!(next.is_verified(), "{placement:?} {role}: {:?}", next.ending);
        assert_eq!(made.counts(), [1; 3], "{placement:?} {role}: no agent has died");
        assert_eq!(failures.0.load(Ordering::SeqCst), 0, "{placement:?} {role}: none has failed");
    });
}

#[test]
fn cancelling_a_run_drops_its_turns_at_every_role() {
    for placement in [Placement::Shared, Placement::Own] {
        for role in Role::ALL {
            ends(placement, role, |_, run| run.cancel());
        }
    }
}

#[test]
fn halting_drops_the_turns_of_all_runs() {
    for placement in [Placement::Shared, Placement::Own] {
        ends(placement, Role::Executor, |runtime, _| runtime.halt());
    }
}

/// Pauses the clock of its thread: time jumps to the deadline once all turns hang.
struct StopsTheClock(Futures);

#[async_trait]
impl Before for StopsTheClock {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        let _guard = self.0.guard();
        // The first future stops it for all.
        if self.0.0.borrow().begun == 1 {
            tokio::time::pause();
        }
        std::future::pending().await
    }
}

#[test]
fn the_wall_clock_drops_the_turns_of_its_run() {
    in_system(async {
        let futures = Futures::default();
        let executors = futures.clone();
        let runtime = shared(checked(move |_| reference_after(StopsTheClock(executors.clone()))).0);

        let budget = Budget { wall_ms: 86_400_000, ..plan(1).budget };
        let plan = RunPlan { budget, ..plan(TURNS) };
        let outcome = outcome_of(runtime.submit(submission(&problem("bubble-sort"), plan))).await;

        assert_eq!(outcome.ending, Ending::WallMsSpent);
        futures.until(TURNS.into(), 0).await;
    });
}

#[test]
fn another_limit_drops_the_turns_of_its_run() {
    in_system(async {
        let futures = Futures::default();
        let (agents, _) = hanging(Role::Executor, u64::from(TURNS) - 1, &futures);

        // The trajectory that gets on spends the budget.
        let budget = Budget { steps: 5, ..plan(1).budget };
        let plan = RunPlan { budget, ..plan(TURNS) };
        let runtime = shared(agents);
        let outcome = outcome_of(runtime.submit(submission(&problem("bubble-sort"), plan))).await;

        assert_eq!(outcome.ending, Ending::StepsSpent);
        futures.until(u64::from(TURNS) - 1, 0).await;
    });
}

#[test]
fn a_vote_that_is_decided_drops_the_turns_that_it_does_not_need() {
    in_system(async {
        let futures = Futures::default();
        let (agents, made) = hanging(Role::Executor, u64::from(TURNS) - 1, &futures);
        let runtime = shared(agents);

        // The first clean answer is the best there can be.
        let plan = RunPlan { strategy: Strategy::BestOfN, confidence: 0.0, ..plan(TURNS) };
        let outcome = outcome_of(runtime.submit(submission(&problem("bubble-sort"), plan))).await;

        assert!(outcome.is_verified(), "{:?}", outcome.ending);
        futures.until(u64::from(TURNS) - 1, 0).await;
        assert_eq!(made.counts(), [1; 3]);
    });
}

/// In the first round all trajectories but one hang; those of the next wait until they are gone.
#[derive(Clone)]
struct WaitsForTheOthers(Hangs);

#[async_trait]
impl Before for WaitsForTheOthers {
    async fn before(&self, seed: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        if trajectory.counts.proposals > 0 {
            return Ok(());
        }

        let is_next_round = self.0.calls.load(Ordering::SeqCst) >= u64::from(TURNS);
        self.0.before(seed, trajectory).await?;
        if is_next_round {
            self.0.futures.until(u64::from(TURNS) - 1, 0).await;
        }
        Ok(())
    }
}

#[test]
fn the_end_of_a_round_drops_its_turns_although_the_run_goes_on() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let futures = Futures::default();
            let waits = WaitsForTheOthers(Hangs::new(u64::from(TURNS) - 1, &futures));
            let (agents, _) = checked(move |_| reference_after(waits.clone()));
            let runtime = Runtime::start(&runtime_plan(placement), agents);

            let plan = RunPlan {
                strategy: Strategy::BestOfN,
                adaptive_rounds: false,
                max_rounds: 2,
                ..plan(TURNS)
            };
            let problem = problem("bubble-sort");
            let outcome = outcome_of(runtime.submit(submission(&problem, plan))).await;
            assert_eq!((outcome.is_verified(), outcome.rounds), (true, 2), "{:?}", outcome.ending);
        });
    }
}

/// Answers the first call after a while, and no other.
#[derive(Clone)]
struct AnswersOnce(Hangs);

#[async_trait]
impl Before for AnswersOnce {
    async fn before(&self, seed: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        if self.0.calls.load(Ordering::SeqCst) > 0 {
            return self.0.before(seed, trajectory).await;
        }
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(())
    }
}

#[test]
fn proposals_that_were_started_early_end_with_their_run() {
    in_system(async {
        let futures = Futures::default();
        let early = AnswersOnce(Hangs::new(u64::MAX, &futures));
        let judging = Hangs::new(u64::MAX, &futures);
        let (agents, _) = agents(
            move |_| reference_after(early.clone()),
            move |_| After(judging.clone(), rules()),
            |_| threshold(),
        );
        let runtime = shared(agents);

        let plan = RunPlan { speculate: true, ..plan(1) };
        let handle = runtime.submit(submission(&problem("bubble-sort"), plan));
        // The verdict on the first step, and the proposal of the second.
        futures.until(2, 2).await;

        handle.cancel();
        assert_eq!(outcome_of(handle).await.ending, Ending::Cancelled);
        futures.until(2, 0).await;
    });
}

#[test]
fn a_turn_that_arrives_after_its_round_or_its_run_does_not_wait() {
    let table = RunTable::default();
    let (reply, outcome) = oneshot::channel();
    let (agents, _) = checked(|_| ReferenceExecutor);
    let submission = submission(&problem("bubble-sort"), plan(1));
    table.insert(1, Entry::new(submission, agents, reply, Load::on(&Arc::default())));

    let first = table.round_over(1, 1).expect("it is open");
    let again = table.round_over(1, 1).expect("it is open");
    assert!(first.clone().now_or_never().is_none());

    table.close_round(1, 1);
    assert!(first.now_or_never().is_some() && again.now_or_never().is_some());
    assert!(table.round_over(1, 1).is_none(), "it is over");

    let second = table.round_over(1, 2).expect("it is open");
    assert!(second.clone().now_or_never().is_none());

    // Taking the run out of the table ends the waiting: a Supervisor, the watchdog or the end does.
    table.close();
    assert!(second.now_or_never().is_some() && table.round_over(1, 2).is_none());
    assert!(outcome.now_or_never().expect("dropped").is_err());
}
