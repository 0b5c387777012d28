//! A problem of one's own, in words, as a request for a run.

use serde_json::{Value, json};

use crate::daemon::error::ApiError;
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
            problem["answer"] = answer.clone();
        }
        problem
    }
}

/// The run that solves a problem in words.
///
/// # Errors
/// 400 always: here is the place where `RunRequest { problem: Some(problem.field()), .. }` is to be given back as soon
/// as runs can have a `problem`.
pub fn run_of(problem: &WordProblem, place: &str) -> Result<RunRequest, ApiError> {
    let length = problem.field()["statement"].as_str().map_or(0, |statement| statement.chars().count());
    let message = format!(
        "is a text of {length} characters that asks for no task, and only tasks can be solved: give \
         {{\"task\": \"n-queens\", \"difficulty\": \"easy\", \"index\": 0}}, {{\"task\": …, \"input\": {{…}}}} or a line of \
         the benchmark, alone or in a fence of json, or the field `prime` with a request for a run; GET /v1/tasks lists \
         the tasks"
    );
    Err(ApiError::bad_field(place, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_in_words_is_one_step_with_the_form_of_its_answer() {
        let problem = WordProblem { statement: "2 + 2?".to_owned(), answer: Some(json!({"type": "integer"})) };
        assert_eq!(
            problem.field(),
            json!({"statement": "2 + 2?", "input": {}, "steps": "single", "answer": {"type": "integer"}})
        );
        let problem = WordProblem { answer: None, ..problem };
        assert_eq!(problem.field(), json!({"statement": "2 + 2?", "input": {}, "steps": "single"}));
    }
}
