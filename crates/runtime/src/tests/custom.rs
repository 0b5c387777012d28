//! Runs of custom problems.

use serde_json::json;

use super::*;
use prime_problems::Custom;
use prime_protocol::Ending;

/// Gives wrong answers until the feedback has named each constraint, then a right one.
#[derive(Default)]
struct Learner(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl AsyncExecutor for Learner {
    async fn propose(&self, trajectory: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);

        heard.extend(trajectory.feedback.clone());

        let line = match (trajectory.stack.depth(), heard.len()) {
            (0, _) => "try small factors",
            (_, 0) => "answer: 3 times 5",
            (_, 1) => r#"answer: {"x": 15, "y": 1}"#,
            (_, 2) => r#"answer: {"x": 2, "y": 7}"#,
            _ => r#"answer: {"x": 3, "y": 5}"#,
        };
        Ok(Proposal { line: line.to_owned(), ..Proposal::default() })
    }
}

#[test]
fn wrong_answers_are_rejected_with_feedback_that_names_the_constraint() {
    let problem = Custom::read(&json!({
        "statement": "Write n as a product of two factors above 1.",
        "input": {"n": 15},
        "steps": "stepwise",
        "answer": {"schema": {"type": "object", "required": ["x", "y"]}},
        "constraints": [
            {"name": "product", "severity": "critical", "check": "answer.x * answer.y == input.n"},
            {"name": "proper", "severity": "critical", "check": "answer.x > 1 && answer.y > 1"},
            {"name": "brief", "severity": "minor", "check": "size(state.steps) < 3"},
        ],
    }))
    .expect("a problem")
    .problem();

    let heard = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&heard);

    let outcome = in_system(async move {
        let runtime = shared(checked(move |_| Learner(Arc::clone(&told))).0);
        outcome_of(runtime.submit(submission(&problem, plan(1)))).await
    });

    assert_eq!((&outcome.ending, outcome.is_verified()), (&Ending::Agreed, true));
    assert_eq!(outcome.answer, Some(json!({"x": 3, "y": 5})));
    assert_eq!((outcome.steps, outcome.backtracks), (2, 3));

    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(heard[0].starts_with("format: ") && heard[0].contains("not JSON"), "{heard:?}");
    assert_eq!(heard[1], "proper: answer.x > 1 && answer.y > 1: answer.x is 15, answer.y is 1");
    assert_eq!(
        heard[2],
        "product: answer.x * answer.y == input.n: answer.x is 2, answer.y is 7, input.n is 15"
    );
}
