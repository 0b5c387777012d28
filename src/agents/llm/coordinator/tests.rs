use futures::executor::block_on;

use super::*;
use crate::agents::Failure;
use crate::agents::llm::fake::{Fake, LIMITS, USAGE, walked};

const THRESHOLDS: Thresholds = Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(6), retries_max: 1 };

fn verdict(tenths: u32) -> Verdict {
    Verdict {
        score: Score::from_tenths(tenths),
        violations: vec!["no-attack".into(), "rows".into()],
        feedback: Some("two queens in a row".to_owned()),
        ..Verdict::default()
    }
}

fn options() -> CoordinatorOptions {
    CoordinatorOptions::new("boss", THRESHOLDS)
}

fn decide(
    model: &Arc<Fake>,
    options: CoordinatorOptions,
    trajectory: &Trajectory,
    verdict: &Verdict,
) -> Result<Ruling, AgentError> {
    let model: Arc<dyn Model> = model.clone();
    let coordinator = LlmCoordinator::new(model, &Templates::default(), options).expect("built-in templates");
    block_on(coordinator.decide(trajectory, "cmp 0 1", verdict))
}

#[test]
fn a_word_is_a_decision_within_the_limits() {
    let fresh = walked("bubble-sort", 2);
    let mut retried = walked("bubble-sort", 2);
    retried.settle("x", false, &verdict(2), Decision::Retry, &LIMITS);
    for (word, trajectory, tenths, decision) in [
        ("Proceed", &fresh, 2, Decision::Proceed),
        ("Proceed", &fresh, 6, Decision::Proceed),
        ("Proceed", &fresh, 7, Decision::Backtrack),
        ("Retry", &fresh, 7, Decision::Retry),
        ("Retry", &retried, 2, Decision::Backtrack),
        ("Proceed", &retried, 2, Decision::Proceed),
        ("Backtrack", &fresh, 2, Decision::Backtrack),
        (" Backtrack\n", &fresh, 2, Decision::Backtrack),
    ] {
        let model = Fake::saying(word);
        let ruling = decide(&model, options(), trajectory, &verdict(tenths)).expect("a decision");
        assert_eq!(ruling, Ruling { decision, usage: USAGE }, "{word:?} at V = {tenths}/10");
    }
}

#[test]
fn whatever_is_no_decision_is_refused() {
    for text in
        ["", "proceed", "PROCEED", "Proceed.", "Proceed Retry", "Proceed\nRetry", "Pro", "継続", "Decision: Retry"]
    {
        let model = Fake::saying(text);
        let error = decide(&model, options(), &walked("bubble-sort", 0), &verdict(2)).expect_err(text);
        assert_eq!((error.failure, error.agent.as_str()), (Failure::Malformed, "coordinator `boss`"), "{error}");
        assert!(error.reason.contains("none of Proceed, Retry and Backtrack"), "{error}");
    }
}

#[test]
fn a_clean_step_proceeds_unasked_unless_asking_is_set() {
    let model = Fake::saying("Retry");
    let trajectory = walked("bubble-sort", 0);
    let ruling = decide(&model, options(), &trajectory, &Verdict::default()).expect("a decision");
    assert_eq!((ruling, model.count()), (Decision::Proceed.into(), 0));
    let asking = CoordinatorOptions { asks_when_clean: true, ..options() };
    let ruling = decide(&model, asking, &trajectory, &Verdict::default()).expect("a decision");
    assert_eq!((ruling.decision, model.count()), (Decision::Retry, 1));
}

#[test]
fn the_prompt_says_what_is_to_be_decided() {
    let mut trajectory = walked("bubble-sort", 3);
    trajectory.settle("x", false, &verdict(2), Decision::Backtrack, &LIMITS);
    trajectory.settle("y", false, &verdict(2), Decision::Retry, &LIMITS);
    let model = Fake::saying("Backtrack");
    let options = CoordinatorOptions { history: History::Window(1), ..options() };
    decide(&model, options, &trajectory, &Verdict { needs_review: true, ..verdict(2) }).expect("a decision");
    let ask = model.last();
    let last = trajectory.stack.lines().last().expect("three steps").to_owned();
    for part in [
        "PROBLEM: Bubble Sort",
        "(the first 2 left out)",
        &format!("\n3. {last}\n"),
        "PROPOSED STEP: cmp 0 1",
        "score V: 0.2",
        "no-attack, rows",
        "Reason: two queens in a row",
        "The verifiers disagree.",
        "V up to 0.3: retry; after 1 retries",
        "V above 0.6",
        "so far: 1 of 1",
        "Rejected in this state so far: 1",
    ] {
        assert!(ask.prompt.contains(part), "{part:?} is missing in:\n{}", ask.prompt);
    }
    assert!(!ask.prompt.contains("\n\n\n"), "{}", ask.prompt);
    assert_eq!(ask.grammar.as_deref(), Some(GRAMMAR));
}
