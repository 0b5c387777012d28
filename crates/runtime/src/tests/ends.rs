//! Errors, cancellation and limits: runs that end without a vote.

use tokio::sync::mpsc;

use super::*;
use prime_protocol::Ending;

/// Fails the first calls.
#[derive(Clone)]
struct Fails {
    calls: Arc<AtomicU64>,
    /// How many calls fail.
    first: u64,
    is_transient: bool,
}

impl Fails {
    fn new(first: u64, is_transient: bool) -> Self {
        Self { calls: Arc::default(), first, is_transient }
    }
}

#[async_trait]
impl Before for Fails {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) >= self.first {
            return Ok(());
        }

        let failure = if self.is_transient { Failure::Overloaded } else { Failure::Refused };
        Err(AgentError::new("executor `test`", failure, "out of paper"))
    }
}

/// The outcome of a run whose executor fails like this, with the events of the run.
fn run_with(fails: &Fails, fanout: u32) -> (Outcome, Recorder) {
    let before = fails.clone();
    in_system(async {
        let (agents, made) = checked(move |_| reference_after(before.clone()));

        let recorder = Recorder::default();
        let submission = Submission {
            observer: Arc::new(recorder.clone()),
            ..submission(&problem("bubble-sort"), plan(fanout))
        };

        let outcome = outcome_of(shared(agents).submit(submission)).await;
        assert!(made.counts().iter().all(|made| *made <= 1), "an error does not kill an agent");
        (outcome, recorder)
    })
}

#[test]
fn a_permanent_error_ends_its_trajectory_immediately() {
    let fails = Fails::new(u64::MAX, false);
    let (outcome, recorder) = run_with(&fails, 3);

    let Ending::AgentFailed(reason) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!(reason, "executor `test`: out of paper");
    assert_eq!(fails.calls.load(Ordering::SeqCst), 3, "each trajectory asked once");
    assert_eq!((outcome.rounds, recorder.seen().ends.len()), (1, 3));

    let (outcome, recorder) = run_with(&Fails::new(1, false), 3);
    assert!(outcome.is_verified(), "the other trajectories answer");
    assert_eq!(
        recorder.seen().ends.iter().filter(|(_, end)| matches!(end, End::Failed(_))).count(),
        1
    );
}

#[test]
fn a_transient_error_is_retried_a_few_times() {
    let fails = Fails::new(u64::MAX, true);
    let (outcome, _) = run_with(&fails, 3);
    assert!(matches!(outcome.ending, Ending::AgentFailed(_)), "{:?}", outcome.ending);
    assert_eq!(fails.calls.load(Ordering::SeqCst), 3 * 5, "each trajectory asked five times");

    let fails = Fails::new(4, true);
    let (outcome, recorder) = run_with(&fails, 1);
    assert!(outcome.is_verified(), "the fifth call succeeds");
    assert_eq!(fails.calls.load(Ordering::SeqCst), outcome.proposals + 4);
    assert_eq!(recorder.seen().steps.len() as u64, outcome.proposals, "failed calls are no steps");
}

/// Lets one trajectory through; every other one waits forever at its start.
#[derive(Clone, Default)]
struct LetsOneThrough(Arc<AtomicU64>);

#[async_trait]
impl Before for LetsOneThrough {
    async fn before(&self, _: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        if trajectory.counts.proposals == 0 && self.0.fetch_add(1, Ordering::SeqCst) > 0 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Sends a message when a trajectory has ended.
struct Tells(mpsc::UnboundedSender<()>);

impl Observer for Tells {
    fn observe(&self, event: &Event<'_>) {
        if let Event::TrajectoryEnded { .. } = event {
            // The test may have ended.
            let _ = self.0.send(());
        }
    }
}

#[test]
fn cancelling_ends_a_run_with_the_best_answer_so_far() {
    in_system(async {
        let lets = LetsOneThrough::default();
        let runtime = shared(checked(move |_| reference_after(lets.clone())).0);

        let (tell, mut told) = mpsc::unbounded_channel();
        let problem = problem("long-division");
        let handle = runtime.submit(Submission {
            observer: Arc::new(Tells(tell)),
            ..submission(&problem, plan(4))
        });

        told.recv().await.expect("a trajectory ends");
        handle.cancel();
        handle.cancel();

        let outcome = outcome_of(handle).await;

        assert_eq!(
            (&outcome.ending, outcome.is_verified(), outcome.votes.len()),
            (&Ending::Cancelled, true, 1)
        );
        assert_eq!(outcome.answer, Some(problem.reference().answer));
        assert_eq!((outcome.steps, outcome.votes[0].votes), (problem.reference().steps, 1));
        assert_eq!(runtime.load(), 0);
    });
}

/// Never answers.
struct Silence;

#[async_trait]
impl Before for Silence {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        std::future::pending().await
    }
}

fn silent_runtime(in_flight_max: u32) -> Runtime {
    let plan = RuntimePlan { in_flight_max, ..runtime_plan(Placement::Shared) };
    Runtime::start(&plan, checked(|_| reference_after(Silence)).0)
}

#[test]
fn a_queued_run_can_be_cancelled_and_makes_room() {
    in_system(async {
        let runtime = silent_runtime(4);

        let problem = problem("bubble-sort");
        let [first, second, third] =
            [0, 1, 2].map(|_| runtime.submit(submission(&problem, plan(4))));

        second.cancel();
        let outcome = outcome_of(second).await;
        assert_eq!(
            (outcome.ending, outcome.answer, outcome.proposals),
            (Ending::Cancelled, None, 0)
        );

        assert_eq!(runtime.load(), 2);

        first.cancel();
        outcome_of(first).await;
        third.cancel();
        assert_eq!(outcome_of(third).await.ending, Ending::Cancelled);
        assert_eq!(runtime.load(), 0);
    });
}

#[test]
fn halting_ends_live_and_queued_runs() {
    in_system(async {
        let runtime = silent_runtime(4);
        let problem = problem("bubble-sort");
        let handles: Vec<_> =
            (0..5).map(|_| runtime.submit(submission(&problem, plan(3)))).collect();

        runtime.halt();

        for handle in handles {
            assert_eq!(outcome_of(handle).await.ending, Ending::Cancelled);
        }
        assert_eq!(runtime.load(), 0);
    });
}

/// Pauses the clock of its thread, so that time jumps to the next timer whenever the thread is
/// idle.
struct StopsTheClock;

#[async_trait]
impl Before for StopsTheClock {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        tokio::time::pause();
        std::future::pending().await
    }
}

#[test]
fn the_wall_clock_ends_a_run_whose_executor_never_answers() {
    in_system(async {
        let runtime = shared(checked(|_| reference_after(StopsTheClock)).0);

        let budget = Budget { wall_ms: 86_400_000, ..plan(1).budget };
        let plan = RunPlan { budget, ..plan(1) };

        let outcome = outcome_of(runtime.submit(submission(&problem("bubble-sort"), plan))).await;

        assert_eq!(
            (outcome.ending, outcome.answer, outcome.proposals),
            (Ending::WallMsSpent, None, 0)
        );
    });
}

#[test]
fn the_step_budget_ends_a_run_by_name() {
    in_system(async {
        let lets = LetsOneThrough::default();
        let runtime = shared(checked(move |_| reference_after(lets.clone())).0);

        let budget = Budget { steps: 5, ..plan(1).budget };

        let outcome = outcome_of(
            runtime.submit(submission(&problem("bubble-sort"), RunPlan { budget, ..plan(2) })),
        )
        .await;

        assert_eq!(
            (outcome.is_verified(), outcome.ending, outcome.proposals),
            (false, Ending::StepsSpent, 5)
        );
    });
}

#[test]
fn dropping_a_handle_does_not_end_its_run() {
    in_system(async {
        let runtime = shared(checked(|_| ReferenceExecutor).0);
        let (tell, mut told) = mpsc::unbounded_channel();

        let problem = problem("dfa-simulation");
        drop(runtime.submit(Submission {
            observer: Arc::new(Tells(tell)),
            ..submission(&problem, plan(1))
        }));

        told.recv().await.expect("the run went on");
        assert!(outcome_of(runtime.submit(submission(&problem, plan(1)))).await.is_verified());
        assert_eq!(runtime.load(), 0);
    });
}

/// Claims, before it has written a line, that every line it can write was rejected.
struct Exhausted;

#[async_trait]
impl AsyncExecutor for Exhausted {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        Ok(Proposal { is_exhausted: true, ..Proposal::default() })
    }
}

#[test]
fn an_executor_with_nothing_left_ends_its_trajectory_with_one_proposal() {
    let recorder = Recorder::default();
    let submission = Submission {
        observer: Arc::new(recorder.clone()),
        ..submission(&problem("bubble-sort"), plan(2))
    };

    let outcome = in_system(async {
        let (agents, _) = checked(|_| Exhausted);
        outcome_of(shared(agents).submit(submission)).await
    });

    assert_eq!((outcome.ending, outcome.proposals, outcome.backtracks), (Ending::Exhausted, 2, 2));
    assert!(recorder.seen().ends.iter().all(|(_, end)| *end == End::Exhausted));
}

/// Its derivation reads a value that the state does not have.
struct Lost;

#[async_trait]
impl AsyncExecutor for Lost {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        Ok(Proposal {
            line: "999?".to_owned(),
            unfinished: Some("no `999`".into()),
            ..Proposal::default()
        })
    }
}

#[test]
fn a_read_that_fails_is_a_rejected_proposal_with_the_reason() {
    let recorder = Recorder::default();
    let submission = Submission {
        observer: Arc::new(recorder.clone()),
        ..submission(&problem("introsort"), plan(1))
    };

    let outcome = in_system(async {
        let (agents, _) = checked(|_| Lost);
        outcome_of(shared(agents).submit(submission)).await
    });

    assert!(!outcome.is_verified());
    let seen = recorder.seen();
    assert!(!seen.steps.is_empty());
    for step in &seen.steps {
        assert_eq!(
            (step.feedback.as_deref(), step.decision),
            (Some("no `999`"), Decision::Backtrack)
        );
    }
}
