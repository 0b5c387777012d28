//! Agents that die too often: their runs end by name, and nothing else is affected.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use futures::future::join_all;
use tokio::sync::watch;

use super::*;
use crate::messages::Died;
use prime_protocol::Ending;
use prime_protocol::Role;

/// Panics until it has recovered.
#[derive(Clone, Default)]
struct Sick(Arc<AtomicBool>);

#[async_trait]
impl Before for Sick {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        assert!(self.0.load(Ordering::SeqCst), "{PLANNED}: the model is gone");
        Ok(())
    }
}

#[test]
fn a_restart_storm_ends_runs_by_name_and_the_runtime_survives() {
    for (placement, fanout) in [(Placement::Shared, 1), (Placement::Shared, 8), (Placement::Own, 8)]
    {
        in_system(async {
            let healed = Arc::new(AtomicBool::new(false));
            let sick = Sick(Arc::clone(&healed));
            let (agents, made) = checked(move |_| reference_after(sick.clone()));

            let restart_limit = RestartLimit { restarts_max: 3, window: Duration::from_mins(1) };
            let runtime =
                Runtime::start(&RuntimePlan { restart_limit, ..runtime_plan(placement) }, agents);

            let problem = problem("bubble-sort");
            let submit = || runtime.submit(submission(&problem, plan(fanout)));

            for _ in 0..2 {
                let outcome = outcome_of(submit()).await;
                let Ending::AgentFailed(failure) = outcome.ending else {
                    panic!("{:?}", outcome.ending)
                };
                for part in ["executor", "3 times", "60 s", "the model is gone"] {
                    assert!(failure.contains(part), "{part:?} is missing in {failure:?}");
                }
                assert_eq!((outcome.assurance, outcome.answer), (None, None));
            }

            healed.store(true, Ordering::SeqCst);

            assert!(outcome_of(submit()).await.is_verified());
            assert_eq!(
                made.counts(),
                [6, 1, 1],
                "the first, three restarts, and one more each time that runs are ended"
            );

            assert_eq!(runtime.load(), 0);
        });
    }
}

/// Panics in one cell once it is told to continue.
struct SickInOneCell {
    is_sick: bool,
    go_on: watch::Receiver<bool>,
}

#[async_trait]
impl Before for SickInOneCell {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        self.go_on.clone().wait_for(|go_on| *go_on).await.expect("the test tells");
        assert!(!self.is_sick, "{PLANNED} in one cell");
        Ok(())
    }
}

#[test]
fn a_restart_storm_in_one_cell_leaves_the_others_alone() {
    in_system(async {
        let (tell, go_on) = watch::channel(false);
        let sick_thread = OnceLock::new();
        let (agents, _) = checked(move |_| {
            // With shared placement a cell is a thread.
            let this = std::thread::current().id();
            let is_sick = *sick_thread.get_or_init(|| this) == this;
            reference_after(SickInOneCell { is_sick, go_on: go_on.clone() })
        });

        let restart_limit = RestartLimit { restarts_max: 2, window: Duration::from_mins(1) };
        let plan_of_two =
            RuntimePlan { cells: 2, restart_limit, ..runtime_plan(Placement::Shared) };
        let runtime = Runtime::start(&plan_of_two, agents);

        let problem = problem("bubble-sort");
        let mut handles: Vec<_> =
            (0..2).map(|_| runtime.submit(submission(&problem, plan(2)))).collect();

        tell.send(true).expect("the executors listen");

        let outcomes = join_all(handles.iter_mut().map(RunHandle::outcome)).await;
        let verified = outcomes
            .iter()
            .filter(|outcome| outcome.as_ref().expect("both live").is_verified())
            .count();
        assert_eq!(verified, 1);
    });
}

/// The first agent panics.
struct FirstPanics(u64);

#[async_trait]
impl Before for FirstPanics {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        assert!(self.0 > 0, "{PLANNED} of the first");
        Ok(())
    }
}

#[test]
fn a_late_report_of_a_death_is_ignored() {
    in_system(async {
        let (agents, made) = checked(|count| reference_after(FirstPanics(count)));
        let runtime = shared(agents);

        let problem = problem("bubble-sort");
        let mut handle = runtime.submit(submission(&problem, plan(2)));
        assert!(handle.outcome().await.expect("the Supervisor lives").is_verified());

        let died =
            Died { role: Role::Executor, generation: 0, agents: None, reason: "again".to_owned() };

        runtime.cells.supervisor(0).do_send(died);
        assert!(outcome_of(runtime.submit(submission(&problem, plan(2)))).await.is_verified());
        assert_eq!(made.counts(), [2, 1, 1]);
    });
}
