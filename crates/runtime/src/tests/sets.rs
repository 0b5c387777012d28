//! Runs of several sets of agents in one runtime.

use futures::future::join_all;
use tokio::sync::watch;

use super::*;
use prime_protocol::Ending;
use prime_roles::ScriptedExecutor;

/// Waits for a condition that other threads bring about.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn each_run_has_the_agents_of_its_own_set() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (right, right_made) = checked(|_| ReferenceExecutor);
            let (erring, erring_made) = checked(|_| ScriptedExecutor::new(0.3));
            let runtime = Runtime::start(&runtime_plan(placement), right);
            let problem = problem("bubble-sort");
            let pair = || {
                let own = runtime.submit(submission(&problem, plan(2)));
                (own, runtime.submit_with(Arc::clone(&erring), submission(&problem, plan(2))))
            };

            // All are submitted before the first one is waited for.
            let handles: Vec<_> = (0..4).map(|_| pair()).collect();
            let outcomes = join_all(
                handles
                    .into_iter()
                    .map(async |(own, other)| (outcome_of(own).await, outcome_of(other).await)),
            );

            for (own, other) in outcomes.await {
                assert!(own.is_verified() && other.is_verified());
                assert_eq!(
                    (own.retries, own.backtracks),
                    (0, 0),
                    "the default executor makes no errors"
                );
                assert!(other.retries + other.backtracks > 0, "the other one does");
            }

            assert_eq!(right_made.counts(), [1, 1, 1], "one cell needs one of each");
            assert!(erring_made.counts()[0] >= 1);
        });
    }
}

/// Holds on to something as an agent holds on to an engine.
struct Holding(#[expect(dead_code, reason = "held")] Arc<()>);

#[async_trait]
impl Before for Holding {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        Ok(())
    }
}

/// A set whose executors hold on to something.
fn holding() -> (Arc<dyn Agents>, std::sync::Weak<()>) {
    let held = Arc::new(());
    let weak = Arc::downgrade(&held);
    let (set, _) = checked(move |_| reference_after(Holding(Arc::clone(&held))));
    (set, weak)
}

#[test]
fn agents_are_dropped_with_the_last_run_of_their_set() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (default, default_held) = holding();
            let (other, other_held) = holding();
            let runtime = Runtime::start(&runtime_plan(placement), default);

            let problem = problem("bubble-sort");

            let default_run = runtime.submit(submission(&problem, plan(2)));
            let run = runtime.submit_with(other, submission(&problem, plan(2)));
            assert!(outcome_of(run).await.is_verified());
            until(|| other_held.upgrade().is_none()).await;
            assert!(outcome_of(default_run).await.is_verified());
            assert!(default_held.upgrade().is_some(), "the default agents stay");

            let (next, next_held) = holding();
            runtime.replace_agents(next);
            until(|| default_held.upgrade().is_none()).await;
            assert!(outcome_of(runtime.submit(submission(&problem, plan(2)))).await.is_verified());
            assert!(next_held.upgrade().is_some());
        });
    }
}

/// Panics, or waits until it is told to continue.
struct SickOrWaiting(Option<watch::Receiver<bool>>);

#[async_trait]
impl Before for SickOrWaiting {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        let Some(go_on) = &self.0 else { panic!("{PLANNED} of one set") };
        go_on.clone().wait_for(|go_on| *go_on).await.expect("the test tells");
        Ok(())
    }
}

#[test]
fn a_restart_storm_ends_the_runs_of_its_own_set_only() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (tell, go_on) = watch::channel(false);
            let (waiting, _) =
                checked(move |_| reference_after(SickOrWaiting(Some(go_on.clone()))));
            let (sick, _) = checked(|_| reference_after(SickOrWaiting(None)));
            let restart_limit = RestartLimit { restarts_max: 3, window: Duration::from_mins(1) };
            let runtime =
                Runtime::start(&RuntimePlan { restart_limit, ..runtime_plan(placement) }, waiting);

            let problem = problem("bubble-sort");

            let held_up = runtime.submit(submission(&problem, plan(2)));
            let ended = outcome_of(runtime.submit_with(sick, submission(&problem, plan(8)))).await;
            assert!(matches!(ended.ending, Ending::AgentFailed(_)), "{:?}", ended.ending);

            tell.send(true).expect("the executor listens");
            let outcome = outcome_of(held_up).await;
            assert!(outcome.is_verified(), "{:?}", outcome.ending);
        });
    }
}
