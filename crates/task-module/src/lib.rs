//! Writes a task as a WebAssembly module: implement [`Task`], call [`export!`], build a `cdylib`
//! with `cargo build --release --target wasm32-unknown-unknown`, and run it with
//! `prime-agents run --task-program FILE.wasm`. [`check`] says what is wrong with one, in a test.
//! `docs/your-task.md` has the whole contract.
//!
//! ```
//! use prime_task_module::{Start, Step, Task};
//! use serde_json::{Value, json};
//!
//! struct Count;
//!
//! impl Task for Count {
//!     fn declared() -> Value {
//!         json!({"name": "count", "statement": "Count to the goal by ones and threes."})
//!     }
//!
//!     fn start(_: &Value) -> Result<Start, String> {
//!         Ok(Start::new(json!(0)))
//!     }
//!
//!     fn step(input: &Value, state: &Value, line: &str) -> Result<Step, String> {
//!         let by = line.parse::<u64>().map_err(|_| "write a number".to_owned())?;
//!         let after = state.as_u64().unwrap_or(0) + by;
//!         Ok(Step { done: Some(after) == input["goal"].as_u64(), ..Step::new(json!(after)) })
//!     }
//! }
//!
//! prime_task_module::export!(Count);
//! ```

#![warn(missing_docs)]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod check;
#[doc(hidden)]
pub mod exchange;

pub use check::{Report, check};

/// Version of the protocol.
const VERSION: u64 = 1;

/// A fault of a step that can be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The constraint's name.
    pub name: String,
    /// `critical`, `major` or `minor`; `None` takes the severity from the declaration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<&'static str>,
    /// What the model is told.
    pub message: String,
}

/// The start of a problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    /// The first state, any JSON.
    pub state: Value,
    /// Every line that can be applied, where they can be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// A bound on the steps of traces that end, 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u64>,
    /// The state as a model is shown it, in place of its JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
}

impl Start {
    /// A start in this state, with no further information.
    pub fn new(state: Value) -> Self {
        Self { state, choices: None, steps_max: None, view: None }
    }
}

/// The result of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The state after the line, any JSON.
    pub state: Value,
    /// What the step breaks, up to 31; empty if nothing is wrong with it.
    pub violations: Vec<Violation>,
    /// True if the trace ends.
    pub done: bool,
    /// The answer of a trace that ends; `None` stands for the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Every line that can be applied, where they can be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// The state as a model is shown it, in place of its JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
}

impl Step {
    /// A step to this state with which nothing is wrong.
    pub fn new(state: Value) -> Self {
        Self { state, violations: Vec::new(), done: false, answer: None, choices: None, view: None }
    }
}

/// A task. The results of its functions depend on their arguments alone.
pub trait Task {
    /// The module's declaration of its task: at least `name` and `statement`.
    fn declared() -> Value;

    /// Returns the state in which the problem with this input starts.
    ///
    /// # Errors
    /// Why the input cannot be used.
    fn start(input: &Value) -> Result<Start, String>;

    /// Applies a line in a state.
    ///
    /// # Errors
    /// Why the line cannot be applied.
    fn step(input: &Value, state: &Value, line: &str) -> Result<Step, String>;
}

#[derive(Deserialize)]
struct Request {
    prime: Option<u64>,
    id: Option<u64>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    state: Value,
    line: Option<String>,
}

/// The answer to a request of the protocol, both as JSON.
pub fn answer<T: Task>(request: &[u8]) -> Vec<u8> {
    answer_of::<T>(request).to_string().into_bytes()
}

fn answer_of<T: Task>(request: &[u8]) -> Value {
    let Request { prime, id, input, state, line } = match serde_json::from_slice(request) {
        Ok(request) => request,
        Err(error) => return json!({"id": 0, "error": error.to_string(), "retry": false}),
    };
    if prime.is_some() {
        return json!({"prime": VERSION, "task": T::declared()});
    }

    let told = match &line {
        None => T::start(&input).map(|start| json!(start)),
        Some(line) => T::step(&input, &state, line).map(|step| json!(step)),
    };
    let mut told = told.unwrap_or_else(|refused| json!({ "refused": refused }));
    told["id"] = json!(id);
    told
}

/// Exports a [`Task`] from a `cdylib`, as the functions `alloc` and `answer`.
#[macro_export]
macro_rules! export {
    ($task:ty) => {
        /// The address at which the host writes a request of this many bytes.
        #[unsafe(no_mangle)]
        pub extern "C" fn alloc(length: u32) -> u32 {
            $crate::exchange::room(length)
        }

        /// The address of the answer to the request that was written, and its length.
        #[unsafe(no_mangle)]
        pub extern "C" fn answer(_: u32, _: u32) -> u64 {
            $crate::exchange::answered($crate::answer::<$task>)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count;

    impl Task for Count {
        fn declared() -> Value {
            json!({"name": "count", "statement": "Count."})
        }

        fn start(input: &Value) -> Result<Start, String> {
            input["goal"].as_u64().ok_or("`goal` is missing")?;
            Ok(Start { steps_max: Some(9), ..Start::new(json!(0)) })
        }

        fn step(input: &Value, state: &Value, line: &str) -> Result<Step, String> {
            let after =
                state.as_u64().unwrap_or(0) + line.parse::<u64>().map_err(|_| "a number")?;
            let beyond = after > input["goal"].as_u64().unwrap_or(0);
            let violations = beyond.then(|| Violation {
                name: "beyond".to_owned(),
                severity: Some("major"),
                message: "more than the goal".to_owned(),
            });
            Ok(Step {
                violations: violations.into_iter().collect(),
                done: Some(after) == input["goal"].as_u64(),
                ..Step::new(json!(after))
            })
        }
    }

    #[test]
    fn requests_of_the_protocol_are_answered() {
        for (request, expected) in [
            (
                json!({"prime": 1, "role": "task", "name": "count"}),
                json!({"prime": 1, "task": {"name": "count", "statement": "Count."}}),
            ),
            (json!({"id": 4, "input": {"goal": 3}}), json!({"id": 4, "state": 0, "steps_max": 9})),
            (json!({"id": 5, "input": {}}), json!({"id": 5, "refused": "`goal` is missing"})),
            (
                json!({"id": 6, "input": {"goal": 3}, "state": 1, "line": "2"}),
                json!({"id": 6, "state": 3, "violations": [], "done": true}),
            ),
            (
                json!({"id": 7, "input": {"goal": 3}, "state": 1, "line": "x"}),
                json!({"id": 7, "refused": "a number"}),
            ),
            (
                json!({"id": 8, "input": {"goal": 3}, "state": 2, "line": "2"}),
                json!({
                    "id": 8, "state": 4, "done": false,
                    "violations": [
                        {"name": "beyond", "severity": "major", "message": "more than the goal"},
                    ],
                }),
            ),
        ] {
            let answered = answer::<Count>(request.to_string().as_bytes());
            let answered: Value = serde_json::from_slice(&answered).expect("JSON");
            assert_eq!(answered, expected, "{request}");
        }
        let nonsense: Value = serde_json::from_slice(&answer::<Count>(b"no")).expect("JSON");
        assert_eq!(nonsense["retry"], json!(false));
    }
}
