//! Agents that block their thread: they are found, their runs end by name, and all others are
//! served.

use crossbeam_channel::{Receiver, bounded};
use tokio::sync::mpsc;

use super::*;
use crate::Hangs;
use prime_protocol::Ending;
use prime_roles::AgentReply;
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(30);

/// Blocks the thread of the first executor until it is told to continue, or nobody can tell it any
/// more.
struct Blocking {
    is_first: bool,
    blocked: mpsc::UnboundedSender<()>,
    go_on: Receiver<()>,
}

impl Executor for Blocking {
    fn propose<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        sampling: Sampling,
    ) -> AgentReply<'a, Proposal> {
        if self.is_first {
            // The test may have ended.
            let _ = self.blocked.send(());
            let _ = self.go_on.recv();
        }
        ReferenceExecutor.propose(trajectory, sampling)
    }
}

/// A runtime whose first executor blocks, with the means to hear that it does and to release it.
fn blocking(
    placement: Placement,
    cells: usize,
) -> (Runtime, mpsc::UnboundedReceiver<()>, crossbeam_channel::Sender<()>) {
    let (blocked, is_blocked) = mpsc::unbounded_channel();

    let (tell, go_on) = bounded(0);
    let (agents, _) = checked(move |count| Blocking {
        is_first: count == 0,
        blocked: blocked.clone(),
        go_on: go_on.clone(),
    });

    // The tests look themselves, with a clock of their own.
    let plan = RuntimePlan { cells, hang_after: None, ..runtime_plan(placement) };
    (Runtime::start(&plan, agents), is_blocked, tell)
}

fn within(wall: Duration) -> RunPlan {
    let wall_ms = u64::try_from(wall.as_millis()).expect("short");
    RunPlan { budget: Budget { wall_ms, ..plan(2).budget }, ..plan(2) }
}

/// Looks at ever later times until the hangs are as wanted: a look skips a cell whose Supervisor is
/// at work.
async fn look_until(runtime: &Runtime, mut at: Instant, wanted: Hangs) {
    loop {
        runtime.cells.look(at, LIMIT);
        if runtime.hangs() == wanted {
            return;
        }
        at += LIMIT;
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_run_whose_agent_hangs_ends_by_name_and_later_runs_are_served() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (runtime, mut is_blocked, tell) = blocking(placement, 1);
            let (recorder, problem) = (Recorder::default(), problem("bubble-sort"));
            let held_up = Submission {
                observer: Arc::new(recorder.clone()),
                ..submission(&problem, within(Duration::from_mins(10)))
            };
            let mut held_up = runtime.submit(held_up);

            is_blocked.recv().await.expect("it blocks");

            let start = Instant::now();
            runtime.cells.look(start, LIMIT);
            runtime.cells.look(start + LIMIT / 2, LIMIT);
            assert_eq!(runtime.hangs(), Hangs::default(), "{placement:?}: it may still be at work");
            runtime.cells.look(start + LIMIT, LIMIT);
            runtime.cells.look(start + 2 * LIMIT, LIMIT);
            assert_eq!(runtime.hangs(), Hangs { now: 1, total: 1 }, "{placement:?}");
            assert!(
                outcome_of(runtime.submit(submission(&problem, plan(4)))).await.is_verified(),
                "{placement:?}: replaced"
            );

            assert_eq!(recorder.seen().finished, 0, "{placement:?}: its time is not up");

            // A look does nothing while the Supervisor observes an event, so one may not be enough.
            let outcome = loop {
                runtime.cells.look(start + Duration::from_mins(11), LIMIT);
                tokio::select! {
                    biased;
                    outcome = held_up.outcome() => break outcome.expect("it ends"),
                    () = tokio::task::yield_now() => {}
                }
            };

            let Ending::AgentFailed(reason) = outcome.ending else {
                panic!("{:?}", outcome.ending)
            };

            assert_eq!(
                reason, "the executor `test` has blocked its thread for 660 s",
                "{placement:?}"
            );
            assert_eq!((runtime.load(), recorder.seen().finished), (0, 1), "{placement:?}");

            drop(tell);
            assert!(outcome_of(runtime.submit(submission(&problem, plan(4)))).await.is_verified());
            assert_eq!(recorder.seen().finished, 1, "{placement:?}: no event after the end");
        });
    }
}

#[test]
fn other_cells_go_on_beside_one_that_is_blocked() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (runtime, mut is_blocked, _tell) = blocking(placement, 2);

            let problem = problem("bubble-sort");
            let mut held_up = runtime.submit(submission(&problem, plan(2)));
            is_blocked.recv().await.expect("it blocks");

            for _ in 0..4 {
                // The cell with fewer runs takes each.
                assert!(
                    outcome_of(runtime.submit(submission(&problem, plan(2)))).await.is_verified()
                );
            }

            let start = Instant::now();
            runtime.cells.look(start, LIMIT);
            runtime.cells.look(start + LIMIT, LIMIT);
            // A Supervisor that is not blocked ends the run itself.
            held_up.cancel();
            runtime.cells.look(start + LIMIT, LIMIT);

            assert_eq!(
                held_up.outcome().await.expect("it ends").ending,
                Ending::Cancelled,
                "{placement:?}"
            );
        });
    }
}

#[test]
fn an_agent_that_returns_finishes_its_run() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (runtime, mut is_blocked, tell) = blocking(placement, 1);
            let problem = problem("bubble-sort");
            let mut late = runtime.submit(submission(&problem, within(Duration::from_mins(10))));

            is_blocked.recv().await.expect("it blocks");

            let start = Instant::now();
            look_until(&runtime, start, Hangs { now: 1, total: 1 }).await;

            drop(tell);
            assert!(late.outcome().await.expect("it ends").is_verified(), "{placement:?}");

            look_until(&runtime, start + LIMIT, Hangs { now: 0, total: 1 }).await;
            assert_eq!(runtime.load(), 0, "{placement:?}");
        });
    }
}

#[test]
fn runs_that_wait_behind_a_blocked_one_move_to_the_new_cell() {
    in_system(async {
        let (blocked, mut is_blocked) = mpsc::unbounded_channel();
        let (_tell, go_on) = bounded(0);
        let (agents, _) = checked(move |count| Blocking {
            is_first: count == 0,
            blocked: blocked.clone(),
            go_on: go_on.clone(),
        });
        let runtime = Runtime::start(
            &RuntimePlan { in_flight_max: 2, ..runtime_plan(Placement::Shared) },
            agents,
        );

        let problem = problem("bubble-sort");
        let handles: Vec<_> =
            (0..4).map(|_| runtime.submit(submission(&problem, plan(2)))).collect();
        is_blocked.recv().await.expect("it blocks");

        let start = Instant::now();
        runtime.cells.look(start, LIMIT);
        runtime.cells.look(start + LIMIT, LIMIT);

        for handle in handles.into_iter().skip(1) {
            assert!(outcome_of(handle).await.is_verified());
        }
        assert_eq!(runtime.load(), 1, "the one that is blocked");
    });
}

#[test]
fn the_watchdog_looks_without_an_arbiter() {
    in_system(async {
        let (blocked, mut is_blocked) = mpsc::unbounded_channel();
        let (_tell, go_on) = bounded(0);
        let (agents, _) = checked(move |count| Blocking {
            is_first: count == 0,
            blocked: blocked.clone(),
            go_on: go_on.clone(),
        });

        let hang_after = Some(Duration::from_millis(1));
        let runtime =
            Runtime::start(&RuntimePlan { hang_after, ..runtime_plan(Placement::Shared) }, agents);

        let problem = problem("bubble-sort");
        let held_up = runtime.submit(submission(&problem, within(Duration::from_millis(1))));

        is_blocked.recv().await.expect("it blocks");

        let Ending::AgentFailed(reason) = outcome_of(held_up).await.ending else {
            panic!("it went on")
        };

        assert!(reason.contains("executor `test`"), "{reason}");
        assert!(outcome_of(runtime.submit(submission(&problem, plan(2)))).await.is_verified());
    });
}
