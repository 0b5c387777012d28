//! Agents that fail at a turn: each mishap is observed once, with its role and kind.

use super::*;
use prime_protocol::{Ending, Role, Usage};
use prime_roles::setback;

/// Fails the first calls only.
struct Fails {
    failure: Failure,
    left: AtomicU64,
}

impl Fails {
    fn new(failure: Failure, times: u64) -> Arc<Self> {
        Arc::new(Self { failure, left: times.into() })
    }
}

#[async_trait]
impl Before for Arc<Fails> {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        let take = |left: u64| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(left) => Err(AgentError::new("test", self.failure, format!("{} to come", left - 1))),
            Err(_) => Ok(()),
        }
    }
}

/// A mishap with its number, or, with `None`, the end of a turn.
type SeenFailure = (Role, Failure, Option<u32>, String);

#[derive(Clone, Default)]
struct Failures(Arc<Mutex<Vec<SeenFailure>>>);

impl Observer for Failures {
    fn observe(&self, event: &Event<'_>) {
        let seen = match event {
            Event::Mishap { role, error, mishaps, .. } => {
                (*role, error.failure, Some(*mishaps), error.reason.clone())
            }
            Event::TurnFailed { role, failure, reason, .. } => {
                (*role, *failure, None, (*reason).to_owned())
            }
            _ => return,
        };
        self.0.lock().unwrap().push(seen);
    }
}

/// Whether the run is verified, and the failures observed.
fn seen(agents: Arc<dyn Agents>) -> (bool, Vec<SeenFailure>) {
    in_system(async {
        let failures = Failures::default();
        let runtime = shared(agents);
        let observer = Arc::new(failures.clone());
        let handle =
            runtime.submit(Submission { observer, ..submission(&problem("bubble-sort"), plan(1)) });

        let is_verified = outcome_of(handle).await.is_verified();
        (is_verified, failures.0.lock().unwrap().clone())
    })
}

/// Agents; the one of this role fails at first.
fn failing(role: Role, failure: Failure, times: u64) -> Arc<dyn Agents> {
    let of = |other| Fails::new(failure, if role == other { times } else { 0 });
    let (one, two, three) = (of(Role::Executor), of(Role::Verifier), of(Role::Coordinator));

    let executor = move |_| reference_after(Arc::clone(&one));
    let (agents, _) = agents(
        executor,
        move |_| After(Arc::clone(&two), rules()),
        move |_| After(Arc::clone(&three), threshold()),
    );
    agents
}

#[test]
fn each_mishap_is_observed_once_with_role_and_kind() {
    for role in Role::ALL {
        for failure in [Failure::Timeout, Failure::Overloaded, Failure::Malformed] {
            let (is_verified, seen) = seen(failing(role, failure, 3));

            let expected = [(1, 2), (2, 1), (3, 0)]
                .map(|(mishaps, left)| (role, failure, Some(mishaps), format!("{left} to come")));

            assert_eq!((is_verified, seen), (true, expected.to_vec()));
        }
    }
}

#[test]
fn the_last_failure_is_observed_as_the_end_of_its_turn() {
    for role in Role::ALL {
        // Transient, but it does not pass.
        let (is_verified, seen) = seen(failing(role, Failure::Timeout, 5));
        assert!(seen.len() >= 5, "{seen:?}");

        let numbers: Vec<_> = seen
            .iter()
            .take(5)
            .map(|(role, failure, mishaps, _)| (*role, *failure, *mishaps))
            .collect();

        assert_eq!(
            numbers,
            [Some(1), Some(2), Some(3), Some(4), None].map(|mishaps| (
                role,
                Failure::Timeout,
                mishaps
            ))
        );
        assert_eq!((is_verified, seen.len()), (false, 5), "its only trajectory has ended");

        // Permanent, so it is not retried.
        let (_, seen) = self::seen(failing(role, Failure::Refused, 1));
        let [(of, failure, None, reason)] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((*of, *failure), (role, Failure::Refused));
        assert!(reason.contains("0 to come"), "{reason}");
    }
}

/// Meets with this at each of its first calls, of which it overcomes as many as it says, and then
/// hangs: the clock jumps to the end of the run.
struct Struggles {
    fails: u64,
    reports: u64,
    calls: AtomicU64,
}

#[async_trait]
impl Before for Arc<Struggles> {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let error = AgentError::new("server", Failure::Malformed, format!("page {call}"));
        if call < self.fails {
            return Err(error);
        }

        if call < self.fails + self.reports {
            setback::report(error);
            tokio::task::yield_now().await;
            return Ok(());
        }

        tokio::time::pause();
        if self.reports == 0 && self.fails == 0 {
            setback::report(error);
        }
        std::future::pending().await
    }
}

/// The last failure in the outcome of a run that its wall clock ends.
fn last_failure(fails: u64, reports: u64) -> Option<String> {
    let struggles = Arc::new(Struggles { fails, reports, calls: AtomicU64::new(0) });
    in_system(async {
        let (agents, _) = checked(move |_| reference_after(Arc::clone(&struggles)));
        let budget = Budget { wall_ms: 86_400_000, ..plan(1).budget };
        let plan = RunPlan { budget, ..plan(1) };

        let outcome =
            outcome_of(shared(agents).submit(submission(&problem("bubble-sort"), plan))).await;
        assert_eq!((outcome.ending, outcome.answer), (Ending::WallMsSpent, None));
        outcome.last_failure
    })
}

#[test]
fn a_limit_that_ends_a_run_after_failures_alone_names_the_last_of_them() {
    let last = "the executor failed last: server: page";
    assert_eq!(last_failure(3, 0), Some(format!("{last} 2")), "its turn is tried again");
    assert_eq!(last_failure(0, 0), Some(format!("{last} 0")), "the agent itself tries again");

    assert_eq!(last_failure(2, 1), None, "a step has succeeded since");
    assert_eq!(last_failure(0, 3), None, "the agent has overcome it");
}

/// An executor whose attempts cost tokens and never give a step.
struct Costly;

#[async_trait]
impl Before for Arc<Costly> {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        let error = AgentError::new("test", Failure::Malformed, "only thinking");
        Err(error.costing(Usage { reasoning: 7, ..Usage::new(10, 7) }))
    }
}

#[test]
fn attempts_that_gave_nothing_are_paid_for() {
    in_system(async {
        let costly = Arc::new(Costly);
        let (agents, _) =
            agents(move |_| reference_after(Arc::clone(&costly)), |_| rules(), |_| threshold());
        let mut plan = plan(1);
        plan.max_rounds = 1;
        let runtime = shared(agents);
        let handle = runtime.submit(submission(&problem("bubble-sort"), plan));

        let outcome = outcome_of(handle).await;
        // Five attempts at the only turn.
        assert_eq!(outcome.usage, Usage { reasoning: 35, ..Usage::new(50, 35) });
    });
}
