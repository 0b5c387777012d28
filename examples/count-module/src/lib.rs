//! Counting to a goal exactly, by ones and threes.

use prime_task_module::{Start, Step, Task, Violation, export};
use serde_json::{Value, json};

struct Count;

const CHOICES: [&str; 2] = ["1", "3"];

fn choices() -> Option<Vec<String>> {
    Some(CHOICES.map(str::to_owned).to_vec())
}

impl Task for Count {
    fn declared() -> Value {
        json!({
            "name": "count", "title": "Counting",
            "statement": "Count to the goal exactly, by ones and threes.",
            "actions": ["<1|3>"],
            "constraints": [
                {"name": "beyond", "severity": "critical", "meaning": "not more than the goal"},
            ],
            "example": {"goal": 7},
        })
    }

    fn start(input: &Value) -> Result<Start, String> {
        input["goal"].as_u64().ok_or("`goal` must be an integer from 0 on")?;
        let (choices, steps_max) = (choices(), Some(1_000_000));
        Ok(Start { choices, steps_max, ..Start::new(json!(0)) })
    }

    fn step(input: &Value, state: &Value, line: &str) -> Result<Step, String> {
        if !CHOICES.contains(&line) {
            return Err("write 1 or 3".to_owned());
        }
        let by: u64 = line.parse().map_err(|_| "write 1 or 3")?;
        let (goal, after) = (input["goal"].as_u64(), state.as_u64().unwrap_or(0) + by);

        let beyond = Violation {
            name: "beyond".to_owned(),
            severity: None,
            message: format!("{after} is more than the goal"),
        };
        let violations = if Some(after) > goal { vec![beyond] } else { Vec::new() };
        let done = Some(after) == goal;
        let choices = if done { None } else { choices() };
        Ok(Step { violations, done, choices, ..Step::new(json!(after)) })
    }
}

export!(Count);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wrong_with_it() {
        let report = prime_task_module::check::<Count>(&json!({"goal": 7}), 100);
        assert!(report.is_right(), "{report:?}");
        // States 0 to 6 are not ends; 6 and 4 lead to 7.
        assert_eq!((report.states, report.ends, report.dead_ends), (7, 2, 0));
    }
}
