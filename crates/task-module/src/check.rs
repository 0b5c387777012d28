//! Walks through the states of a problem and reports where the task breaks the contract.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::{Task, answer};

/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Problems after which the walk ends.
const PROBLEMS_MAX: usize = 20;

/// What [`check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// States whose lines were tried.
    pub states: usize,
    /// Steps that end the trace and with which nothing is wrong.
    pub ends: usize,
    /// States that are not an end and list no choices; a search goes back from them.
    pub dead_ends: usize,
    /// The faults, each with the request.
    pub problems: Vec<String>,
}

impl Report {
    /// Returns whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A walk under way.
struct Walk<'a> {
    input: &'a Value,
    report: Report,
}

impl Walk<'_> {
    /// The answer to a request, which is asked twice; `None` if it is none.
    fn asked<T: Task>(&mut self, place: Option<(&Value, &str)>) -> Option<Value> {
        let mut request = json!({"id": 1, "input": self.input});
        let what = match place {
            None => "the start".to_owned(),
            Some((state, line)) => {
                (request["state"], request["line"]) = (state.clone(), json!(line));
                format!("{line:?} in {state}")
            }
        };

        let request = request.to_string();
        let (first, again) = (answer::<T>(request.as_bytes()), answer::<T>(request.as_bytes()));
        if first != again {
            self.found(format!("{what} is answered differently the second time"));
            return None;
        }
        let told: Value = serde_json::from_slice(&first).ok()?;
        let violations = told["violations"].as_array().into_iter().flatten();
        for severity in violations.filter_map(|one| one["severity"].as_str()) {
            if !["critical", "major", "minor"].contains(&severity) {
                self.found(format!("{what}: a severity is critical, major or minor"));
            }
        }
        Some(told)
    }

    fn found(&mut self, problem: String) {
        self.report.problems.push(problem);
    }
}

/// Asks for the start of a problem and for the choices of up to `states` states, each twice.
///
/// Each of a state's choices must be a line and must be applicable, and some end must be reachable
/// if all states are seen. A state without choices is not explored.
pub fn check<T: Task>(input: &Value, states: usize) -> Report {
    let mut walk = Walk { input, report: Report::default() };
    let declared = T::declared();
    for field in ["name", "statement"] {
        if declared[field].as_str().is_none_or(str::is_empty) {
            walk.found(format!("`{field}` is not declared"));
        }
    }

    let Some(start) = walk.asked::<T>(None) else { return walk.report };
    if let Some(refused) = start["refused"].as_str() {
        walk.found(format!("the start refuses the input: {refused}"));
        return walk.report;
    }

    let mut seen = BTreeSet::from([start["state"].to_string()]);
    let mut waiting = VecDeque::from([start]);
    while let Some(here) = waiting.pop_front() {
        if walk.report.states == states || walk.report.problems.len() >= PROBLEMS_MAX {
            return walk.report;
        }
        walk.report.states += 1;
        let Some(choices) = here["choices"].as_array() else { continue };
        walk.report.dead_ends += usize::from(choices.is_empty());

        for line in choices.iter().filter_map(Value::as_str) {
            if line.is_empty() || line.len() > LINE_BYTES_MAX || line.chars().any(char::is_control)
            {
                walk.found(format!("{line:?} among the choices is not a line"));
                continue;
            }
            let Some(after) = walk.asked::<T>(Some((&here["state"], line))) else { continue };
            if let Some(refused) = after["refused"].as_str() {
                let state = &here["state"];
                walk.found(format!("{line:?} in {state} is a choice, but refused: {refused}"));
                continue;
            }

            let is_clean = after["violations"].as_array().is_none_or(Vec::is_empty);
            if after["done"] == json!(true) {
                walk.report.ends += usize::from(is_clean);
            } else if is_clean && seen.insert(after["state"].to_string()) {
                waiting.push_back(after);
            }
        }
    }

    if walk.report.ends == 0 && walk.report.is_right() && walk.report.states > 1 {
        walk.found("no state that can be reached is an end: no run is ever solved".to_owned());
    }
    walk.report
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{Start, Step};

    /// Counts to 3; `MODE` says what is wrong with it.
    struct Wrong<const MODE: u8>;

    static ASKED: AtomicU64 = AtomicU64::new(0);

    impl<const MODE: u8> Task for Wrong<MODE> {
        fn declared() -> Value {
            if MODE == 1 { json!({"name": ""}) } else { json!({"name": "n", "statement": "s"}) }
        }

        fn start(input: &Value) -> Result<Start, String> {
            if input.is_null() {
                return Err("no input".to_owned());
            }
            Ok(Start { choices: Some(vec!["1".to_owned()]), ..Start::new(json!(0)) })
        }

        fn step(_: &Value, state: &Value, _: &str) -> Result<Step, String> {
            let after = state.as_u64().unwrap_or(0) + 1;
            if MODE == 2 && after == 2 {
                return Err("not here".to_owned());
            }
            let state =
                if MODE == 3 { json!(ASKED.fetch_add(1, Ordering::Relaxed)) } else { json!(after) };
            let line = if MODE == 4 { "a\nb" } else { "1" };
            let choices = if MODE == 5 { Vec::new() } else { vec![line.to_owned()] };
            Ok(Step { done: after == 3, choices: Some(choices), ..Step::new(state) })
        }
    }

    fn found<const MODE: u8>() -> String {
        check::<Wrong<MODE>>(&json!({}), 50).problems.join("; ")
    }

    #[test]
    fn what_no_task_may_do_is_found() {
        let right = check::<Wrong<0>>(&json!({}), 50);
        assert_eq!(right, Report { states: 3, ends: 1, ..Report::default() });
        assert!(
            check::<Wrong<0>>(&json!(null), 50).problems[0].contains("refuses the input: no input")
        );
        assert_eq!(check::<Wrong<0>>(&json!({}), 2).states, 2, "the most that was asked for");

        assert!(found::<1>().contains("`name` is not declared; `statement` is not declared"));
        assert!(found::<2>().contains("\"1\" in 1 is a choice, but refused: not here"));
        assert!(found::<3>().contains("\"1\" in 0 is answered differently the second time"));
        assert!(found::<4>().contains("\"a\\nb\" among the choices is not a line"));
        assert!(found::<5>().contains("no state that can be reached is an end"));
        assert_eq!(check::<Wrong<5>>(&json!({}), 50).dead_ends, 1);
    }
}
