//! Judges a series of requests with a limit on the work of all of them together. A reference answer
//! is computed once per instance.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{VerifyError, VerifyRequest, judge_caught};
use crate::tasks::{Machine, Problem};

/// Steps between two calls of `may_go_on`.
const ASK_EVERY: u64 = 256;
/// Instances kept in memory, with their reference answers. A series about more instances computes
/// some of them again.
const INSTANCES_MAX: usize = 64;

/// The instances of tasks that are not built in, by name and input; `None` if there is no such
/// task.
pub type OwnTasks<'a> =
    dyn Fn(&str, Option<&Value>) -> Option<Result<Arc<dyn Problem>, VerifyError>> + 'a;

/// Judges requests until the step budget is spent or the caller stops it.
pub struct Judge<'a> {
    steps_max: u64,
    steps: u64,
    may_go_on: &'a dyn Fn() -> Result<(), String>,
    instances: HashMap<String, Instance>,
    own: Option<&'a OwnTasks<'a>>,
}

#[derive(Clone)]
pub(super) struct Instance {
    pub problem: Arc<dyn Problem>,
    /// The reference answer, `None` if the reference has none, once it is known.
    pub reference: Option<Arc<Option<Value>>>,
}

impl<'a> Judge<'a> {
    /// `steps_max` limits the steps of references and of submitted lines, over all requests.
    /// `may_go_on` is asked before each request, and every 256 steps within one; its error is
    /// returned for the remaining requests.
    #[must_use]
    pub fn new(steps_max: u64, may_go_on: &'a dyn Fn() -> Result<(), String>) -> Self {
        Self { steps_max, steps: 0, may_go_on, instances: HashMap::new(), own: None }
    }

    /// Finds tasks that are not built in here too.
    #[must_use]
    pub fn with_own(self, own: &'a OwnTasks<'a>) -> Self {
        Self { own: Some(own), ..self }
    }

    /// The source of tasks that are not built in.
    pub(super) fn own(&self) -> Option<&'a OwnTasks<'a>> {
        self.own
    }

    /// Waits for the answer of a task's program about a line.
    pub(super) fn foresee(&self, machine: &mut dyn Machine, line: &str) -> Result<(), VerifyError> {
        // A program may take seconds for each line.
        self.ask()?;
        machine.foresee_blocking(line).map_err(|error| VerifyError::at("task", error))
    }

    /// Judges a step or an answer.
    ///
    /// # Errors
    /// Names the field that is missing, contradicts another, or is out of range, or the limit that
    /// is reached.
    pub fn judge(&mut self, request: &VerifyRequest) -> Result<super::Verification, VerifyError> {
        self.ask()?;
        judge_caught(self, request)
    }

    /// Counts a step.
    pub(super) fn step(&mut self) -> Result<(), VerifyError> {
        if self.steps >= self.steps_max {
            let message = format!(
                "one request may take {} steps of references and lines, and they are spent: send the rest in another",
                self.steps_max
            );
            return Err(VerifyError { field: None, message });
        }

        self.steps += 1;
        if self.steps.is_multiple_of(ASK_EVERY) { self.ask() } else { Ok(()) }
    }

    fn ask(&self) -> Result<(), VerifyError> {
        (self.may_go_on)().map_err(|message| VerifyError { field: None, message })
    }

    /// The instance of a name, made if it is not remembered.
    pub(super) fn instance(
        &mut self,
        name: &str,
        make: impl FnOnce() -> Result<Arc<dyn Problem>, VerifyError>,
    ) -> Result<Instance, VerifyError> {
        if let Some(known) = self.instances.get(name) {
            return Ok(known.clone());
        }
        let made = Instance { problem: make()?, reference: None };
        // Their use is not recorded, so all are dropped.
        if self.instances.len() >= INSTANCES_MAX {
            self.instances.clear();
        }

        self.instances.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    /// Remembers a reference answer.
    pub(super) fn remember(&mut self, name: &str, reference: Arc<Option<Value>>) {
        if let Some(instance) = self.instances.get_mut(name) {
            instance.reference = Some(reference);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::super::{AnswerTest, AnswerVerdict, Verification};
    use super::*;

    /// An answer to the puzzle with this many discs, which takes 2^n - 1 steps.
    fn hanoi(discs: u32, to: u32) -> VerifyRequest {
        let input = json!({"n": discs, "from": 0, "to": to});
        serde_json::from_value(json!({"task": "tower-of-hanoi", "input": input, "answer": {}}))
            .unwrap()
    }

    const WRONG: Result<Verification, VerifyError> =
        Ok(Verification::Answer(AnswerVerdict { right: false, judged_by: AnswerTest::Reference }));

    #[test]
    fn a_reference_is_followed_once_per_instance() {
        let mut judge = Judge::new(1_023, &|| Ok(()));
        for _ in 0..10_000 {
            assert_eq!(judge.judge(&hanoi(10, 2)), WRONG);
        }
        assert_eq!(judge.steps, 1_023);
    }

    #[test]
    fn the_steps_of_a_series_are_limited() {
        let mut judge = Judge::new(2_000, &|| Ok(()));
        assert_eq!(judge.judge(&hanoi(10, 2)), WRONG);

        let error = judge.judge(&hanoi(10, 1)).unwrap_err();
        assert!(error.field.is_none() && error.message.contains("2000 steps"), "{error}");
        assert!(judge.judge(&hanoi(1, 1)).is_err(), "nothing is left");
        assert_eq!(judge.judge(&hanoi(10, 2)), WRONG, "what is known costs nothing");

        let lines = json!({
            "task": "bubble-sort", "input": {"a": [3, 1, 2]}, "actions": ["cmp 0 1"], "action": "swap 0 1",
        });
        let lines: VerifyRequest = serde_json::from_value(lines).unwrap();
        assert!(judge.judge(&lines).unwrap_err().message.contains("2000 steps"), "lines count too");
    }

    #[test]
    fn a_judge_that_may_not_go_on_stops_within_a_few_steps() {
        let asked = Cell::new(0);
        let may_go_on = || {
            asked.set(asked.get() + 1);
            if asked.get() < 4 { Ok(()) } else { Err("enough".to_owned()) }
        };

        let mut judge = Judge::new(u64::MAX, &may_go_on);
        assert_eq!(judge.judge(&hanoi(20, 2)).unwrap_err().message, "enough");
        assert_eq!(judge.steps, 3 * ASK_EVERY);
    }

    #[test]
    fn the_number_of_remembered_instances_is_limited() {
        let mut judge = Judge::new(u64::MAX, &|| Ok(()));
        for length in 1..500_usize {
            let input = json!({"a": vec![1; length % 100 + 1], "k": length});
            judge
                .instance(&input.to_string(), || super::super::problem(&hanoi(1, 2), None))
                .unwrap();
        }
        assert!(judge.instances.len() <= INSTANCES_MAX);
    }
}
