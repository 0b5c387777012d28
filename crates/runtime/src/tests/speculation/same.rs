//! A run is the same with speculation and without.

use serde_json::json;

use super::*;
use prime_problems::Custom;
use prime_protocol::{Ahead, Beam, ParticleFilter, Uct};
use prime_roles::ReplayExecutor;

/// Often rejects, retries and tolerates.
const MOODY: Moody = Moody { millis: (0, 12), tolerable: 15, intolerable: 10 };

const LIMITS: Limits =
    Limits { attempts_max: 4, pops_max: 40, snapshot_every_frames: 3, ..ENDLESS };

/// The plan with and without speculation.
fn both(plan: &RunPlan) -> [RunPlan; 2] {
    [false, true].map(|speculate| RunPlan { speculate, ..plan.clone() })
}

/// Asserts that both runs agree; returns the speculating one.
fn compared(plan: &RunPlan, problem: &Arc<dyn Problem>, seed: u64) -> Traced {
    let [(without, before), (with, after)] = both(plan).map(|plan| {
        let (executor, _) = erring(0.1, (0, 12));
        traced(stopped(executor, || MOODY).0, problem, plan, seed)
    });

    assert_eq!(with.steps, without.steps);
    assert_eq!((&with.ends, &with.votes), (&without.ends, &without.votes));

    let counts = |outcome: &Outcome| {
        let Outcome { proposals, retries, backtracks, pops, rounds, trajectories, steps, .. } =
            *outcome;
        let result = (
            outcome.ending.clone(),
            outcome.answer.clone(),
            outcome.is_verified(),
            outcome.votes.clone(),
        );
        (result, [proposals, retries, backtracks, pops, steps], rounds, trajectories)
    };

    assert_eq!(counts(&after), counts(&before));
    assert_eq!((before.speculations, without.speculations), Default::default());
    assert_eq!(after.speculations, with.speculations, "the sum over the steps");
    assert_eq!((after.usage, with.mishaps), (with.usage, 0));
    with
}

#[test]
fn the_steps_of_a_trajectory_are_the_same() {
    let (mut all, mut rejected, mut popped) = (Speculations::default(), 0, 0);
    for slug in ["bubble-sort", "n-queens", "tower-of-hanoi", "merge-sort"] {
        for (seed, strategy) in (0..4).flat_map(|seed| {
            [Strategy::Iterative, Strategy::Greedy, Strategy::BestOfN]
                .map(|strategy| (seed, strategy))
        }) {
            let budget = Budget { steps: 150, ..plan(1).budget };
            let plan = RunPlan { strategy, limits: LIMITS, budget, max_rounds: 2, ..plan(1) };

            let traced = compared(&plan, &problem(slug), seed);

            all.add(traced.speculations);
            rejected += traced.order.iter().filter(|step| !step.ends_with("Proceed")).count();
            popped += usize::from(traced.order.iter().any(|step| !step.contains("pops: 0")));
        }
    }
    assert!(all.used > 300 && all.wasted > 60, "{all:?}");
    assert!(rejected > 100 && popped > 3, "{rejected} {popped}");
}

#[test]
fn budgets_end_a_run_at_the_same_step() {
    for (steps, seed) in (1..24).map(|steps| (steps, steps * 3)) {
        let budget = Budget { steps, ..plan(1).budget };
        // All rounds are held, also where the last one got stuck.
        let plan =
            RunPlan { budget, limits: LIMITS, adaptive_rounds: false, max_rounds: 30, ..plan(1) };
        let traced = compared(&plan, &problem("bubble-sort"), seed);
        assert_eq!(traced.order.len() as u64, steps);

        // The last proposal within the budget has no successor.
        assert!(traced.speculations.used + traced.speculations.wasted < steps);
    }
}

#[test]
fn trajectories_side_by_side_and_rounds_are_the_same() {
    let mut all = Speculations::default();
    for (slug, seed) in ["bubble-sort", "n-queens"]
        .into_iter()
        .flat_map(|slug| (0..4).map(move |seed| (slug, seed)))
    {
        // The order of trajectories must not change the result.
        let plan = RunPlan {
            limits: LIMITS,
            early_stop: false,
            adaptive_rounds: false,
            confidence: 1.0,
            max_rounds: 2,
            ..plan(4)
        };

        let [(without, before), (with, after)] = both(&plan).map(|plan| {
            let (executor, _) = erring(0.1, (0, 12));
            traced(stopped(executor, || MOODY).0, &problem(slug), plan, seed)
        });

        assert_eq!(with.steps, without.steps);
        assert_eq!(with.ends, without.ends);
        assert_eq!((after.rounds, after.trajectories, after.proposals), (2, 8, before.proposals));
        assert_eq!(after.speculations, with.speculations);
        all.add(with.speculations);
    }
    assert!(all.used > 200 && all.wasted > 50, "{all:?}");
}

#[test]
fn a_custom_problem_is_the_same() {
    let definition = json!({
        "statement": "Count.",
        "steps": "stepwise",
        "answer": {"schema": {"type": "integer"}},
        "constraints": [
            {"name": "brief", "severity": "critical", "check": "size(state.steps) < 4"}
        ],
    });
    let problem = Custom::read(&definition).expect("a problem").problem();
    let lines = ["one", "", "two", "three", "answer: x", "four", "answer: 4"].map(str::to_owned);
    let plan =
        RunPlan { limits: LIMITS, budget: Budget { steps: 60, ..plan(1).budget }, ..plan(1) };

    for seed in 0..4 {
        let [(without, _), (with, _)] = both(&plan).map(|plan| {
            let lines = lines.to_vec();
            let executor = move || Slow {
                inner: ReplayExecutor::new(lines.clone()),
                millis: (5, 5),
                probe: Arc::default(),
            };
            let moody = Moody { tolerable: seed * 10, ..MOODY };
            traced(stopped(executor, move || moody).0, &problem, plan, seed)
        });

        assert_eq!((&with.order, &with.ends), (&without.order, &without.ends));
        assert!(with.speculations.used > 0, "{:?}", with.speculations);
    }
}

/// Yields before its work.
struct Yields;

#[async_trait]
impl Before for Yields {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        tokio::task::yield_now().await;
        Ok(())
    }
}

#[test]
fn agents_on_their_own_threads_do_the_same() {
    let plan = RunPlan { limits: LIMITS, early_stop: false, ..plan(3) };

    let [(without, _), (with, outcome)] = both(&plan).map(|plan| {
        let (trace, problem) = (Trace::default(), problem("bubble-sort"));
        let observer = Arc::new(trace.clone());
        let agents = checked(|_| After(Yields, ScriptedExecutor::new(0.2))).0;
        let outcome = in_system(async {
            let runtime = Runtime::start(&runtime_plan(Placement::Own), agents);
            outcome_of(runtime.submit(Submission { observer, ..submission(&problem, plan) })).await
        });
        (trace.get(), outcome)
    });

    assert_eq!((&with.steps, &with.ends), (&without.steps, &without.ends));
    assert!(
        outcome.speculations.used > 10 && outcome.speculations.wasted > 0,
        "{:?}",
        outcome.speculations
    );
}

#[test]
fn searches_that_choose_among_proposals_do_not_speculate() {
    let ahead = Ahead { k: 2, samples_max: 20, characters_max: 100_000, step_accuracy: 0.9 };
    for strategy in [
        Strategy::Beam(Beam { width: 2, actions: 2 }),
        Strategy::Ahead(ahead),
        Strategy::ParticleFilter(ParticleFilter { particles: 4, resample_below: 0.5 }),
        Strategy::Uct(Uct { width: 4, exploration: 0.5, simulations: 1_000 }),
    ] {
        let plan = RunPlan { strategy, max_rounds: 1, speculate: true, ..plan(4) };
        let (executor, probe) = erring(0.1, (5, 5));
        let (traced, outcome) =
            traced(stopped(executor, || MOODY).0, &problem("bubble-sort"), plan, 7);

        assert!(outcome.proposals > 20);
        assert_eq!(traced.speculations, Speculations::default());
        assert_eq!(probe.started_and_cancelled().1, 0, "{strategy:?}");
    }
}

#[test]
fn an_executor_that_replies_now_does_not_speculate() {
    let slow = Moody { millis: (9, 9), ..MOODY };
    let agents = stopped(|| ScriptedExecutor::new(0.1), move || slow).0;
    let plan = RunPlan { speculate: true, adaptive_rounds: false, ..plan(2) };
    let (traced, outcome) = traced(agents, &problem("bubble-sort"), plan, 7);

    assert!(outcome.proposals > 20);
    assert_eq!((traced.speculations, outcome.speculations), Default::default());
}
