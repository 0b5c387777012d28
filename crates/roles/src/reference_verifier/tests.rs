use futures::executor::block_on;
use serde_json::json;

use super::*;
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Problem};
use prime_problems::Custom;
use prime_protocol::{Limits, Score};

const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

fn at(problem: &dyn Problem, lines: &[&str]) -> Trajectory {
    let mut trajectory = Trajectory::new(problem.start(), &LIMITS);
    lines.iter().for_each(|line| trajectory.machine.replay(line).expect("legal"));
    trajectory
}

fn judge(trajectory: &mut Trajectory, line: &str) -> Verdict {
    // A rejected line leaves no candidate; verifiers must handle that.
    let _ = trajectory.machine.propose(line);
    block_on(ReferenceVerifier.judge(trajectory, line)).expect("a verdict")
}

#[test]
fn the_reference_is_never_rejected_and_a_corrupted_line_always_is() {
    for task in tasks::all().chain(tasks::variants()) {
        let problem =
            InstanceId::new(task, Difficulty::Easy, 0, BASE_SEED).expect("in range").problem();
        let mut trajectory = Trajectory::new(problem.start(), &LIMITS);

        for step in 0..30 {
            let Some(line) = trajectory.machine.reference() else { break };
            let slug = task.spec().slug;

            for wrong in
                [String::new(), format!("{line} "), format!("{line}9"), "nonsense".to_owned()]
            {
                // An appended digit may form another valid action, in a search even a right one.
                if trajectory.machine.choices().is_some_and(|choices| choices.contains(&wrong)) {
                    continue;
                }
                let verdict = judge(&mut trajectory, &wrong);
                assert!(
                    verdict.score > Score::ZERO && !verdict.violations.is_empty(),
                    "{slug} {step}: {wrong:?}"
                );
            }

            assert_eq!(judge(&mut trajectory, &line), Verdict::default(), "{slug} {step}: {line}");
            trajectory.machine.commit();
        }
    }
}

#[test]
fn an_inapplicable_line_violates_the_format_and_another_step_the_transition() {
    let problem = tasks::find("bubble-sort")
        .expect("listed")
        .read_input(&json!({"a": [3, 1, 2]}))
        .expect("valid");
    for (line, names) in [
        ("cmp 0 1", &[][..]),
        ("cmp 1 2", &["scan", "next-step"]),
        ("cmp 0 9", &["format"]),
        ("x", &["format"]),
    ] {
        let verdict = judge(&mut at(problem.as_ref(), &[]), line);
        assert_eq!(verdict.violations, names, "{line}");
        assert_eq!(verdict.score > Score::ZERO, !names.is_empty(), "{line}");
    }
}

#[test]
fn in_a_search_an_equally_short_choice_is_right() {
    // A board of 4 has two solutions: 1 3 0 2 and 2 0 3 1. The algorithm starts with column 0, a
    // dead end.
    let input = json!({"n": 4, "order": [0, 1, 2, 3]});
    let queens = tasks::find("n-queens").expect("listed").read_input(&input).expect("valid");

    let clean = |lines: &[&str], line: &str| {
        judge(&mut at(queens.as_ref(), lines), line).score == Score::ZERO
    };

    assert!(clean(&[], "place 0 0"), "the algorithm's own, though it leads nowhere");
    assert!(clean(&[], "place 0 1") && clean(&[], "place 0 2"), "shorter ways to a solution");
    assert!(!clean(&[], "place 0 3"), "no solution begins there, in this order");
    assert!(clean(&["place 0 1"], "place 1 3") && !clean(&["place 0 1"], "place 1 0"));
    assert!(!clean(&["place 0 1"], "back 0"), "no choice, and not the algorithm's");

    // (13 - 9) * (10 - 4) = 24 is one of several solutions; the algorithm finds one of them first.
    let numbers = json!({"numbers": [4, 9, 10, 13], "target": 24});
    let game = tasks::find("24-game").expect("listed");
    let game = game.read_input(&numbers).expect("valid");

    let start = at(game.as_ref(), &[]);
    let right = start.machine.reference().expect("solvable");
    let choices = start.machine.choices().expect("a search");

    let good: Vec<_> = choices
        .iter()
        .filter(|line| judge(&mut at(game.as_ref(), &[]), line).score == Score::ZERO)
        .collect();

    assert!(
        good.contains(&&right) && good.len() > 1 && good.len() < choices.len(),
        "{} of {}",
        good.len(),
        choices.len()
    );
}

#[test]
fn where_the_algorithm_prescribes_nothing_every_step_is_wrong() {
    // After a wrong calculation 24 is unreachable.
    let task = tasks::find("24-game").expect("listed");
    let problem =
        task.read_input(&json!({"numbers": [4, 9, 10, 13], "target": 24})).expect("valid");

    let start = at(problem.as_ref(), &[]);
    let wrong = start.machine.choices().expect("a search").into_iter().find(|line| {
        let mut after = start.machine.fork();
        after.replay(line).is_ok() && after.reference().is_none()
    });
    let wrong = wrong.expect("most choices lead nowhere");

    let mut lost = at(problem.as_ref(), &[&wrong]);
    for line in lost.machine.choices().expect("a search") {
        assert!(judge(&mut lost, &line).score > Score::ZERO, "{line}");
    }
}

#[test]
fn a_clients_problem_is_refused() {
    let problem = Custom::read(&json!({"statement": "Say yes."})).expect("a problem").problem();
    let error = block_on(ReferenceVerifier.judge(&at(problem.as_ref(), &[]), "yes"))
        .expect_err("no algorithm");
    assert_eq!((error.failure, error.is_transient), (Failure::Unsupported, false));
    assert!(error.reason.contains("use verifier `rules`"), "{error}");
}
