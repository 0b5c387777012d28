use futures::executor::block_on;

use super::*;
use crate::Failure;
use crate::llm::fake_model::{FakeModel, LIMITS, USAGE, advanced};

const THRESHOLDS: Thresholds =
    Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(6), retries_max: 1 };

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
    model: &Arc<FakeModel>,
    options: CoordinatorOptions,
    trajectory: &Trajectory,
    verdict: &Verdict,
) -> Result<Ruling, AgentError> {
    let model: Arc<dyn Model> = model.clone();
    let coordinator =
        LlmCoordinator::new(model, &Templates::default(), options).expect("built-in templates");
    block_on(coordinator.decide(trajectory, "cmp 0 1", verdict))
}

#[test]
fn a_word_is_a_decision_within_the_thresholds() {
    let fresh = advanced("bubble-sort", 2);
    let mut retried = advanced("bubble-sort", 2);
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
        let model = FakeModel::saying(word);

        let ruling = decide(&model, options(), trajectory, &verdict(tenths)).expect("a decision");
        assert_eq!(
            ruling,
            Ruling { usage: USAGE, ..decision.into() },
            "{word:?} at V = {tenths}/10"
        );
    }
}

#[test]
fn anything_but_a_decision_is_malformed() {
    for text in [
        "",
        "proceed",
        "PROCEED",
        "Proceed.",
        "Proceed Retry",
        "Proceed\nRetry",
        "Pro",
        "継続",
        "Decision: Retry",
    ] {
        let model = FakeModel::saying(text);
        let error =
            decide(&model, options(), &advanced("bubble-sort", 0), &verdict(2)).expect_err(text);
        assert_eq!(
            (error.failure, error.agent.as_str()),
            (Failure::Malformed, "coordinator `boss`"),
            "{error}"
        );
        assert!(error.reason.contains("not Proceed, Retry or Backtrack"), "{error}");
    }
}

#[test]
fn a_clean_step_proceeds_without_the_model_unless_configured() {
    let model = FakeModel::saying("Retry");
    let trajectory = advanced("bubble-sort", 0);
    let ruling = decide(&model, options(), &trajectory, &Verdict::default()).expect("a decision");
    assert_eq!((ruling, model.count()), (Decision::Proceed.into(), 0));

    let asking = CoordinatorOptions { ask_on_clean_steps: true, ..options() };
    let ruling = decide(&model, asking, &trajectory, &Verdict::default()).expect("a decision");
    assert_eq!((ruling.decision, model.count()), (Decision::Retry, 1));
}

#[test]
fn the_prompt_has_the_verdict_and_the_policy() {
    let mut trajectory = advanced("bubble-sort", 3);
    trajectory.settle("x", false, &verdict(2), Decision::Backtrack, &LIMITS);
    trajectory.settle("y", false, &verdict(2), Decision::Retry, &LIMITS);

    let model = FakeModel::saying("Backtrack");
    let options = CoordinatorOptions { history: History::Window(1), ..options() };
    decide(&model, options, &trajectory, &Verdict { needs_review: true, ..verdict(2) })
        .expect("a decision");

    let request = model.last();
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
        assert!(request.prompt.contains(part), "{part:?} is missing in:\n{}", request.prompt);
    }
    assert!(!request.prompt.contains("\n\n\n"), "{}", request.prompt);
    assert_eq!(request.grammar.as_deref(), Some(GRAMMAR));
}
