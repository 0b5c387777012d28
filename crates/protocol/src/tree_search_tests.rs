//! Tree search in a simulator without a runtime, with results that are known.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::properties::{plan, queens, simulate, simulate_judged};
use super::*;
use crate::Strategy;
use prime_bench::tasks::{self, Kind, Kinds, TaskRng};

fn uct(width: u32, exploration: f64, simulations: u32) -> Strategy {
    Strategy::Uct(Uct { width, exploration, simulations })
}

/// The first column that nobody has tried in this state.
fn next_column(trajectory: &Trajectory, _: &mut TaskRng) -> String {
    let row = trajectory.stack.depth();
    let is_tried = |line: &String| trajectory.stack.top().avoided().any(|known| known == *line);
    let mut places = (0..8).map(|column| format!("place {row} {column}"));
    places.find(|line| !is_tried(line)).expect("fewer attempts than columns")
}

#[test]
fn without_exploration_it_goes_back_as_a_search_in_depth_does() {
    // Counted by hand: the columns of four rows in order need 26 placements, as in any textbook.
    let plan = RunPlan { strategy: uct(4, 0.0, 1_000), max_rounds: 1, ..plan(1, 4) };
    let outcome = simulate(&queens(4), plan, &mut TaskRng::new(1), next_column);

    assert!(outcome.is_verified() && outcome.ending == Ending::Agreed, "{outcome:?}");
    assert_eq!(outcome.answer.expect("an answer")["queens"], json!([1, 3, 0, 2]));
    assert_eq!((outcome.proposals, outcome.steps), (26, 4));

    // The root, 00 12 13 21, and 01 13 20; the last step needs no node. Each simulation but the
    // last ended with a rejection: 26 placements, of which 8 were accepted.
    let counts = outcome.search.expect("a tree counts");
    assert_eq!((counts.states, counts.simulations, counts.merged), (8, 26 - 8 + 1, 0));
}

/// Three transitions that are always enabled, in any order: after n ≥ 1 firings a net is in one of
/// 3 · (n + 1) · n / 2 states, by how often each fired and which was last.
#[test]
fn a_state_is_in_the_tree_once() {
    let input = json!({
        "marking": [9, 9, 9],
        "transitions": [
            {"in": [[0, 1]], "out": [[1, 1]]},
            {"in": [[1, 1]], "out": [[2, 1]]},
            {"in": [[2, 1]], "out": [[0, 1]]},
        ],
        "firings": 9,
    });
    let net = tasks::find("petri-net").expect("listed").read_input(&input).expect("valid");

    // Whatever was not tried, up to five firings; nothing after that.
    let propose = |_: TurnId, trajectory: &Trajectory, rng: &mut TaskRng| {
        let avoided: Vec<&str> = trajectory.stack.top().avoided().collect();
        let lines = ["fire 0", "fire 1", "fire 2"];
        let left: Vec<_> = lines.into_iter().filter(|line| !avoided.contains(line)).collect();
        let is_over = trajectory.stack.depth() == 5;
        (
            if is_over { "no action".to_owned() } else { left[rng.index(left.len())].to_owned() },
            None,
        )
    };

    for seed in 1..4 {
        let strategy = uct(3, 0.5, 1_000_000);
        let plan = RunPlan { strategy, max_rounds: 1, ..plan(1, 3) };
        let kinds = Kinds::from_iter([Kind::Format]);
        let outcome = simulate_judged(&net, plan, kinds, &mut TaskRng::new(seed), propose);

        // 1, 3, 9, 18, 30 and 45 states. Three steps leave each of the first 61; 105 of these 183
        // lead to a new state. Each of the last 45 has three proposals rejected.
        let counts = outcome.search.expect("a tree counts");
        assert_eq!((counts.states, counts.merged), (106, 78));
        assert_eq!((outcome.proposals, outcome.answer), (183 + 3 * 45, None));
        assert_eq!(counts.simulations, 78 + 3 * 45);
    }
}

#[test]
fn simulations_bound_the_search() {
    for (fanout, simulations) in [(1, 1), (2, 5), (4, 7)] {
        let plan =
            RunPlan { strategy: uct(4, 0.5, simulations), max_rounds: 1, ..plan(fanout, 1_000) };
        let garbage = |_: &Trajectory, _: &mut TaskRng| "no action".to_owned();
        let outcome = simulate(&queens(6), plan, &mut TaskRng::new(1), garbage);
        assert_eq!((outcome.answer, outcome.ending), (None, Ending::RoundsSpent));
        assert_eq!(outcome.proposals, u64::from(simulations));
        assert_eq!(outcome.search.expect("counts").simulations, u64::from(simulations));
    }
}

#[test]
fn of_answers_that_are_not_clean_the_least_violating_counts() {
    // Both solutions of a board of four; what begins in column 1 is a little wrong, what begins in
    // column 2 less.
    let solutions = [[1, 3, 0, 2], [2, 0, 3, 1]];
    let problem = queens(4);
    let plan = RunPlan { strategy: uct(2, 0.5, 100), max_rounds: 1, ..plan(1, 2) };

    let mut run = Run::new(Arc::clone(&problem), plan);
    let (mut effects, mut waiting) = (Vec::new(), Vec::new());
    run.start(&mut effects);
    let outcome = loop {
        let mut over = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => waiting.push((id, trajectory)),
                Effect::Finish(outcome) => over = Some(outcome),
                Effect::Ended(..) | Effect::Chosen { .. } | Effect::Voted { .. } => {}
            }
        }
        if let Some(over) = over {
            break over;
        }

        let (id, mut trajectory) = waiting.pop().expect("a turn is in flight");
        let began = trajectory.stack.lines().next().map(str::to_owned);
        let taken = trajectory.stack.top().avoided().count();
        let solution = match began.as_deref() {
            Some("place 0 1") => 0,
            Some(_) => 1,
            None => taken.min(1),
        };
        let row = trajectory.stack.depth();
        let line = format!("place {row} {}", solutions[solution][row]);
        trajectory.machine.propose(&line).expect("legal");

        let score = Score::from_tenths([2, 1][solution]);
        let verdict = Verdict { score, ..Verdict::default() };
        let outcome = TurnOutcome {
            line: &line,
            applicable: true,
            verdict: &verdict,
            // Not clean, so that it would be tried again: here it is weighed instead.
            decision: run.plan().strategy.ruling(Decision::Retry),
            located: None,
            exhausted: false,
            usage: Usage::default(),
            derivation: "",
            logprobs: &[],
            speculations: Speculations::default(),
        };
        run.settle(id, trajectory, outcome, 0, &mut effects);
    };

    assert_eq!(outcome.answer.expect("an answer")["queens"], json!([2, 0, 3, 1]));
    assert!(!outcome.assurance.is_some_and(Assurance::is_verified));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any placement that was not tried: a solution is found wherever there is one, by any number
    /// of simulations at a time.
    #[test]
    fn a_wide_search_is_complete(
        n in 2usize..7, seed in any::<u64>(), fanout in 1u32..5, exploration in 0.0f64..2.0
    ) {
        let any = |trajectory: &Trajectory, rng: &mut TaskRng| {
            let avoided: Vec<&str> = trajectory.stack.top().avoided().collect();
            let choices = trajectory.machine.choices().expect("n-queens is a search");
            let left: Vec<_> =
                choices.iter().filter(|line| !avoided.contains(&line.as_str())).collect();
            if left.is_empty() { String::new() } else { left[rng.index(left.len())].clone() }
        };

        let strategy = uct(64, exploration, 1_000_000);
        let plan = RunPlan { strategy, max_rounds: 1, ..plan(fanout, 1_000) };
        let outcome = simulate(&queens(n), plan, &mut TaskRng::new(seed), any);
        prop_assert_eq!(outcome.answer.is_some(), n >= 4, "{:?}", outcome);
        prop_assert_eq!(outcome.is_verified(), n >= 4);
    }
}
