//! What a client gets from a run that is over: its answer in the form asked for, or the reason why
//! there is none.
//!
//! An answer that the verifier objected to is never content: a client that looks at nothing else
//! would take it for a solution. An answer that is unrefuted, or that nothing checks (a problem in
//! words, the verifier `none`), is content, as from any other model.

use super::answer_form::{AnswerForm, Formed};
use prime_protocol::Assurance;
use prime_service::runs::RunRecord;

/// The part of a message with the answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivery {
    Content(String),
    Call {
        name: String,
        arguments: String,
    },
    /// Why there is no answer to rely on.
    Refusal(String),
}

/// True if a budget or a deadline ended a run.
pub fn is_spent(record: &RunRecord) -> bool {
    matches!(
        record.result.outcome.as_deref(),
        Some("steps_spent" | "tokens_spent" | "cost_spent" | "wall_ms_spent" | "deadline_passed")
    )
}

impl Delivery {
    /// The delivery of a run that is over.
    pub fn new(record: &RunRecord, form: &AnswerForm) -> Self {
        let (id, result) = (&record.id, &record.result);
        let outcome = result.outcome.as_deref().unwrap_or("unknown");

        let Some(answer) = &result.answer else {
            return Self::Refusal(format!(
                "There is no answer: the run ended with the outcome `{outcome}`. Its steps: GET /v1/runs/{id}/trace"
            ));
        };

        // Records from before assurances say only whether their answer was verified.
        let assurance = result.assurance.unwrap_or(Assurance::Violated);
        if !result.verified && assurance == Assurance::Violated {
            return Self::Refusal(format!(
                "There is no answer to rely on: the verifier `{}` objects to the best one. The run ended with the outcome \
                 `{outcome}`. The answer: GET /v1/runs/{id}",
                result.verifier
            ));
        }

        match form.of(answer) {
            Ok(Formed::Text(text)) => Self::Content(text),
            Ok(Formed::Call { name, arguments }) => Self::Call { name, arguments },
            Err(reason) => Self::Refusal(format!(
                "The answer does not have the form that the request asks for: {reason}. A task of the benchmark defines \
                 the form of its answer itself. The answer: GET /v1/runs/{id}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A record that is over.
    fn record(answer: &Value, assurance: &str) -> RunRecord {
        serde_json::from_value(json!({
            "id": "run_x", "status": "unverified", "resumed": 0, "created_at": "", "updated_at": "", "events": 1,
            "chain": "", "task": "n-queens", "instance": "input", "answer": answer,
            "verified": assurance == "verified", "assurance": assurance,
            "verifier": "rules", "checked_kinds": ["format"], "outcome": "rounds_spent", "steps": 3, "proposals": 4,
            "retries": 0, "backtracks": 0, "pops": 0, "rounds": 1, "trajectories": 1, "votes": [], "agreement": 0.0,
            "tokens": {"prompt": 5, "completion": 2}, "wall_ms": 1, "seed": 1,
            "agents": {"executor": "reference", "verifier": "rules", "coordinator": "threshold"},
            "config_hash": "c", "notes": [],
        }))
        .unwrap()
    }

    fn refusal(delivery: Delivery) -> String {
        match delivery {
            Delivery::Refusal(reason) => reason,
            other => panic!("{other:?} is no refusal"),
        }
    }

    #[test]
    fn an_answer_that_the_verifier_objects_to_is_a_refusal() {
        let of = |answer: Value, assurance| {
            Delivery::new(&record(&answer, assurance), &AnswerForm::TEXT)
        };
        let content = |text: &str| Delivery::Content(text.to_owned());

        assert_eq!(of(json!([1]), "verified"), content("[1]"));
        assert_eq!(of(json!([1]), "unrefuted"), content("[1]"));
        assert_eq!(of(json!("x"), "unchecked"), content("x"), "nothing checks it");

        let objected = refusal(of(json!([1]), "violated"));
        assert!(
            objected.contains("objects to the best one") && objected.contains("/v1/runs/run_x"),
            "{objected}"
        );

        for assurance in ["unchecked", "violated"] {
            let empty = refusal(of(Value::Null, assurance));
            assert!(empty.contains("no answer") && empty.contains("`rounds_spent`"), "{empty}");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_a_refusal() {
        let form = AnswerForm::json("f", json!({"type": "integer"})).unwrap();
        let other = refusal(Delivery::new(&record(&json!([1]), "verified"), &form));
        assert!(other.contains("form") && other.contains("[1]"), "{other}");
    }
}
