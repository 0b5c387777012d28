//! Properties of whole runs: a small simulator stands in for the four actors.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use prime_bench::tasks::{self, Difficulty, Kinds, Problem, TaskRng};

const THRESHOLDS: Thresholds =
    Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };

pub(super) fn plan(fanout: u32, attempts_max: u32) -> RunPlan {
    RunPlan {
        strategy: crate::Strategy::Iterative,
        vote: VoteRule::Majority,
        early_stop: true,
        adaptive_rounds: true,
        fanout,
        max_rounds: 3,
        confidence: 0.5,
        limits: Limits {
            attempts_max,
            pops_max: 5_000,
            snapshot_every_frames: 64,
            ..Limits::DEFAULT
        },
        budget: Budget {
            steps: 1 << 22,
            tokens: 0,
            completion_tokens: 0,
            cost: Cost::ZERO,
            wall_ms: u64::MAX,
        },
        weights: RewardWeights { task: 10.0, verify: 1.0, efficiency: 0.5, format: 0.1 },
        basis: Basis::rules(kinds()),
        locates: false,
        learnt: Vec::new(),
        speculate: false,
    }
}

/// One of each strategy, for a fan-out of 4.
pub(super) fn strategies() -> [crate::Strategy; 7] {
    use crate::{Ahead, Beam, ParticleFilter, Strategy, Uct};
    [
        Strategy::Iterative,
        Strategy::Greedy,
        Strategy::BestOfN,
        Strategy::Beam(Beam { width: 2, actions: 2 }),
        Strategy::Ahead(Ahead { k: 2, samples_max: 40, characters_max: 500, step_accuracy: 0.9 }),
        Strategy::ParticleFilter(ParticleFilter { particles: 4, resample_below: 0.5 }),
        Strategy::Uct(Uct { width: 3, exploration: 0.5, simulations: 1_000 }),
    ]
}

pub(super) fn kinds() -> Kinds {
    Kinds::WITHOUT_TRANSITION
}

/// Executes a run with a proposing function; turns come back in an order that `schedule` picks. An
/// empty line means that nothing is left to propose.
pub(super) fn simulate(
    problem: &Arc<dyn Problem>,
    plan: RunPlan,
    schedule: &mut TaskRng,
    mut propose: impl FnMut(&Trajectory, &mut TaskRng) -> String,
) -> Outcome {
    simulate_with(problem, plan, schedule, |_, trajectory, rng| {
        (propose(trajectory, rng), Some(-1.0))
    })
}

/// Like [`simulate`], with a proposing function that knows its turn and returns ln p of its line.
pub(super) fn simulate_with(
    problem: &Arc<dyn Problem>,
    plan: RunPlan,
    schedule: &mut TaskRng,
    propose: impl FnMut(TurnId, &Trajectory, &mut TaskRng) -> (String, Option<f32>),
) -> Outcome {
    simulate_judged(problem, plan, kinds(), schedule, propose)
}

/// Like [`simulate_with`], with a verifier that checks these kinds of constraints.
pub(super) fn simulate_judged(
    problem: &Arc<dyn Problem>,
    plan: RunPlan,
    kinds: Kinds,
    schedule: &mut TaskRng,
    mut propose: impl FnMut(TurnId, &Trajectory, &mut TaskRng) -> (String, Option<f32>),
) -> Outcome {
    let mut run = Run::new(Arc::clone(problem), plan);
    run.set_judged_by(Basis::rules(kinds));
    let mut effects = Vec::new();
    let mut waiting = Vec::new();

    run.start(&mut effects);

    loop {
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => waiting.push((id, trajectory)),
                Effect::Finish(outcome) => return *outcome,
                Effect::Ended(..) | Effect::Chosen { .. } | Effect::Voted { .. } => {}
            }
        }

        let (id, mut trajectory) = waiting.swap_remove(schedule.index(waiting.len()));

        let (line, logprob) = propose(id, &trajectory, schedule);
        let applicable = trajectory.machine.propose(&line).is_ok();
        let violations = trajectory.machine.violations(kinds);
        let score = Score::from_tenths(violations.tenths(trajectory.machine.spec()));

        let verdict = Verdict { score, ..Verdict::default() };
        let decision =
            run.plan().strategy.ruling(if line.is_empty() || trajectory.excludes(&line) {
                Decision::Backtrack
            } else {
                THRESHOLDS.decide(score, trajectory.stack.top().retries)
            });

        let completion = trajectory.completion_max.map_or(2, |max| u64::from(max.min(7)));
        let usage = Usage { cost: Some(Cost::from_nanos(7)), ..Usage::new(10, completion) };

        let outcome = TurnOutcome {
            line: &line,
            applicable,
            verdict: &verdict,
            decision,
            located: None,
            exhausted: line.is_empty(),
            usage,
            derivation: "",
            logprobs: logprob.as_slice(),
            speculations: Speculations::default(),
        };
        run.settle(id, trajectory, outcome, 0, &mut effects);
    }
}

pub(super) fn queens(n: usize) -> Arc<dyn Problem> {
    let order: Vec<_> = (0..n).collect();
    tasks::find("n-queens")
        .expect("listed")
        .read_input(&json!({"n": n, "order": order}))
        .expect("valid")
}

fn any_placement(trajectory: &Trajectory, rng: &mut TaskRng) -> String {
    let choices = trajectory.machine.choices().expect("n-queens is a search");
    let left: Vec<_> = choices.iter().filter(|choice| !trajectory.excludes(choice)).collect();
    left[rng.index(left.len())].clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Random proposals with exclusion and backtracking find a solution whenever there is one, on
    /// every board.
    #[test]
    fn search_over_finite_choices_is_complete(n in 4usize..8, seed in any::<u64>()) {
        let outcome = simulate(&queens(n), plan(1, 1), &mut TaskRng::new(seed), any_placement);
        prop_assert!(outcome.is_verified() && outcome.answer.is_some());
        prop_assert_eq!(outcome.ending, Ending::Agreed);
    }

    /// A model that puts all its mass on the lines that come first in a random order, whatever the
    /// state, and whose engine bars those that were rejected: it finds a solution, or every line
    /// was tried everywhere.
    #[test]
    fn search_with_excluded_lines_is_complete(n in 2usize..7, seed in any::<u64>()) {
        let mut rng = TaskRng::new(seed);
        let mut lines: Vec<String> = (0..n * n).map(|at| format!("place {} {}", at / n, at % n)).collect();
        lines.extend(["place 0 9".to_owned(), "nonsense".to_owned()]);
        for last in (1..lines.len()).rev() {
            lines.swap(last, rng.index(last + 1));
        }
        let stubborn = |trajectory: &Trajectory, _: &mut TaskRng| {
            lines.iter().find(|line| !trajectory.excludes(line)).cloned().unwrap_or_default()
        };
        let outcome = simulate(&queens(n), plan(1, 1), &mut TaskRng::new(seed), stubborn);
        let has_solution = n >= 4;
        prop_assert_eq!(&outcome.ending, if has_solution { &Ending::Agreed } else { &Ending::Exhausted });
        prop_assert_eq!(outcome.answer.is_some(), has_solution);
    }

    /// Garbage, legal lines and reference steps in any mixture: a run ends, within its budget, and
    /// says why.
    #[test]
    fn a_run_ends_whatever_is_proposed(
        seed in any::<u64>(), garbage in 0u64..100, task in 0usize..5, strategy in 0usize..7
    ) {
        let task = tasks::all().nth(task).expect("five tasks");
        let problem = task.generate(Difficulty::Easy, seed);
        let budget = Budget { steps: 3_000, tokens: 30_000, completion_tokens: 0, cost: Cost::ZERO, wall_ms: 1_000 };
        let plan = RunPlan { strategy: strategies()[strategy], budget, ..plan(4, 3) };
        let outcome = simulate(&problem, plan, &mut TaskRng::new(seed), |trajectory, rng| {
            if rng.below(100) >= garbage && let Some(line) = trajectory.machine.reference() {
                line
            } else {
                ["cmp 0 1", "swap 2 1", "done", "pass", "q1", "move 1 0 2", "place 0 0", "back 0", "0 1", "?"]
                    [rng.index(10)].to_owned()
            }
        });
        prop_assert!(outcome.proposals <= 3_000 && outcome.usage.total() <= 30_000 + 12);
        prop_assert!(!outcome.is_verified() || outcome.answer.is_some());
    }

    /// With an executor that makes no mistake every task's answer is the reference answer, by every
    /// schedule.
    #[test]
    fn a_faultless_executor_is_verified_and_right(seed in any::<u64>(), task in 0usize..5, strategy in 0usize..7) {
        let problem = tasks::all().nth(task).expect("five tasks").generate(Difficulty::Easy, seed);
        let strategy = strategies()[strategy];
        let outcome = simulate(&problem, RunPlan { strategy, ..plan(4, 3) }, &mut TaskRng::new(seed), |trajectory, _| {
            trajectory.machine.reference().expect("an open trace")
        });
        prop_assert!(outcome.is_verified());
        prop_assert_eq!(outcome.ending, Ending::Agreed);
        prop_assert!(problem.accepts(outcome.answer.as_ref().expect("verified")));
        let votes = if strategy == crate::Strategy::Iterative { 3 } else { 1 };
        prop_assert_eq!(outcome.votes[0].votes, votes, "three of four decide, the fourth is not waited for");
    }
}

#[test]
fn a_board_without_solution_is_proven_exhausted() {
    for n in [2, 3] {
        let outcome = simulate(&queens(n), plan(2, 1), &mut TaskRng::new(1), any_placement);
        assert_eq!((outcome.ending, outcome.answer), (Ending::Exhausted, None), "n = {n}");
    }
}

#[test]
fn a_partial_board_is_completed_or_left() {
    // Queens at 0 and 3 of a board of 8 have completions; the search keeps the steps it was given
    // unless they are dead.
    let mut machine = queens(8).start();
    for line in ["place 0 0", "place 1 4", "place 2 7"] {
        machine.replay(line).expect("legal");
    }

    let limits = plan(1, 1).limits;
    let mut trajectory = Trajectory::new(machine, &limits);

    let mut rng = TaskRng::new(3);

    let end = loop {
        let line = any_placement(&trajectory, &mut rng);
        trajectory.machine.propose(&line).expect("legal");
        let violations = trajectory.machine.violations(kinds());
        let decision = if violations.is_empty() { Decision::Proceed } else { Decision::Backtrack };
        let verdict = Verdict {
            score: Score::from_tenths(violations.tenths(trajectory.machine.spec())),
            ..Verdict::default()
        };
        if let Next::Ended(end) = trajectory.settle(&line, true, &verdict, decision, &limits) {
            break end;
        }
    };

    let End::Answered(answer) = end else { panic!("{end:?}") };
    assert_eq!(answer["queens"].as_array().expect("a list")[..3], [json!(0), json!(4), json!(7)]);
}

/// An executor that writes as much as it may.
#[test]
fn turns_in_flight_stay_within_the_completion_tokens_together() {
    // A single pass stops at the first line that cannot be carried out.
    let searching = strategies().into_iter().filter(|strategy| !strategy.is_single_pass());
    for (strategy, (fanout, limit)) in searching.flat_map(|strategy| {
        [(1, 5), (4, 1), (4, 2), (4, 40), (4, 333)].map(|case| (strategy, case))
    }) {
        let budget = Budget {
            steps: 1 << 20,
            tokens: 0,
            completion_tokens: limit,
            cost: Cost::ZERO,
            wall_ms: u64::MAX,
        };
        let limits = Limits {
            repetitions_max: u32::MAX,
            stuck_after: u32::MAX,
            ..plan(fanout, 1_000_000).limits
        };
        let plan = RunPlan { strategy, limits, budget, ..plan(fanout, 1_000_000) };
        let outcome =
            simulate(&queens(6), plan, &mut TaskRng::new(limit), |_, _| "back 5".to_owned());
        assert_eq!(outcome.ending, Ending::TokensSpent, "{strategy:?}, {limit}");
        assert_eq!(outcome.usage.completion, limit, "{strategy:?} of {fanout}");
    }
}

#[test]
fn the_limit_that_ends_a_run_is_named() {
    let problem = queens(6);
    let budgets = [
        (
            Budget {
                steps: 50,
                tokens: 0,
                completion_tokens: 0,
                cost: Cost::ZERO,
                wall_ms: u64::MAX,
            },
            Ending::StepsSpent,
        ),
        (
            Budget {
                steps: 1 << 20,
                tokens: 600,
                completion_tokens: 0,
                cost: Cost::ZERO,
                wall_ms: u64::MAX,
            },
            Ending::TokensSpent,
        ),
        (Budget { cost: Cost::from_nanos(300), ..plan(2, 8).budget }, Ending::CostSpent),
        (
            Budget {
                steps: 1 << 20,
                tokens: 0,
                completion_tokens: 0,
                cost: Cost::ZERO,
                wall_ms: 0,
            },
            Ending::WallMsSpent,
        ),
    ];
    for (budget, ending) in budgets {
        let limits = Limits {
            repetitions_max: u32::MAX,
            stuck_after: u32::MAX,
            ..plan(2, 1_000_000).limits
        };
        let plan = RunPlan { limits, budget, ..plan(2, 1_000_000) };
        let outcome = simulate(&problem, plan, &mut TaskRng::new(1), |_, _| "back 5".to_owned());
        assert_eq!((outcome.assurance, outcome.answer, outcome.ending), (None, None, ending));
    }
}

#[test]
fn a_good_step_is_not_excluded_because_its_successor_used_up_its_attempts() {
    let limits =
        Limits { attempts_max: 2, pops_max: 10, snapshot_every_frames: 8, ..Limits::DEFAULT };
    let machine = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 5).start();
    let mut trajectory = Trajectory::new(machine, &limits);

    let first = trajectory.machine.reference().expect("a start");
    trajectory.machine.propose(&first).expect("legal");
    assert_eq!(
        trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &limits),
        Next::Propose
    );

    let bad = Verdict { score: Score::from_tenths(10), ..Verdict::default() };
    for line in ["x", "y"] {
        assert!(trajectory.machine.propose(line).is_err());
        assert_eq!(
            trajectory.settle(line, false, &bad, Decision::Backtrack, &limits),
            Next::Propose
        );
    }

    assert_eq!((trajectory.stack.depth(), trajectory.counts.pops), (0, 1), "the state was popped");
    assert!(!trajectory.excludes(&first));
}

#[test]
fn a_state_with_nothing_left_to_propose_is_popped_as_a_dead_end() {
    let limits =
        Limits { attempts_max: 100, pops_max: 10, snapshot_every_frames: 8, ..Limits::DEFAULT };
    let machine = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 5).start();
    let mut trajectory = Trajectory::new(machine, &limits);
    let first = trajectory.machine.reference().expect("a start");
    let state = trajectory.machine.state();
    trajectory.machine.propose(&first).expect("legal");
    assert_eq!(
        trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &limits),
        Next::Propose
    );

    let nothing_left = Verdict { score: Score::from_tenths(10), ..Verdict::default() };
    assert_eq!(trajectory.settle_exhausted(&nothing_left, &limits), Next::Propose);
    assert_eq!(
        (trajectory.stack.depth(), trajectory.machine.state()),
        (0, state),
        "one proposal is enough"
    );
    assert!(trajectory.excludes(&first) && !trajectory.excludes(""));

    assert_eq!(
        (trajectory.counts.pops, trajectory.counts.backtracks, trajectory.counts.proposals),
        (1, 1, 2)
    );

    assert_eq!(trajectory.settle_exhausted(&nothing_left, &limits), Next::Ended(End::Exhausted));
}

/// Not a search: its choices are not known to be finite, so only the executor can say that nothing
/// is left.
#[test]
fn a_run_whose_executor_has_nothing_left_is_exhausted() {
    let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 5);

    let wrong = ["nonsense", "swap 9 9", "cmp 9 9"];
    let stubborn = |trajectory: &Trajectory, _: &mut TaskRng| {
        wrong.iter().find(|line| !trajectory.excludes(line)).copied().unwrap_or_default().to_owned()
    };
    let outcome = simulate(&problem, plan(2, 8), &mut TaskRng::new(1), stubborn);

    assert_eq!((outcome.ending, outcome.proposals, outcome.rounds), (Ending::Exhausted, 8, 1));
}
