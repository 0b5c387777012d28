//! Trajectories and runs that get stuck: they try something else, end soon, and say where.

use std::collections::HashSet;
use std::sync::Arc;

use super::properties::{plan, queens, simulate};
use super::*;
use prime_bench::tasks::{self, Difficulty, Problem, TaskRng};

fn bubble_sort() -> Arc<dyn Problem> {
    tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 5)
}

fn limits(attempts_max: u32, stuck_after: u32) -> Limits {
    Limits { attempts_max, stuck_after, pops_max: 1_000, ..Limits::DEFAULT }
}

fn rejected() -> Verdict {
    Verdict {
        score: Score::from_tenths(10),
        feedback: Some("it is wrong".to_owned()),
        ..Verdict::default()
    }
}

fn reject(trajectory: &mut Trajectory, line: &str, limits: &Limits) -> Next {
    trajectory.settle(line, false, &rejected(), Decision::Backtrack, limits)
}

fn accept(trajectory: &mut Trajectory, line: &str, limits: &Limits) -> Next {
    trajectory.machine.propose(line).expect("legal");
    trajectory.settle(line, true, &Verdict::default(), Decision::Proceed, limits)
}

/// A trajectory at its first state, whose step, which is returned, led to a state that used up its
/// two attempts.
fn abandoned(limits: &Limits) -> (Trajectory, String) {
    let mut trajectory = Trajectory::new(bubble_sort().start(), limits);
    let first = trajectory.machine.reference().expect("a start");

    accept(&mut trajectory, &first, limits);
    for line in ["x", "y"] {
        assert_eq!(reject(&mut trajectory, line, limits), Next::Propose);
    }
    (trajectory, first)
}

#[test]
fn a_step_whose_successor_used_up_its_attempts_is_avoided_but_not_rejected() {
    let limits = limits(2, 100);

    let (mut trajectory, first) = abandoned(&limits);
    assert_eq!(trajectory.stack.depth(), 0);
    assert!(!trajectory.excludes(&first), "it may have been right");
    assert_eq!(trajectory.stack.top().avoided().collect::<Vec<_>>(), [first.as_str()]);

    // Taken again all the same, its successor still knows what was rejected there.
    accept(&mut trajectory, &first, &limits);
    assert!(trajectory.excludes("x") && trajectory.excludes("y") && !trajectory.excludes("z"));
    assert_eq!(reject(&mut trajectory, "z", &limits), Next::Propose, "its attempts begin anew");
    assert_eq!(trajectory.stack.depth(), 1);
}

#[test]
fn an_executor_with_nothing_left_but_abandoned_steps_proves_nothing() {
    let limits = limits(2, 100);
    let (mut trajectory, _) = abandoned(&limits);

    assert_eq!(trajectory.settle_exhausted(&rejected(), &limits), Next::Ended(End::Stuck));
}

#[test]
fn repetitions_use_up_a_state_sooner_than_new_lines() {
    let limits = Limits { repetitions_max: 3, ..limits(100, 1_000) };

    let ends_after = |next_line: fn(u32) -> String| {
        let mut trajectory = Trajectory::new(bubble_sort().start(), &limits);
        (1..1_000).find(|at| reject(&mut trajectory, &next_line(*at), &limits) != Next::Propose)
    };

    assert_eq!(ends_after(|_| "again".to_owned()), Some(4), "the first, and three repetitions");
    assert_eq!(ends_after(|at| format!("line {at}")), Some(100));
}

#[test]
fn a_trajectory_without_progress_gives_up_and_says_where() {
    let limits = limits(4, 40);

    let mut trajectory = Trajectory::new(bubble_sort().start(), &limits);
    for _ in 0..30 {
        let line = trajectory.machine.reference().expect("a long trace");
        accept(&mut trajectory, &line, &limits);
    }

    let state = trajectory.machine.state();

    let end =
        (0..1_000).find_map(|at| match reject(&mut trajectory, &format!("wrong {at}"), &limits) {
            Next::Propose => None,
            Next::Ended(end) => Some((at + 1, end)),
        });

    assert_eq!(end, Some((40, End::Stuck)), "40 proposals after the last step");
    let stuck = trajectory.take_stuck_at().expect("it says where");
    assert_eq!((stuck.depth, &stuck.state), (30, &state), "the deepest state, not those below it");
    assert_eq!(stuck.rejected.len(), 4);
    assert_eq!(
        (&*stuck.rejected[0].line, stuck.rejected[0].reason.as_deref()),
        ("wrong 0", Some("it is wrong"))
    );
}

#[test]
fn progress_restarts_the_count() {
    let limits = limits(1_000, 10);
    let mut trajectory = Trajectory::new(bubble_sort().start(), &limits);

    for round in 0..20 {
        for at in 0..9 {
            assert_eq!(
                reject(&mut trajectory, &format!("wrong {at}"), &limits),
                Next::Propose,
                "round {round}"
            );
        }
        let line = trajectory.machine.reference().expect("a long trace");
        accept(&mut trajectory, &line, &limits);
    }

    assert_eq!((trajectory.stack.depth(), trajectory.take_stuck_at()), (20, None));
}

/// A model that is right up to a depth, and then knows only a list of wrong lines.
fn blind_after(depth: usize, lines: usize) -> impl FnMut(&Trajectory, &mut TaskRng) -> String {
    move |trajectory, _| {
        if trajectory.stack.depth() < depth {
            return trajectory.machine.reference().expect("a long trace");
        }
        let wrong =
            (0..lines).map(|at| format!("wrong {at}")).find(|line| !trajectory.excludes(line));
        wrong.unwrap_or_else(|| "wrong 0".to_owned())
    }
}

#[test]
fn a_run_that_gets_stuck_at_one_state_ends_after_its_round() {
    let limits = limits(16, 64);
    let run = RunPlan { limits, max_rounds: 50, ..plan(4, 1) };

    let outcome = simulate(&bubble_sort(), run, &mut TaskRng::new(3), blind_after(7, 1_000));
    assert_eq!((outcome.ending, outcome.rounds, outcome.answer), (Ending::Stuck, 1, None));

    assert!(outcome.proposals <= 4 * (7 + 64), "{}", outcome.proposals);
    let stuck = outcome.stuck_at.expect("it says where");
    assert_eq!((stuck.depth, stuck.trajectories), (7, 4));
}

#[test]
fn a_later_round_tries_what_earlier_ones_did_not() {
    let limits = limits(16, 16);

    let run = RunPlan { limits, max_rounds: 50, ..plan(1, 1) };
    let mut tried = HashSet::new();
    let mut blind = blind_after(0, 20);

    let outcome = simulate(&bubble_sort(), run, &mut TaskRng::new(3), |trajectory, rng| {
        let line = blind(trajectory, rng);
        tried.insert(line.clone());
        // Found at last, after everything else was rejected.
        if tried.len() == 20 { trajectory.machine.reference().expect("a step") } else { line }
    });

    assert!(outcome.rounds > 1 && outcome.is_verified(), "{outcome:?}");
}

#[test]
fn a_run_that_was_taught_tries_none_of_what_another_had_rejected() {
    let beam = Strategy::Beam(Beam { width: 2, actions: 2 });
    for strategy in [Strategy::Iterative, beam] {
        let limits = limits(16, 16);
        let run = RunPlan { strategy, limits, max_rounds: 1, ..plan(2, 1) };
        // What each proposal found excluded at its state, and what it proposed there.
        let tried = |run: RunPlan, after: usize| {
            let (mut learnt, mut lines) = (Learnt::after(&run.learnt), Vec::new());
            let mut blind = blind_after(after, 1_000);
            let outcome = simulate(&bubble_sort(), run, &mut TaskRng::new(3), |trajectory, rng| {
                let line = blind(trajectory, rng);
                if trajectory.stack.depth() == after {
                    learnt.add(trajectory, Some(Rejection::new(&line, Some("it is wrong"))));
                    lines.push(line.clone());
                }
                line
            });
            assert_eq!(outcome.answer, None, "{strategy:?}");
            (learnt.finish(), lines.into_iter().collect::<HashSet<_>>())
        };

        let (learnt, first) = tried(run.clone(), 7);
        assert_eq!((learnt.len(), learnt[0].depth), (1, 7), "{strategy:?}: one state");
        let (both, second) = tried(RunPlan { learnt, ..run }, 7);
        assert!(!first.is_empty() && !second.is_empty() && first.is_disjoint(&second));
        // A third run would know what both had rejected.
        assert_eq!(both[0].rejected.len(), first.len() + second.len(), "{strategy:?}");
        assert_eq!(both[0].rejected[0].reason.as_deref(), Some("it is wrong"));
    }
}

#[test]
fn what_a_plan_takes_from_an_earlier_run_is_bounded() {
    let trajectory = Trajectory::new(bubble_sort().start(), &limits(2, 100));
    let state = trajectory.machine.state();
    let rejected = |count: usize, length: usize| -> Vec<Rejection> {
        (0..count).map(|at| Rejection::new(&format!("{at:0>length$}"), None)).collect()
    };
    let known = |depth: usize, rejected: Vec<Rejection>| StuckAt {
        depth,
        state: state.clone(),
        rejected,
        trajectories: 3,
    };

    let mut many: Vec<_> = (0..300).map(|depth| known(depth, rejected(1, 8))).collect();
    many[299] = known(299, rejected(5, 8));
    let kept = Learnt::after(&many).finish();
    assert_eq!(kept.len(), 256, "states");
    assert_eq!(kept.last().map(|known| known.depth), Some(299), "most lines come first");
    assert!(kept.iter().all(|known| known.trajectories == 0), "nobody got stuck in the new run");

    let large = known(0, rejected(200, 2_000));
    let small = known(1, rejected(2, 8));
    assert_eq!(Learnt::after(&[large, small.clone()]).finish()[0].depth, 1, "bytes");
}

#[test]
fn nonsense_at_the_first_state_ends_as_stuck_with_the_line() {
    let outcome =
        simulate(&queens(6), plan(2, 5), &mut TaskRng::new(1), |_, _| "nonsense".to_owned());
    assert_eq!((outcome.ending, outcome.rounds, outcome.trajectories), (Ending::Stuck, 1, 2));

    let stuck = outcome.stuck_at.expect("it says where");
    let lines: Vec<_> = stuck.rejected.iter().map(|rejection| &*rejection.line).collect();
    assert_eq!((stuck.depth, lines), (0, vec!["nonsense"]));
}
