//! Each strategy in a simulator without a runtime.

use std::collections::HashMap;

use super::properties::{plan, simulate, simulate_judged, simulate_with};
use super::*;
use prime_bench::tasks::{self, Difficulty, Kind, Kinds, TaskRng};

/// Kinds of constraints that no legal move violates, even if it is wrong.
fn rules_alone() -> Kinds {
    Kinds::from_iter([Kind::Format, Kind::Terminal])
}

fn hanoi() -> std::sync::Arc<dyn prime_bench::tasks::Problem> {
    let input = serde_json::json!({"n": 4, "from": 0, "to": 2});
    tasks::find("tower-of-hanoi").expect("listed").read_input(&input).expect("valid")
}

/// Legal moves that the state allows and that are not the reference's.
fn legal_but_wrong(trajectory: &Trajectory) -> Option<String> {
    let right = trajectory.machine.reference()?;

    let legal = |line: &String| trajectory.machine.fork().propose(line).is_ok();
    let moves = (1..=4).flat_map(|disc| {
        (0..3).flat_map(move |from| (0..3).map(move |to| format!("move {disc} {from} {to}")))
    });
    moves.filter(|line| *line != right).find(legal)
}

fn ahead(k: u32) -> Strategy {
    Strategy::Ahead(Ahead { k, samples_max: 60, characters_max: 100, step_accuracy: 0.7 })
}

#[test]
fn a_vote_on_each_step_outvotes_an_executor_that_is_often_wrong() {
    // Right with a probability of 70 %, so a single pass of 15 steps succeeds with 0.5 %.
    let erring = |trajectory: &Trajectory, rng: &mut TaskRng| {
        let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
        if rng.chance(7, 10) { right } else { legal_but_wrong(trajectory).unwrap_or(right) }
    };

    let solved = |strategy| {
        let plan = RunPlan { strategy, max_rounds: 1, ..plan(3, 6) };
        let outcomes =
            (0..60).map(|seed| simulate(&hanoi(), plan.clone(), &mut TaskRng::new(seed), erring));
        let right = |outcome: &Outcome| outcome.answer.is_some() && outcome.steps == 15;
        outcomes.filter(right).count()
    };

    let (greedy, voted) = (solved(Strategy::Greedy), solved(ahead(6)));
    // k = 6: a step is wrong with 0.6 %, fifteen with 9 %.
    assert!(greedy <= 5 && voted >= 45, "{greedy} {voted}");
}

#[test]
fn the_result_states_votes_leads_and_red_flags() {
    // Slots 0 and 1 are right, slot 2 writes no action, slot 3 too much.
    let propose = |id: TurnId, trajectory: &Trajectory, _: &mut TaskRng| {
        let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
        let line = match id.trajectory {
            2 => "I think that".to_owned(),
            3 => format!("{right}{}", " ".repeat(200)),
            _ => right,
        };
        (line, None)
    };

    let plan = RunPlan { strategy: ahead(2), ..plan(4, 6) };
    let outcome = simulate_with(&hanoi(), plan, &mut TaskRng::new(1), propose);

    assert!(outcome.is_verified() && outcome.ending == Ending::Agreed);

    let votes = outcome.step_votes.expect("steps were voted on");
    assert_eq!((votes.k, votes.steps, votes.samples, votes.discarded), (2, 15, 60, 30));
    assert_eq!((votes.votes, votes.margin_min, votes.undecided), (30, 2, 0));
    // 15 · 0.09 / (0.49 + 0.09), which is above 1.
    assert_eq!(votes.error_bound, Some(1.0));
}

#[test]
fn a_vote_without_a_winner_takes_the_leader_and_says_so() {
    // Always one against one: no lead, until the samples are spent.
    let propose = |id: TurnId, trajectory: &Trajectory, _: &mut TaskRng| {
        let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
        (
            if id.trajectory == 0 {
                right
            } else {
                legal_but_wrong(trajectory).unwrap_or_default()
            },
            None,
        )
    };

    let rule = Ahead { k: 2, samples_max: 6, characters_max: 100, step_accuracy: 0.0 };
    let plan = RunPlan { strategy: Strategy::Ahead(rule), max_rounds: 1, ..plan(2, 6) };
    let outcome = simulate_judged(&hanoi(), plan, rules_alone(), &mut TaskRng::new(1), propose);

    let votes = outcome.step_votes.expect("steps were voted on");
    assert_eq!((votes.steps, votes.samples, votes.undecided, votes.margin_min), (15, 90, 15, 0));
    assert_eq!(votes.error_bound, None, "nobody said how often a sample is right");

    let garbage =
        RunPlan { strategy: Strategy::Ahead(rule), max_rounds: 1, ..super::properties::plan(2, 6) };
    let outcome = simulate(&hanoi(), garbage, &mut TaskRng::new(1), |_, _| "no action".to_owned());
    assert_eq!((outcome.ending, outcome.answer, outcome.proposals), (Ending::RoundsSpent, None, 6));
}

#[test]
fn a_beam_finds_the_likeliest_trajectory_that_greed_misses() {
    // Two ways to begin: after the likelier first move, only unlikely ones follow.
    let problem = hanoi();

    let first = problem.start().reference().expect("a first step");
    let propose = |id: TurnId, trajectory: &Trajectory, _: &mut TaskRng| {
        let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
        let is_first = trajectory.stack.depth() == 0;
        match (is_first, id.trajectory % 2) {
            (true, 0) => (legal_but_wrong(trajectory).expect("there are two"), Some(-0.1)),
            (true, _) => (right, Some(-0.5)),
            _ => {
                let began_right = trajectory.stack.lines().next() == Some(first.as_str());
                (right, Some(if began_right { -0.1 } else { -1.0 }))
            }
        }
    };

    let run = |width| {
        let strategy = Strategy::Beam(Beam { width, actions: 2 });
        let plan = RunPlan { strategy, max_rounds: 1, ..plan(2 * width, 6) };
        simulate_judged(&problem, plan, rules_alone(), &mut TaskRng::new(1), propose)
    };

    assert_eq!(run(2).steps, 15, "the reference's length");
    assert_ne!(run(1).steps, 15, "a beam of one is greedy");
}

#[test]
fn a_beam_needs_log_probabilities() {
    let plan = RunPlan { strategy: Strategy::Beam(Beam { width: 2, actions: 2 }), ..plan(4, 6) };

    let propose = |_: TurnId, trajectory: &Trajectory, _: &mut TaskRng| {
        (trajectory.machine.reference().unwrap_or_else(|| "done".to_owned()), None)
    };
    let outcome = simulate_with(&hanoi(), plan, &mut TaskRng::new(1), propose);

    let Ending::AgentFailed(reason) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(reason.contains("log-probabilities"), "{reason}");
}

#[test]
fn the_best_of_several_passes_is_the_least_violating() {
    // Two of three passes place a queen where it is attacked, the third never does.
    let problem = super::properties::queens(4);

    let propose = |id: TurnId, trajectory: &Trajectory, _: &mut TaskRng| {
        let depth = trajectory.stack.depth();
        let columns = if id.trajectory == 2 { [1, 3, 0, 2] } else { [1, 3, 0, 0] };
        (format!("place {depth} {}", columns[depth]), None)
    };

    let outcome_of = |strategy| {
        let plan = RunPlan { strategy, max_rounds: 1, early_stop: false, ..plan(3, 6) };
        simulate_with(&problem, plan, &mut TaskRng::new(1), propose)
    };

    let best = outcome_of(Strategy::BestOfN);
    assert!(best.is_verified() && best.ending == Ending::Agreed, "{best:?}");
    assert_eq!(best.votes[0].votes, 1);
    assert_eq!(best.answer.expect("an answer")["queens"], serde_json::json!([1, 3, 0, 2]));

    // Nothing is asked again: one proposal a step.
    assert_eq!((best.proposals, best.retries, best.backtracks, best.pops), (12, 0, 0, 0));
}

#[test]
fn greed_takes_what_comes_and_stops_where_nothing_can_be_carried_out() {
    let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 1);

    let plan = RunPlan { strategy: Strategy::Greedy, max_rounds: 1, ..plan(4, 6) };
    let mut count = 0;

    let outcome = simulate(&problem, plan, &mut TaskRng::new(1), |trajectory, _| {
        count += 1;
        if count == 5 {
            "nonsense".to_owned()
        } else {
            trajectory.machine.reference().expect("open")
        }
    });

    assert_eq!((outcome.ending, outcome.answer, outcome.proposals), (Ending::RoundsSpent, None, 5));
    assert_eq!((outcome.trajectories, outcome.retries, outcome.backtracks), (1, 0, 0));
}

#[test]
fn all_rounds_are_held_unless_rounds_are_adaptive() {
    let rounds = |adaptive_rounds| {
        let plan = RunPlan { adaptive_rounds, ..plan(2, 6) };
        let right = |trajectory: &Trajectory, _: &mut TaskRng| {
            trajectory.machine.reference().expect("open")
        };
        simulate(&hanoi(), plan, &mut TaskRng::new(1), right)
    };
    assert_eq!((rounds(true).rounds, rounds(false).rounds), (1, 3));
    assert!(rounds(false).is_verified() && rounds(false).ending == Ending::Agreed);
}

#[test]
fn turns_of_one_schedule_or_another_come_to_the_same_result() {
    // Which sample comes back first must not decide anything.
    let strategies = [
        ahead(3),
        Strategy::ParticleFilter(ParticleFilter { particles: 4, resample_below: 0.6 }),
        Strategy::Uct(Uct { width: 2, exploration: 0.7, simulations: 50 }),
    ];
    let mut seen: HashMap<(&str, u64), String> = HashMap::new();

    for (strategy, schedule, seed) in strategies.into_iter().flat_map(|strategy| {
        (0..20).flat_map(move |schedule| (0..3u64).map(move |seed| (strategy, schedule, seed)))
    }) {
        let propose = |id: TurnId, trajectory: &Trajectory, _: &mut TaskRng| {
            let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
            let turn =
                seed * 1_000_003 + u64::from(id.trajectory) * 1_009 + trajectory.counts.proposals;
            let line = if TaskRng::new(turn).chance(3, 4) {
                right
            } else {
                legal_but_wrong(trajectory).unwrap_or(right)
            };
            (line, None)
        };

        let plan = RunPlan { strategy, max_rounds: 1, ..plan(4, 6) };
        let outcome = simulate_with(&hanoi(), plan, &mut TaskRng::new(schedule), propose);
        let text = format!("{outcome:?}");
        let first = seen.entry((strategy.name(), seed)).or_insert_with(|| text.clone());
        assert_eq!(*first, text);
    }
}

#[test]
fn solutions_that_differ_agree_where_the_end_is_checked() {
    let queens = tasks::find("n-queens").expect("listed").generate(Difficulty::Easy, 7);

    // Any square of the row; where none is free, what the reference does.
    let propose = |trajectory: &Trajectory, rng: &mut TaskRng| {
        let machine = &trajectory.machine;
        let squares = machine.choices().unwrap_or_default();
        let free: Vec<_> =
            squares.into_iter().filter(|line| machine.fork().propose(line).is_ok()).collect();
        match free.len() {
            0 => machine.reference().unwrap_or_else(|| "done".to_owned()),
            squares => free[rng.index(squares)].clone(),
        }
    };

    let outcomes = |kinds| {
        let plan = RunPlan { confidence: 1.0, early_stop: false, ..plan(4, 20) };
        let judged = |seed| {
            let propose =
                |_, trajectory: &Trajectory, rng: &mut TaskRng| (propose(trajectory, rng), None);
            simulate_judged(&queens, plan.clone(), kinds, &mut TaskRng::new(seed), propose)
        };
        (0..20).map(judged).collect::<Vec<_>>()
    };

    let together = outcomes(Kinds::WITHOUT_TRANSITION);
    for outcome in &together {
        assert!(
            outcome.is_verified() && outcome.rounds == 1 && outcome.votes.len() == 1,
            "{outcome:?}"
        );
        assert!(outcome.votes[0].are_solutions && outcome.votes[0].votes == 4, "{outcome:?}");
    }

    let apart = outcomes(Kinds::from_iter([Kind::Format, Kind::Invariant]));
    assert!(apart.iter().all(|outcome| outcome.votes.iter().all(|vote| !vote.are_solutions)));
    assert!(apart.iter().any(|outcome| outcome.votes.len() > 1), "the solutions do differ");
}
