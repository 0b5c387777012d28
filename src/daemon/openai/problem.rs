//! A prose message as a custom problem.

use serde_json::{Value, json};

use crate::daemon::wire::RunRequest;

/// The run that answers in one step, whose line is the answer. `schema` is the JSON Schema of the answer; without one, any
/// text is allowed.
pub fn run_of(statement: &str, schema: Option<&Value>) -> RunRequest {
    let mut problem = json!({ "statement": statement, "input": {}, "steps": "single" });
    if let Some(schema) = schema {
        problem["answer"] = json!({ "schema": schema });
    }
    RunRequest { problem: Some(problem), ..RunRequest::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_problems::Custom;

    #[test]
    fn a_problem_in_words_is_one_step_with_the_form_of_its_answer() {
        let schema = json!({"type": "integer"});
        for (schema, expected) in [
            (
                Some(&schema),
                json!({"statement": "2 + 2?", "input": {}, "steps": "single", "answer": {"schema": {"type": "integer"}}}),
            ),
            (None, json!({"statement": "2 + 2?", "input": {}, "steps": "single"})),
        ] {
            let problem = run_of("2 + 2?", schema).problem.unwrap();
            assert_eq!(problem, expected);
            assert!(Custom::read(&problem).is_ok());
        }
    }
}
