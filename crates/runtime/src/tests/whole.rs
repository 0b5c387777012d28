//! Whole runs with agents that err but survive.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;

use super::*;
use prime_protocol::Ending;
use prime_roles::ScriptedExecutor;

fn erring() -> Arc<dyn Agents> {
    checked(|_| ScriptedExecutor::new(0.2)).0
}

#[test]
fn an_executor_that_errs_solves_every_task_in_both_placements() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let runtime = Runtime::start(&runtime_plan(placement), erring());
            for task in tasks::all() {
                let problem = task.generate(Difficulty::Easy, 7);
                let outcome = outcome_of(runtime.submit(submission(&problem, plan(4)))).await;

                let slug = task.spec().slug;
                assert_eq!(
                    (&outcome.ending, outcome.is_verified()),
                    (&Ending::Agreed, true),
                    "{slug} {placement:?}"
                );
                assert_eq!(
                    outcome.answer.as_ref(),
                    Some(&problem.reference().answer),
                    "{slug} {placement:?}"
                );

                assert!(
                    outcome.backtracks > 0,
                    "{slug} {placement:?}: some of the errors were caught"
                );
            }

            assert_eq!(runtime.load(), 0);
        });
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        in_system(async {
            let recorder = Recorder::default();
            let submission = Submission {
                observer: Arc::new(recorder.clone()),
                ..submission(&problem("bubble-sort"), plan(5))
            };

            let outcome = outcome_of(shared(erring()).submit(submission)).await;
            let steps = recorder.seen().steps.clone();
            (outcome.steps, outcome.proposals, outcome.votes, outcome.rewards, steps)
        })
    };
    let (one, two) = (run(), run());
    assert!(one.4.iter().any(|step| step.decision == Decision::Backtrack), "errors were drawn");
    assert_eq!(one, two);
}

#[test]
fn another_seed_gives_other_errors() {
    let errors = |seed| {
        in_system(async {
            let recorder = Recorder::default();
            let mut submission = submission(&problem("bubble-sort"), plan(1));
            (submission.sampling.seed, submission.observer) = (seed, Arc::new(recorder.clone()));
            outcome_of(shared(erring()).submit(submission)).await;

            let steps = recorder.seen().steps.clone();
            steps
                .into_iter()
                .filter(|step| step.decision == Decision::Backtrack)
                .collect::<Vec<_>>()
        })
    };
    assert_ne!(errors(1), errors(2));
}

#[test]
fn an_observer_sees_every_step_and_every_end() {
    in_system(async {
        let recorder = Recorder::default();
        let submission = Submission {
            observer: Arc::new(recorder.clone()),
            ..submission(&problem("n-queens"), plan(6))
        };
        let outcome = outcome_of(shared(erring()).submit(submission)).await;

        let seen = recorder.seen();
        let decided =
            |decision| seen.steps.iter().filter(|step| step.decision == decision).count() as u64;

        assert_eq!(seen.steps.len() as u64, outcome.proposals);
        assert_eq!(decided(Decision::Retry), outcome.retries);
        assert_eq!(decided(Decision::Backtrack), outcome.backtracks);
        assert_eq!(seen.ends.len(), outcome.rewards.len());
        assert_eq!(seen.rounds, (1..=outcome.rounds).collect::<Vec<_>>());
        assert_eq!(seen.finished, 1);

        let answered = seen.ends.iter().filter(|(_, end)| matches!(end, End::Answered(_))).count();
        assert_eq!(
            answered as u64,
            outcome.votes.iter().map(|ballot| u64::from(ballot.votes)).sum::<u64>()
        );

        // Each step of a trajectory builds on those committed before it.
        for trajectory in 0..6 {
            let steps = seen.steps.iter().filter(|step| step.id == TurnId { round: 1, trajectory });
            let mut depth = 0;
            for step in steps {
                assert!(step.depth <= depth, "no step was left out");
                depth = step.depth + usize::from(step.decision == Decision::Proceed);
            }
        }
    });
}

/// Counts concurrent runs.
#[derive(Default)]
struct Together {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Member {
    all: Arc<Together>,
    is_under_way: Mutex<bool>,
}

impl Observer for Member {
    fn observe(&self, event: &Event<'_>) {
        let mut is_under_way = self.is_under_way.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Finished(_) => {
                self.all.now.fetch_sub(1, Ordering::SeqCst);
            }
            _ if !*is_under_way => {
                *is_under_way = true;
                self.all
                    .most
                    .fetch_max(self.all.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

#[test]
fn runs_beyond_a_cells_capacity_wait_and_all_finish() {
    in_system(async {
        let runtime = Runtime::start(
            &RuntimePlan { in_flight_max: 11, ..runtime_plan(Placement::Shared) },
            erring(),
        );

        let all = Arc::new(Together::default());

        let problem = problem("dfa-simulation");
        let mut handles: Vec<_> = (0..60)
            .map(|_| {
                let observer =
                    Arc::new(Member { all: Arc::clone(&all), is_under_way: Mutex::new(false) });
                runtime.submit(Submission { observer, ..submission(&problem, plan(4)) })
            })
            .collect();

        for outcome in join_all(handles.iter_mut().map(RunHandle::outcome)).await {
            assert!(outcome.expect("the Supervisor lives").is_verified());
        }

        assert_eq!(all.most.load(Ordering::SeqCst), 2, "two runs of four turns fit into eleven");
        assert_eq!((all.now.load(Ordering::SeqCst), runtime.load()), (0, 0));
    });
}

#[test]
fn a_run_wider_than_a_cell_runs_alone() {
    in_system(async {
        let runtime = Runtime::start(
            &RuntimePlan { in_flight_max: 1, ..runtime_plan(Placement::Shared) },
            erring(),
        );

        let problem = problem("long-division");
        let mut handles: Vec<_> =
            (0..3).map(|_| runtime.submit(submission(&problem, plan(8)))).collect();

        for outcome in join_all(handles.iter_mut().map(RunHandle::outcome)).await {
            assert!(outcome.expect("the Supervisor lives").is_verified());
        }
    });
}

#[test]
fn runs_are_spread_over_cells() {
    in_system(async {
        let runtime =
            Runtime::start(&RuntimePlan { cells: 3, ..runtime_plan(Placement::Own) }, erring());

        let problem = problem("tower-of-hanoi");
        let mut handles: Vec<_> =
            (0..9).map(|_| runtime.submit(submission(&problem, plan(3)))).collect();

        for outcome in join_all(handles.iter_mut().map(RunHandle::outcome)).await {
            assert!(outcome.expect("the Supervisor lives").is_verified());
        }
    });
}
