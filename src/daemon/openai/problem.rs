//! A problem of one's own, in words, as a request for a run.

use serde_json::{Value, json};

use crate::daemon::wire::RunRequest;

/// A problem that stands in messages.
#[derive(Clone, Debug, PartialEq)]
pub struct WordProblem {
    /// What the system said, then the user.
    pub statement: String,
    /// The JSON Schema of the answer, where the client gave one.
    pub answer: Option<Value>,
}

impl WordProblem {
    /// The problem as the field `problem` of a request for a run.
    pub fn field(&self) -> Value {
        let mut problem = json!({ "statement": self.statement, "input": {}, "steps": "single" });
        if let Some(answer) = &self.answer {
            problem["answer"] = json!({ "schema": answer });
        }
        problem
    }
}

/// The run that solves a problem in words.
pub fn run_of(problem: &WordProblem) -> RunRequest {
    RunRequest { problem: Some(problem.field()), ..RunRequest::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_in_words_is_one_step_with_the_form_of_its_answer() {
        let problem = WordProblem { statement: "2 + 2?".to_owned(), answer: Some(json!({"type": "integer"})) };
        assert_eq!(
            problem.field(),
            json!({"statement": "2 + 2?", "input": {}, "steps": "single", "answer": {"schema": {"type": "integer"}}})
        );
        let problem = WordProblem { answer: None, ..problem };
        assert_eq!(problem.field(), json!({"statement": "2 + 2?", "input": {}, "steps": "single"}));
    }
}
