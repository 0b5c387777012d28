//! A prose message as a custom problem.

use serde_json::json;

use super::answer_form::AnswerForm;
use prime_service::requests::RunRequest;

/// The run that answers in one step, whose line is the answer in this form.
pub fn run_of(statement: &str, form: &AnswerForm) -> RunRequest {
    let instructions =
        form.instructions().map(|instructions| format!("\n\n{instructions}")).unwrap_or_default();

    let mut problem = json!({ "statement": format!("{statement}{instructions}"), "input": {}, "steps": "single" });
    // Without a schema, the answer is any text.
    if let Some(schema) = form.schema() {
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
        for (form, expected) in [
            (
                AnswerForm::json("f", schema).unwrap(),
                json!({"statement": "2 + 2?", "input": {}, "steps": "single", "answer": {"schema": {"type": "integer"}}}),
            ),
            (AnswerForm::TEXT, json!({"statement": "2 + 2?", "input": {}, "steps": "single"})),
        ] {
            let problem = run_of("2 + 2?", &form).problem.unwrap();
            assert_eq!(problem, expected);
            assert!(Custom::read(&problem).is_ok());
        }
    }
}
