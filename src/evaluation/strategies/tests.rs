//! Strategies on the scripted executor, with known results.

use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::evaluation::comparison::{Instances, evaluate};
use crate::evaluation::systems::{plan, runtime_plan, scripted, system};
use prime_agent_set::{
    AgentError, AsyncExecutor, Executor, Proposal, ReferenceExecutor, RulesVerifier, Sampling,
    Verifier,
};
use prime_bench::tasks::{self, Difficulty, Kinds};
use prime_protocol::{Ahead, Beam, ParticleFilter, RunPlan, Strategy, Trajectory, Uct};

const COUNT: u32 = 6;

/// Runs on Tower of Hanoi, easy.
fn measured<V: Verifier + 'static>(
    executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
    verifier: impl Fn() -> V + Send + Sync + 'static,
    plan: &RunPlan,
) -> StrategyRow {
    let task = tasks::find("tower-of-hanoi").unwrap();
    let instances =
        Instances { difficulty: Difficulty::Easy, count: COUNT, base_seed: 7, concurrent: 8 };

    let system = system(executor, verifier, plan);
    let runs = actix::System::new()
        .block_on(evaluate(system, &runtime_plan(), task, instances, &|_| ()))
        .unwrap();

    let approach = Approach {
        name: "test".into(),
        strategy: "test".into(),
        vote: "majority".into(),
        executor: "test".into(),
        verifier: "test".into(),
        is_baseline: false,
    };

    StrategyRow::new(approach, Some(task.spec().slug), &runs)
}

fn none() -> RulesVerifier {
    RulesVerifier::new(Kinds::NONE)
}

fn all() -> RulesVerifier {
    RulesVerifier::new(Kinds::ALL)
}

fn strategies() -> Vec<(Strategy, u32)> {
    let ahead = Ahead { k: 2, samples_max: 16, characters_max: 200, step_accuracy: 0.9 };
    vec![
        (Strategy::Iterative, 1),
        (Strategy::Greedy, 1),
        (Strategy::BestOfN, 1),
        (Strategy::Beam(Beam { width: 1, actions: 2 }), 2),
        (Strategy::Ahead(ahead), 2),
        (Strategy::ParticleFilter(ParticleFilter { particles: 2, resample_below: 0.5 }), 2),
        (Strategy::Uct(Uct { width: 4, exploration: 0.5, simulations: 100 }), 1),
    ]
}

/// Mean steps of the references of these instances.
fn reference_steps() -> f64 {
    let task = tasks::find("tower-of-hanoi").unwrap();
    let steps = |index| {
        let seed = task.spec().seed(7, Difficulty::Easy, index);
        task.generate(Difficulty::Easy, seed).reference().steps
    };
    (0..COUNT).map(steps).sum::<u64>() as f64 / f64::from(COUNT)
}

#[test]
fn without_errors_every_strategy_solves_everything_at_a_known_cost() {
    for (strategy, side_by_side) in strategies() {
        let plan = RunPlan { strategy, fanout: side_by_side, ..plan() };
        let row = measured(scripted(0.0), all, &plan);
        assert_eq!((row.accuracy.count, row.accuracy.of), (6, 6), "{strategy:?}");
        assert_eq!(
            (row.verified, row.verified_wrong, row.failed, row.out_of_steps),
            (6, 0, 0, 0),
            "{strategy:?}"
        );
        assert!(
            (row.proposals - reference_steps() * f64::from(side_by_side)).abs() < 1e-9,
            "{strategy:?} {row:?}"
        );
        assert_eq!((row.prompt_tokens, row.completion_tokens), (0.0, 0.0));

        // Both votes of each step agree: a lead of two. 0.01 / (0.81 + 0.01) for each step is above
        // one in all.
        let votes = row.step_votes.map(|votes| (votes.margin_min, votes.undecided));
        assert_eq!(votes, matches!(strategy, Strategy::Ahead(_)).then_some((2, 0)), "{strategy:?}");
    }
}

#[test]
fn at_error_rate_one_no_strategy_solves_anything() {
    for (strategy, side_by_side) in strategies() {
        let plan = RunPlan { strategy, fanout: side_by_side, ..plan() };
        let row = measured(scripted(1.0), all, &plan);
        assert_eq!(
            (row.accuracy.count, row.accuracy.of, row.verified, row.failed),
            (0, 6, 0, 0),
            "{strategy:?}"
        );
        assert_eq!(row.step_votes, None, "no step was taken");
    }
}

#[test]
fn unchecked_answers_are_never_verified() {
    let row = measured(scripted(0.0), none, &plan());
    assert_eq!((row.accuracy.count, row.verified, row.verified_wrong), (6, 0, 0));
}

#[test]
fn the_bound_on_errors_is_a_mean_over_runs() {
    // Two agreeing votes of an executor that is right nearly always: q² / (p² + q²) a step.
    let ahead = Ahead { k: 2, samples_max: 16, characters_max: 200, step_accuracy: 0.999 };
    let plan = RunPlan { strategy: Strategy::Ahead(ahead), fanout: 2, ..plan() };

    let row = measured(scripted(0.0), all, &plan);
    let a_step = 1e-6 / (0.999 * 0.999 + 1e-6);
    let bound = row.step_votes.and_then(|votes| votes.error_bound).unwrap();
    assert!((bound - a_step * reference_steps()).abs() < 1e-9, "{bound}");
}

/// Follows the reference and gives no log-probabilities.
struct Silent;

#[async_trait]
impl AsyncExecutor for Silent {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        ReferenceExecutor.propose(trajectory, sampling).await
    }
}

#[test]
fn a_strategy_that_cannot_work_is_a_row_with_the_reason() {
    let strategy = Strategy::Beam(Beam { width: 2, actions: 2 });
    let row = measured(|| Arc::new(Silent), all, &RunPlan { strategy, fanout: 4, ..plan() });
    assert_eq!((row.failed, row.accuracy.count, row.is_void()), (6, 0, true));
    assert!(row.failure.unwrap().contains("log-probabilities"));
}
