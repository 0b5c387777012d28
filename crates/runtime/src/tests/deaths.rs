//! Agents that die: they are replaced, and no turn is lost.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use futures::future::join_all;
use tokio::sync::{Notify, mpsc};

use super::*;
use prime_protocol::Ending;
use prime_roles::ScriptedExecutor;

/// Panics at every nth call of all agents that share it, but only once per turn: calls may come in
/// a rhythm, and a turn that is hit five times fails rightly.
#[derive(Clone)]
struct PanicsAtEvery {
    nth: u64,
    calls: Arc<AtomicU64>,
    /// Hits by turn, which is known by its trajectory's address and its number of proposals.
    hits: Arc<Mutex<HashMap<(usize, u64), u32>>>,
}

impl PanicsAtEvery {
    fn new(nth: u64) -> Self {
        Self { nth, calls: Arc::default(), hits: Arc::default() }
    }
}

#[async_trait]
impl Before for PanicsAtEvery {
    async fn before(&self, _: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if !call.is_multiple_of(self.nth) {
            return Ok(());
        }

        let turn = (std::ptr::from_ref(trajectory).addr(), trajectory.counts.proposals);

        let hits = {
            let mut hits = self.hits.lock().unwrap_or_else(PoisonError::into_inner);
            let hits = hits.entry(turn).or_insert(0);
            *hits += 1;
            *hits
        };

        assert!(hits > 1, "{PLANNED} at call {call}");
        Ok(())
    }
}

/// Runs all tasks concurrently with agents some of which die; every run must be verified.
fn survives(placement: Placement, agents: impl Fn() -> (Arc<dyn Agents>, Made)) -> [u64; 3] {
    in_system(async {
        let (agents, made) = agents();
        let runtime = Runtime::start(&runtime_plan(placement), agents);

        let problems: Vec<_> =
            tasks::all().map(|task| task.generate(Difficulty::Easy, 11)).collect();

        let mut handles: Vec<_> =
            problems.iter().map(|problem| runtime.submit(submission(problem, plan(4)))).collect();
        let outcomes = join_all(handles.iter_mut().map(RunHandle::outcome)).await;

        for (problem, outcome) in problems.iter().zip(outcomes) {
            let outcome = outcome.expect("the Supervisor lives");
            let slug = problem.spec().slug;
            assert!(outcome.is_verified(), "{slug} {placement:?}: {:?}", outcome.ending);
            assert_eq!(
                outcome.answer.as_ref(),
                Some(&problem.reference().answer),
                "{slug} {placement:?}"
            );
        }
        made.counts()
    })
}

#[test]
fn a_role_that_panics_at_one_turn_in_twenty_loses_no_run() {
    let scripted = || ScriptedExecutor::new(0.1);

    for placement in [Placement::Shared, Placement::Own] {
        let executor = PanicsAtEvery::new(20);
        let (before, counter) = (executor.clone(), Arc::clone(&executor.calls));
        let made = survives(placement, || {
            let before = before.clone();
            checked(move |_| After(before.clone(), scripted()))
        });

        let panics = counter.load(Ordering::SeqCst) / 20;
        assert!(panics > 5 && made[0] > 5, "{panics} panics, {} executors", made[0]);
        assert!(made[0] <= panics + 1, "a new one for each that died, and no more");
        assert_eq!(made[1..], [1, 1], "the other agents survive");

        let verifier = PanicsAtEvery::new(20);
        let made = survives(placement, || {
            let before = verifier.clone();
            agents(move |_| scripted(), move |_| After(before.clone(), rules()), |_| threshold())
        });
        assert!(made[1] > 5 && made[0] == 1 && made[2] == 1, "{made:?}");

        let coordinator = PanicsAtEvery::new(20);
        let made = survives(placement, || {
            let before = coordinator.clone();
            agents(move |_| scripted(), |_| rules(), move |_| After(before.clone(), threshold()))
        });
        assert!(made[2] > 5 && made[0] == 1 && made[1] == 1, "{made:?}");
    }
}

#[test]
fn all_roles_may_die_together() {
    for placement in [Placement::Shared, Placement::Own] {
        let (e, v, c) = (PanicsAtEvery::new(19), PanicsAtEvery::new(17), PanicsAtEvery::new(13));

        let made = survives(placement, || {
            let (e, v, c) = (e.clone(), v.clone(), c.clone());
            agents(
                move |_| After(e.clone(), ScriptedExecutor::new(0.1)),
                move |_| After(v.clone(), rules()),
                move |_| After(c.clone(), threshold()),
            )
        });
        assert!(made.iter().all(|made| *made > 5), "{made:?}");
    }
}

/// The first agent holds every turn forever, except for one that panics when told to.
struct Holds {
    is_first: bool,
    /// Receives a message for each turn that is held.
    held: mpsc::UnboundedSender<()>,
    is_victim_chosen: Arc<AtomicBool>,
    die: Arc<Notify>,
}

#[async_trait]
impl Before for Holds {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        if !self.is_first {
            return Ok(());
        }
        self.held.send(()).expect("the test listens");
        if self.is_victim_chosen.swap(true, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.die.notified().await;
        panic!("{PLANNED} with turns in flight");
    }
}

const HELD: u32 = 32;

/// A run in which one role's agent holds all turns and then dies.
fn turns_in_flight_go_on(placement: Placement, role: usize) {
    in_system(async {
        let (held, mut holding) = mpsc::unbounded_channel();
        let (die, is_victim_chosen) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let holds = {
            let die = Arc::clone(&die);
            move |of: usize, count: u64| Holds {
                is_first: of == role && count == 0,
                held: held.clone(),
                is_victim_chosen: Arc::clone(&is_victim_chosen),
                die: Arc::clone(&die),
            }
        };

        let (e, v, c) = (holds.clone(), holds.clone(), holds);
        let (agents, made) = agents(
            move |count| reference_after(e(0, count)),
            move |count| After(v(1, count), rules()),
            move |count| After(c(2, count), threshold()),
        );

        let runtime = Runtime::start(&runtime_plan(placement), agents);

        let problem = problem("bubble-sort");
        let recorder = Recorder::default();
        let plan = RunPlan { confidence: 1.0, ..plan(HELD) };
        let handle = runtime.submit(Submission {
            observer: Arc::new(recorder.clone()),
            ..submission(&problem, plan)
        });

        for _ in 0..HELD {
            holding.recv().await.expect("held");
        }
        assert!(recorder.seen().steps.is_empty());

        die.notify_one();
        let outcome = outcome_of(handle).await;

        assert_eq!(
            (outcome.ending, outcome.votes[0].votes),
            (Ending::Agreed, HELD),
            "no trajectory was lost"
        );
        assert_eq!(
            outcome.proposals,
            u64::from(HELD) * problem.reference().steps,
            "and none was duplicated"
        );

        let mut expected = [1; 3];
        expected[role] = 2;
        assert_eq!(made.counts(), expected);
    });
}

#[test]
fn turns_in_flight_are_sent_again_when_their_agent_dies() {
    for placement in [Placement::Shared, Placement::Own] {
        for role in 0..3 {
            turns_in_flight_go_on(placement, role);
        }
    }
}

/// Panics at the first turn that it sees, whenever that turn comes again.
#[derive(Clone, Default)]
struct Poisoned(Arc<OnceLock<u64>>);

#[async_trait]
impl Before for Poisoned {
    async fn before(&self, seed: u64, _: &Trajectory) -> Result<(), AgentError> {
        assert!(*self.0.get_or_init(|| seed) != seed, "{PLANNED}: poison");
        Ok(())
    }
}

#[test]
fn a_turn_that_kills_every_executor_fails_its_trajectory_only() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let poison = Poisoned::default();
            let (agents, made) = checked(move |_| reference_after(poison.clone()));
            let runtime = Runtime::start(&runtime_plan(placement), agents);

            let recorder = Recorder::default();
            let plan = RunPlan { confidence: 1.0, ..plan(3) };
            let submission = Submission {
                observer: Arc::new(recorder.clone()),
                ..submission(&problem("long-division"), plan)
            };
            let outcome = outcome_of(runtime.submit(submission)).await;

            assert_eq!(
                (&outcome.ending, outcome.is_verified(), outcome.rounds),
                (&Ending::Agreed, true, 2)
            );

            let seen = recorder.seen();
            let failed: Vec<_> =
                seen.ends.iter().filter(|(_, end)| matches!(end, End::Failed(_))).collect();
            let [(id, End::Failed(reason))] = failed[..] else { panic!("{:?}", seen.ends) };
            assert_eq!(id.round, 1);
            assert!(reason.contains("executor") && reason.contains("poison"), "{reason}");

            assert_eq!(made.counts(), [6, 1, 1], "five mishaps, five replacements");
        });
    }
}
