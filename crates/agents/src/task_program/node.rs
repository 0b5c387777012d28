//! A state that a program has returned, and what is known about the lines that lead on from it.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;

use prime_bench::tasks::{Kind, Severity};

/// What is wrong with a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub name: String,
    pub kind: Kind,
    pub severity: Severity,
    pub message: String,
}

/// A state, and what was wrong with the step to it.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Compact JSON: a value in memory takes many times its text.
    pub state: Box<str>,
    /// Bytes of all states up to this one.
    pub path_bytes: usize,
    pub found: Vec<Found>,
    pub choices: Option<Vec<String>>,
    pub view: Option<String>,
    pub hint: Option<String>,
    /// The answer, if the trace ends here.
    pub answer: Option<Value>,
    known: Mutex<BTreeMap<Box<str>, Known>>,
}

/// What a line does in a state.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// It cannot be applied, and why.
    Refused(Arc<str>),
    Leads(Arc<Node>),
}

/// What was answered about a line.
#[derive(Debug)]
struct Known {
    digest: u64,
    step: Kept,
}

#[derive(Debug)]
enum Kept {
    Step(Step),
    /// After another line was taken: the step is still known while a trajectory is in its state.
    Left(Weak<Node>),
}

impl Node {
    /// A state of which nothing else is known.
    pub fn alone(state: &Value) -> Self {
        let state: Box<str> = state.to_string().into();
        Self { path_bytes: state.len(), state, ..Self::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this line does, if that was asked and is still kept.
    pub fn step(&self, line: &str) -> Option<Step> {
        match &self.known().get(line)?.step {
            Kept::Step(step) => Some(step.clone()),
            Kept::Left(node) => node.upgrade().map(Step::Leads),
        }
    }

    /// The digest of what was answered about this line, if it was ever asked.
    pub fn digest(&self, line: &str) -> Option<u64> {
        self.known().get(line).map(|known| known.digest)
    }

    /// Notes an answer.
    pub fn learn(&self, line: &str, digest: u64, step: Step) {
        self.known().insert(line.into(), Known { digest, step: Kept::Step(step) });
    }

    /// Bytes of the states that are kept because proposals lead to them.
    pub fn successor_bytes(&self) -> usize {
        let bytes = |known: &Known| match &known.step {
            Kept::Step(Step::Leads(node)) => node.state.len(),
            Kept::Step(Step::Refused(_)) | Kept::Left(_) => 0,
        };
        self.known().values().map(bytes).sum()
    }

    /// Notes that a line was taken: the states that other lines lead to are no longer kept.
    pub fn leave(&self) {
        for known in self.known().values_mut() {
            if let Kept::Step(Step::Leads(node)) = &known.step {
                known.step = Kept::Left(Arc::downgrade(node));
            }
        }
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(flag) => (1_u8, flag).hash(hasher),
        Value::Number(number) => (2_u8, number.to_string()).hash(hasher),
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Object(fields) => {
            (5_u8, fields.len()).hash(hasher);
            // In JSON the order of an object's fields says nothing.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in sorted {
                name.hash(hasher);
                hash_value(value, hasher);
            }
        }
    }
}

/// A digest that is equal for lists of equal JSON, whatever the order of fields, within this
/// process.
pub(super) fn digest_of(values: &[&Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    values.iter().for_each(|value| hash_value(value, &mut hasher));
    hasher.finish()
}

/// Bytes of a value as compact JSON.
pub(super) fn bytes_of(value: &Value) -> usize {
    struct Counter(usize);

    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("invariant: values serialise");
    counter.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_json_has_equal_digests_whatever_the_order_of_fields() {
        let one = json!({"a": [1, 2.5, null], "b": {"c": "x", "d": true}});
        let same: Value =
            serde_json::from_str(r#"{"b": {"d": true, "c": "x"}, "a": [1, 2.5, null]}"#).unwrap();
        assert_eq!(digest_of(&[&one]), digest_of(&[&same]));
        for other in [
            json!({"a": [1, null, 2.5], "b": {"c": "x", "d": true}}),
            json!({"a": [1, 2.5, null], "b": {"c": "x", "d": "true"}}),
            json!([]),
            json!({}),
            json!(""),
            json!(0),
        ] {
            assert_ne!(digest_of(&[&one]), digest_of(&[&other]), "{other}");
        }
    }

    #[test]
    fn the_bytes_of_a_value_are_those_of_its_text() {
        assert_eq!(bytes_of(&json!({"a": [1, "é"], "b": null})), 23);
    }

    #[test]
    fn a_state_that_is_left_keeps_only_the_steps_whose_states_are_in_use() {
        let at = Node::alone(&json!(0));
        let taken = Arc::new(Node::alone(&json!([1, 2])));
        at.learn("go", 7, Step::Leads(Arc::clone(&taken)));
        at.learn("stay", 8, Step::Leads(Arc::new(Node::alone(&json!([3])))));
        at.learn("no", 9, Step::Refused("never".into()));
        assert_eq!(at.successor_bytes(), 8);

        at.leave();
        assert_eq!(at.successor_bytes(), 0);
        assert!(matches!(at.step("go"), Some(Step::Leads(node)) if Arc::ptr_eq(&node, &taken)));
        assert!(at.step("stay").is_none());
        assert!(matches!(at.step("no"), Some(Step::Refused(_))));
        // What was answered stays known, so that another answer is noticed.
        assert_eq!((at.digest("stay"), at.digest("back")), (Some(8), None));
    }
}
