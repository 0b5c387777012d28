//! Wasted early proposals: they are cancelled, counted, and change nothing.

use tokio::sync::mpsc;

use super::*;
use prime_protocol::Ending;

/// Rejects often, otherwise judges by the rules.
fn strict(millis: usize) -> Moody {
    Moody { millis: (millis, millis), tolerable: 0, intolerable: 30 }
}

fn speculating(fanout: u32) -> RunPlan {
    RunPlan { speculate: true, ..plan(fanout) }
}

#[test]
fn a_rejected_step_cancels_the_proposal_after_it() {
    // The verdict comes first: no wasted proposal completes.
    let (executor, probe) = erring(0.2, (10, 10));
    let agents = stopped(executor, || strict(4)).0;

    let (traced, outcome) = traced(agents, &problem("bubble-sort"), speculating(1), 5);

    let Speculations { used, wasted } = outcome.speculations;
    assert!(used > 10 && wasted > 5, "{:?}", outcome.speculations);
    assert_eq!(probe.started_and_cancelled(), (outcome.proposals + wasted, wasted));
    assert_eq!(
        outcome.usage.total(),
        outcome.proposals * COST.total(),
        "the usage of cancelled proposals is unknown"
    );
    assert_eq!((traced.mishaps, traced.usage), (0, outcome.usage));
}

#[test]
fn the_usage_of_wasted_proposals_counts() {
    // The verdict comes last: every wasted proposal completes.
    let (executor, probe) = erring(0.2, (4, 4));
    let agents = stopped(executor, || strict(10)).0;

    let (traced, outcome) = traced(agents, &problem("bubble-sort"), speculating(1), 5);

    let Speculations { used, wasted } = outcome.speculations;
    assert!(used > 10 && wasted > 5, "{:?}", outcome.speculations);
    assert_eq!(probe.started_and_cancelled(), (outcome.proposals + wasted, 0));
    assert_eq!(outcome.usage.total(), (outcome.proposals + wasted) * COST.total());
    assert_eq!(traced.usage, outcome.usage);
}

#[test]
fn tokens_for_one_proposal_are_not_spent_on_two() {
    for tokens in 1..60 {
        let budget = Budget { tokens, ..plan(1).budget };
        let (executor, _) = erring(0.0, (4, 4));
        let agents =
            stopped(executor, || Moody { millis: (10, 10), tolerable: 0, intolerable: 0 }).0;

        let plan = RunPlan { budget, ..speculating(1) };
        let (_, outcome) = traced(agents, &problem("bubble-sort"), plan, 5);

        assert_eq!(outcome.ending, Ending::TokensSpent);
        // All steps are right, so nothing is wasted: as many proposals as without.
        assert_eq!(outcome.proposals, tokens.div_ceil(COST.total()));
        assert_eq!(outcome.speculations, Speculations { used: outcome.proposals - 1, wasted: 0 });
    }
}

/// How an early proposal goes wrong.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Error { is_transient: bool },
    PanicsAtOnce,
    PanicsLater,
}

/// Goes wrong if its trajectory's last step has not been decided.
struct GoesWrong {
    how: Wrong,
    decided: Arc<AtomicU64>,
    early: Arc<AtomicU64>,
}

#[async_trait]
impl Before for GoesWrong {
    async fn before(&self, _: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        let is_early = trajectory.counts.proposals > self.decided.load(Ordering::SeqCst);

        self.early.fetch_add(u64::from(is_early), Ordering::SeqCst);

        assert!(!is_early || self.how != Wrong::PanicsAtOnce, "{PLANNED} at once");
        tokio::time::sleep(Duration::from_millis(6)).await;
        assert!(!is_early || self.how != Wrong::PanicsLater, "{PLANNED} later");

        match self.how {
            Wrong::Error { is_transient } if is_early => {
                let failure = if is_transient { Failure::Overloaded } else { Failure::Refused };
                Err(AgentError::new("test", failure, "asked too early"))
            }
            _ => Ok(()),
        }
    }
}

/// Counts decided steps.
struct Decided(Arc<AtomicU64>, Trace);

impl Observer for Decided {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Step { .. } = event {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        self.1.observe(event);
    }
}

/// A run of one trajectory whose early proposals all go wrong.
fn going_wrong(how: Wrong, speculate: bool, verifier: Moody) -> (Traced, Outcome, u64, [u64; 3]) {
    let (decided, early) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());

    let (now, begun) = (Arc::clone(&decided), Arc::clone(&early));
    let executor = move || {
        let before = GoesWrong { how, decided: Arc::clone(&now), early: Arc::clone(&begun) };
        After(before, ScriptedExecutor::new(0.1))
    };
    let (agents, made) = stopped(executor, move || verifier);

    let trace = Trace::default();
    let plan = RunPlan { speculate, max_rounds: 1, ..plan(1) };
    let observer = Arc::new(Decided(decided, trace.clone()));
    let submission = Submission { observer, ..submission(&problem("bubble-sort"), plan) };

    let outcome = in_system(async { outcome_of(shared(agents).submit(submission)).await });
    (trace.get(), outcome, early.load(Ordering::SeqCst), made.counts())
}

#[test]
fn early_proposals_that_go_wrong_change_nothing() {
    let errors = [true, false].map(|is_transient| Wrong::Error { is_transient });
    for how in [Wrong::PanicsAtOnce, Wrong::PanicsLater].into_iter().chain(errors) {
        // The verdict comes before the failure, and after it.
        for millis in [2, 10] {
            let (without, ..) = going_wrong(how, false, strict(millis));
            let (with, outcome, early, made) = going_wrong(how, true, strict(millis));

            assert_eq!(
                (&with.order, &with.ends, &with.votes),
                (&without.order, &without.ends, &without.votes)
            );
            assert!(early > 20, "{early}");
            assert_eq!(outcome.speculations, Speculations { used: 0, wasted: early });
            assert_eq!((with.mishaps, made), (0, [1, 1, 1]), "no agent has died");
        }
    }
}

/// Panics at one call in six.
struct Frail(Arc<AtomicU64>);

#[async_trait]
impl Before for Frail {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        tokio::task::yield_now().await;
        let panics = TaskRng::new(self.0.fetch_add(1, Ordering::SeqCst)).chance(1, 6);
        assert!(!panics, "{PLANNED}: frail");
        Ok(())
    }
}

#[test]
fn executors_that_die_with_early_proposals_lose_none() {
    let plan = RunPlan { early_stop: false, max_rounds: 1, ..speculating(4) };
    let run = |speculate, frail: bool| {
        let (trace, problem) = (Trace::default(), problem("bubble-sort"));
        let calls = Arc::<AtomicU64>::default();
        let executor = move |_| After(Frail(Arc::clone(&calls)), ScriptedExecutor::new(0.1));
        let (agents, made) =
            if frail { checked(executor) } else { checked(|_| ScriptedExecutor::new(0.1)) };

        let observer = Arc::new(trace.clone());
        let submission =
            Submission { observer, ..submission(&problem, RunPlan { speculate, ..plan.clone() }) };

        let outcome = in_system(async { outcome_of(shared(agents).submit(submission)).await });
        (trace.get(), outcome, made.counts()[0])
    };

    let (sound, ..) = run(false, false);
    let (frail, outcome, executors) = run(true, true);
    assert_eq!((&frail.steps, &frail.ends), (&sound.steps, &sound.ends));
    assert!(
        executors > 3 && outcome.speculations.used > 50 && outcome.speculations.wasted > 10,
        "{executors} {:?}",
        outcome.speculations
    );
}

/// Answers the first proposal of each trajectory; later ones never complete, and report their
/// cancellation.
struct AnswersOnce(mpsc::UnboundedSender<&'static str>);

/// Reports that it was dropped.
struct Tells(mpsc::UnboundedSender<&'static str>);

impl Drop for Tells {
    fn drop(&mut self) {
        // The test may have ended.
        let _ = self.0.send("cancelled");
    }
}

#[async_trait]
impl Before for AnswersOnce {
    async fn before(&self, _: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        tokio::task::yield_now().await;
        if trajectory.counts.proposals > 0 {
            let _tells = Tells(self.0.clone());
            let _ = self.0.send("started");
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Never answers.
struct Silent;

#[async_trait]
impl Before for Silent {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        std::future::pending().await
    }
}

#[test]
fn the_end_of_a_run_cancels_early_proposals() {
    for silent in [true, false] {
        in_system(async {
            let (tell, mut told) = mpsc::unbounded_channel();
            let executor = move |_| reference_after(AnswersOnce(tell.clone()));

            // With a verifier that answers, the executor waits for its early proposal.
            let agents = if silent {
                agents(executor, |_| After(Silent, rules()), |_| threshold()).0
            } else {
                checked(executor).0
            };
            let runtime = shared(agents);

            let handle = runtime.submit(submission(&problem("bubble-sort"), speculating(3)));
            for _ in 0..3 {
                assert_eq!(told.recv().await, Some("started"));
            }

            handle.cancel();
            assert_eq!(outcome_of(handle).await.ending, Ending::Cancelled);
            for _ in 0..3 {
                assert_eq!(told.recv().await, Some("cancelled"));
            }

            drop(runtime);
            assert_eq!(told.recv().await, None, "nothing is asked again");
        });
    }
}
