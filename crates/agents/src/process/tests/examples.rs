//! The Python examples, compared with the equivalent built-in agents.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::{ProcessCoordinator, ProcessExecutor, ProcessVerifier};
use super::{LIMITS, SAMPLING, trajectory};
use crate::{Coordinator, Executor, Failure, RulesVerifier, Sampling, Verifier};
use prime_bench::tasks::{Kind, Kinds};
use prime_protocol::trajectory::{End, Next};
use prime_protocol::{Decision, Score, Thresholds, Verdict};
use prime_settings::Program;

fn example(name: &str, arguments: &[&str]) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/examples").join(name);
    let program = ["python3", "-B", path.to_str().expect("plain")];
    let command = program.iter().chain(arguments).map(|part| (*part).to_owned()).collect();
    Program { command, ..Program::default() }
}

fn kinds() -> Kinds {
    [Kind::Format, Kind::Invariant, Kind::Terminal].into_iter().collect()
}

#[tokio::test]
async fn the_verifier_agrees_with_the_rules() {
    let agent = ProcessVerifier::start("example", &example("verifier.py", &[]), kinds().into())
        .expect("a program is named");

    let rules = RulesVerifier::new(kinds());
    let pegs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (0, 0)];
    let moves = (1..=4).flat_map(|disk| pegs.map(|(from, to)| format!("move {disk} {from} {to}")));
    let others =
        ["cmp 0 2", "swap 0 1", "swap 1 2", "swap 0 3", "pass", "done", "cmp 0 99", "sort", ""];

    let rows: [(&str, Vec<String>, &str); 2] = [
        ("tower-of-hanoi", moves.chain(["move x".to_owned()]).collect(), ""),
        ("bubble-sort", others.map(str::to_owned).to_vec(), "swap 0 1"),
    ];

    let mut found = BTreeSet::new();
    for (slug, wrong, let_through) in rows {
        let mut at = trajectory(slug);
        while let Some(right) = at.machine.reference() {
            // All lines at every step would take too long.
            let tried = if at.stack.depth().is_multiple_of(7) { &wrong[..] } else { &[] };
            for line in tried.iter().chain([&right]) {
                let applicable = at.machine.propose(line).is_ok();
                let expected = rules.judge(&at, line).await.expect("a verdict");
                let verdict = agent.judge(&at, line).await.expect("a verdict");
                assert_eq!(
                    verdict.score,
                    expected.score,
                    "{slug} {line:?} in {} ({applicable})",
                    at.machine.state()
                );

                let [named, known] =
                    [verdict.violations, expected.violations].map(BTreeSet::from_iter);
                assert_eq!(named, known, "{slug} {line:?} in {}", at.machine.state());
                found.extend(named);
            }

            // Accepts a wrong line, to reach states that the algorithm does not.
            let is_time = at.stack.depth() == 3 && !let_through.is_empty();
            let line = if is_time { let_through } else { &right };
            let applicable = at.machine.propose(line).is_ok();
            if at.settle(line, applicable, &Verdict::default(), Decision::Proceed, &LIMITS)
                != Next::Propose
            {
                break;
            }
        }
    }

    let names = ["adjacent", "counts", "format", "inversions", "sorted", "stacking", "tail"];
    assert!(names.iter().all(|name| found.contains(*name)), "{found:?}");

    let error = agent.judge(&trajectory("n-queens"), "place 0 0").await.expect_err("unknown to it");
    assert_eq!((error.failure, error.is_transient), (Failure::Unsupported, false));
    assert!(error.to_string().contains("n-queens"), "{error}");
}

#[tokio::test]
async fn the_executor_solves_tower_of_hanoi() {
    let agent = ProcessExecutor::start("example", &example("executor.py", &[]))
        .expect("a program is named");
    let mut at = trajectory("tower-of-hanoi");
    let expected = at.machine.problem().reference();

    let answer = loop {
        let line = agent.propose(&at, SAMPLING).await.expect("a move").line;
        let applicable = at.machine.propose(&line).is_ok();
        match at.settle(&line, applicable, &Verdict::default(), Decision::Proceed, &LIMITS) {
            Next::Propose => {}
            Next::Ended(End::Answered(answer)) => break answer,
            Next::Ended(end) => panic!("{end:?}"),
        }
    };
    assert_eq!((answer, at.stack.depth() as u64), (expected.answer, expected.steps));
}

#[tokio::test]
async fn the_executors_errors_come_from_the_seed() {
    let program = example("executor.py", &["--error-rate", "0.5"]);
    let agent = ProcessExecutor::start("example", &program).expect("a program is named");
    let at = trajectory("tower-of-hanoi");
    let right = at.machine.reference().expect("a first step");

    let mut errors = 0;
    for seed in 0..40 {
        let sampling = Sampling { seed, ..SAMPLING };
        let line = agent.propose(&at, sampling).await.expect("a move").line;
        assert_eq!(agent.propose(&at, sampling).await.expect("a move").line, line);
        errors += u32::from(line != right);
    }
    assert!((8..=32).contains(&errors), "{errors} of 40");
}

#[tokio::test]
async fn the_coordinator_has_the_policy_of_the_paper() {
    let score = |value| Score::from_value(value).expect("a score");
    let thresholds = Thresholds { soft: score(0.3), hard: score(0.8), retries_max: 2 };

    let program = example("coordinator.py", &[]);
    let agent =
        ProcessCoordinator::start("example", &program, thresholds).expect("a program is named");

    let rows = [
        (0.0, 0, Decision::Proceed),
        (0.3, 1, Decision::Retry),
        (0.3, 2, Decision::Proceed),
        (0.6, 2, Decision::Backtrack),
        (0.8, 1, Decision::Retry),
        (0.801, 0, Decision::Backtrack),
    ];

    let mut at = trajectory("bubble-sort");
    for (value, retries, expected) in rows {
        at.stack.top_mut().retries = retries;
        let verdict = Verdict { score: score(value), ..Verdict::default() };
        let ruling = agent.decide(&at, "cmp 0 1", &verdict).await.expect("a ruling");
        assert_eq!(ruling.decision, expected, "V = {value} after {retries} retries");
    }
}

#[tokio::test]
async fn an_example_refuses_the_wrong_role() {
    let agent = ProcessExecutor::start("example", &example("verifier.py", &[]))
        .expect("a program is named");

    let error = agent.propose(&trajectory("bubble-sort"), SAMPLING).await.expect_err("a verifier");
    assert!(error.to_string().contains("this program is a verifier"), "{error}");
}
