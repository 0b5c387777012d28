//! Plans from settings: of a run, its sampling and the runtime. Pure.

use std::sync::Arc;
use std::time::Duration;

use super::cores::cores;
use prime_agent_set::{AgentSet, Basis};
use prime_bench::tasks::Problem;
use prime_protocol::reliability::least_k;
use prime_protocol::strategy::{difficulty, group_size};
use prime_protocol::{
    Ahead, Beam, Budget, Cost, Limits, ParticleFilter, RewardWeights, RunPlan, Strategy, Uct,
    VoteRule,
};
use prime_runtime::{Diversity, Placement, RestartLimit, RunSampling, RuntimePlan};
use prime_settings::{GroupSize, SeedChoice, Settings, StrategyName, VoteName};

/// The configured strategy, for a problem whose longest valid trace has `steps_max` steps.
fn strategy(run: &prime_settings::Run, steps_max: u64) -> Strategy {
    match run.strategy {
        StrategyName::Iterative => Strategy::Iterative,
        StrategyName::Greedy => Strategy::Greedy,
        StrategyName::BestOfN => Strategy::BestOfN,
        StrategyName::Beam => {
            Strategy::Beam(Beam { width: run.beam.width, actions: run.beam.actions })
        }
        StrategyName::Ahead => {
            let ahead = &run.ahead;
            // A configured `k` is taken as it is; 0 asks for the least that is reliable enough.
            let least = || least_k(ahead.step_accuracy, ahead.reliability, steps_max);
            Strategy::Ahead(Ahead {
                k: if ahead.k > 0 {
                    ahead.k
                } else {
                    least().expect("invariant: settings are validated")
                },
                samples_max: ahead.samples_max,
                characters_max: ahead.characters_max,
                step_accuracy: ahead.step_accuracy,
            })
        }
        StrategyName::ParticleFilter => Strategy::ParticleFilter(ParticleFilter {
            particles: run.particle_filter.particles,
            resample_below: run.particle_filter.resample_below,
        }),
        StrategyName::Uct => Strategy::Uct(Uct {
            width: run.uct.width,
            exploration: run.uct.exploration,
            simulations: run.uct.simulations,
        }),
    }
}

/// Concurrent turns of a round.
fn fanout(run: &prime_settings::Run, steps_max: u64) -> u32 {
    match (run.strategy, run.group.size) {
        (StrategyName::Greedy, _) => 1,
        (StrategyName::Beam, _) => run.beam.width * run.beam.actions,
        (StrategyName::ParticleFilter, _) => run.particle_filter.particles,
        (_, GroupSize::Fixed) => run.fanout,
        (_, GroupSize::Dynamic) => {
            group_size(run.group.min, run.group.max, run.group.midpoint, difficulty(steps_max))
        }
    }
}

/// The configured plan of a run; `basis` is what its verifier's verdicts on the problem rest on.
pub fn run_plan(settings: &Settings, basis: Basis, problem: &dyn Problem) -> RunPlan {
    let run = &settings.run;
    let fanout = fanout(run, problem.steps_max());
    RunPlan {
        strategy: strategy(run, problem.steps_max()),
        vote: match run.vote {
            VoteName::Majority => VoteRule::Majority,
            VoteName::Tolerance => VoteRule::Tolerance(run.tolerance),
            VoteName::Weighted => VoteRule::Weighted,
        },
        early_stop: run.early_stop,
        adaptive_rounds: run.adaptive_rounds,
        fanout,
        max_rounds: run.max_rounds,
        confidence: run.confidence,
        limits: Limits {
            attempts_max: run.attempts_max,
            repetitions_max: run.repetitions_max,
            stuck_after: run.stuck_after,
            pops_max: run.pops_max,
            snapshot_every_frames: run.snapshot_every_frames as usize,
        },
        budget: Budget {
            steps: problem.proposals_max().map_or(run.budget.steps, |each| {
                let of_all =
                    each.saturating_mul(fanout.into()).saturating_mul(run.max_rounds.into());
                run.budget.steps.min(of_all)
            }),
            tokens: run.budget.tokens,
            completion_tokens: run.budget.completion_tokens,
            cost: Cost::from_units(run.budget.cost).expect("invariant: settings are validated"),
            wall_ms: run.budget.wall_ms,
        },
        weights: RewardWeights {
            task: run.reward.task,
            verify: run.reward.verify,
            efficiency: run.reward.efficiency,
            format: run.reward.format,
        },
        basis,
        locates: settings.locator().is_some(),
        learnt: Vec::new(),
        speculate: run.speculate,
    }
}

/// Plans the runs of these agents, whatever their problems.
pub fn planner(
    settings: &Settings,
    agents: &AgentSet,
) -> impl Fn(&dyn Problem) -> RunPlan + Send + Sync + 'static {
    let (settings, judge) = (settings.clone(), Arc::clone(agents.judge()));
    move |problem| run_plan(&settings, judge.basis(problem.spec()).on(problem), problem)
}

/// The configured sampling of a run.
#[expect(clippy::cast_possible_truncation, reason = "samplers work with single precision")]
pub fn run_sampling(settings: &Settings) -> RunSampling {
    let run = &settings.run;
    RunSampling {
        temperature: run.temperature as f32,
        top_p: run.top_p as f32,
        seed: run.seed,
        diversity: Diversity {
            temperature_spread: run.diversity.temperature_spread as f32,
            shares_seeds: run.diversity.seeds == SeedChoice::Shared,
        },
    }
}

/// The configured shape of the runtime.
pub fn runtime_plan(settings: &Settings) -> RuntimePlan {
    let runtime = &settings.runtime;
    RuntimePlan {
        cells: if runtime.cells == 0 { cores() } else { runtime.cells as usize },
        placement: match runtime.placement {
            prime_settings::Placement::Shared => Placement::Shared,
            prime_settings::Placement::Own => Placement::Own,
        },
        restart_limit: RestartLimit {
            restarts_max: runtime.restarts_max,
            window: Duration::from_millis(runtime.restart_window_ms),
        },
        in_flight_max: runtime.in_flight_max,
        hang_after: (runtime.hang_after_ms > 0)
            .then(|| Duration::from_millis(runtime.hang_after_ms)),
    }
}
