//! Whether a problem's checks tell answers apart. A tautology accepts every answer, and so do
//! checks of the steps alone: what they accept is no more right than anything else.

use super::custom::Custom;
use super::definition::StepMode;
use prime_bench::tasks::{Kinds, Machine, Problem, Violations};

/// Answers of every shape that checks are likely to tell apart.
const ANSWERS: [&str; 10] = ["a", "0", "1", "-1", "7", "\"\"", "\"a\"", "null", "[]", "{}"];
/// Lines that are taken, where the problem takes them, before the answers are tried again.
const STEPS: [&str; 3] = ["a", "1", "a 1"];

/// What the checks find in a line; `None` if it is not one.
fn found(machine: &mut dyn Machine, line: &str) -> Option<Violations> {
    machine.propose(line).ok()?;
    Some(machine.violations(Kinds::ALL))
}

/// Whether a check that reads the work refuses any of the answers that have the right form, in
/// the state without steps or after a few. If none of them has it, that cannot be tried, and a
/// check that reads the work counts.
pub fn tell_answers_apart(problem: &Custom) -> bool {
    let of_work: Vec<usize> = problem.checks().that_read_work().collect();
    if of_work.is_empty() {
        return false;
    }

    let mut machine = problem.start();
    let mut before = Violations::NONE;
    let mut has_tried = false;
    // The state without steps, and the one after all that are taken.
    for steps in [&[][..], &STEPS] {
        for step in steps {
            if let Some(broken) = found(machine.as_mut(), step) {
                before = broken;
                machine.commit();
            }
        }

        for answer in ANSWERS {
            let line = match problem.as_definition().steps {
                StepMode::Single => answer.to_owned(),
                StepMode::Stepwise => format!("answer: {answer}"),
            };
            let Some(broken) = found(machine.as_mut(), &line) else { continue };
            has_tried = true;
            // Bit 0 of a set of violations is `format`. What the steps broke already is not due to
            // the answer.
            let refuses = |place: &usize| broken.contains(place + 1) && !before.contains(place + 1);
            if of_work.iter().any(refuses) {
                return true;
            }
        }
        if problem.as_definition().steps == StepMode::Single {
            break;
        }
    }
    !has_tried
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tells(form: &Value, steps: &str, check: &str) -> bool {
        let mut problem = json!({
            "statement": "What is 2 + 2?",
            "steps": steps,
            "input": {"a": 2},
            "constraints": [{"name": "c", "severity": "minor", "check": check}],
        });
        if !form.is_null() {
            problem["answer"] = form.clone();
        }
        Custom::read(&problem).expect(check).problem().has_checks()
    }

    #[test]
    fn a_check_that_no_answer_breaks_makes_nothing_verified() {
        let text = json!({"schema": {"type": "string"}});
        for (form, steps, check) in [
            (&Value::Null, "single", "answer == answer"),
            (&Value::Null, "single", "true || answer == 'z'"),
            (&Value::Null, "single", "state == state"),
            (&Value::Null, "single", "size(answer) >= 0"),
            (&Value::Null, "single", "[answer].exists(a, true)"),
            (&Value::Null, "single", "input.a == 2 || state.answer == 'x'"),
            // It may fail, but of no answer.
            (&Value::Null, "single", "input.a == 3"),
            (&Value::Null, "stepwise", "size(state.steps) < 50"),
            (&Value::Null, "stepwise", "state.steps.all(s, s.matches('^[0-9]+$'))"),
            (&text, "stepwise", "size(answer) >= 0"),
        ] {
            assert!(!tells(form, steps, check), "{check}");
        }
    }

    #[test]
    fn a_check_that_some_answer_breaks_counts() {
        let number = json!({"schema": {"type": "integer"}});
        let done = json!({"pattern": "done"});
        for (form, steps, check) in [
            (&Value::Null, "single", "answer == '4'"),
            (&Value::Null, "single", "input.a == 3 || state.answer == '4'"),
            (&number, "single", "answer > 0"),
            (&number, "stepwise", "answer == size(state.steps)"),
            // It holds of every answer as long as there are no steps.
            (&Value::Null, "stepwise", "size(state.steps) == 0 || answer == 'x'"),
            (&Value::Null, "stepwise", "state.steps.all(s, s != answer)"),
            // The only answer there is: the steps decide.
            (&done, "stepwise", "state.steps.all(s, s.matches('^[0-9]+$'))"),
        ] {
            assert!(tells(form, steps, check), "{check}");
        }
    }
}
