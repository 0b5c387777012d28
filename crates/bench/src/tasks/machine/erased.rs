//! The object-safe interface for every typed [`Task`].

use std::any::Any;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{AnyTask, BadInput, Machine, Problem, Refusal, Snapshot};
use crate::output::value::exact;
use crate::tasks::action::TaskAction;
use crate::tasks::page::Page;
use crate::tasks::rng::TaskRng;
use crate::tasks::spec::{Difficulty, Kind, Kinds, Spec};
use crate::tasks::task::{InvalidInput, PathDraw, Task};
use crate::tasks::violations::Violations;
use crate::tasks::{json_reader, pattern, state_json};

/// A [`Task`] as an [`AnyTask`].
pub struct Erased<T>(PhantomData<fn() -> T>);

impl<T> Erased<T> {
    /// The task, without a value of its type.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Erased<T> {
    fn default() -> Self {
        Self::new()
    }
}

struct Instance<T: Task>(T::Instance);

struct Run<T: Task> {
    instance: Arc<Instance<T>>,
    state: T::State,
    candidate: Option<T::State>,
    /// A discarded state whose memory the next candidate reuses.
    spare: Option<T::State>,
}

// Functions that do not depend on the task are not generic: the rest is compiled once per task.

fn bad_input(spec: &Spec, detail: String) -> BadInput {
    BadInput { task: spec.slug, detail }
}

fn read<V: DeserializeOwned>(spec: &Spec, what: &str, value: &Value) -> Result<V, BadInput> {
    json_reader::read(what, value).map_err(|detail| bad_input(spec, detail))
}

fn bad_state(spec: &Spec, error: &InvalidInput) -> BadInput {
    bad_input(spec, format!("state field `{}`: {}", error.field, error.reason))
}

/// Refuses a state that the task would write in another way: a field that is unknown or not in
/// canonical form would be judged as something other than was submitted.
fn check_canonical(spec: &Spec, state: &Value, written: &Value) -> Result<(), BadInput> {
    match state_json::first_difference(state, written) {
        None => Ok(()),
        Some(field) => Err(bad_input(
            spec,
            format!("state field `{field}`: is unknown, or not in the form that the task writes"),
        )),
    }
}

impl<T: Task> AnyTask for Erased<T> {
    fn spec(&self) -> &'static Spec {
        &T::SPEC
    }

    fn generate(&self, difficulty: Difficulty, seed: u64) -> Arc<dyn Problem> {
        Arc::new(Arc::new(Instance::<T>(T::generate(difficulty, &mut TaskRng::new(seed)))))
    }

    fn read_input(&self, input: &Value) -> Result<Arc<dyn Problem>, BadInput> {
        let instance: T::Instance = read(&T::SPEC, "input", input)?;
        T::validate(&instance).map_err(|error| bad_input(&T::SPEC, error.to_string()))?;
        if T::ended(&instance, &T::start(&instance)) {
            let nothing = "there is nothing to do: the trace ends before its first step";
            return Err(bad_input(&T::SPEC, nothing.to_owned()));
        }
        Ok(Arc::new(Arc::new(Instance::<T>(instance))))
    }
}

impl<T: Task> Problem for Arc<Instance<T>> {
    fn spec(&self) -> &'static Spec {
        &T::SPEC
    }

    fn input(&self) -> Value {
        serde_json::to_value(&self.0).expect("invariant: instances serialise")
    }

    fn start(&self) -> Box<dyn Machine> {
        Box::new(Run::<T> {
            instance: Arc::clone(self),
            state: T::start(&self.0),
            candidate: None,
            spare: None,
        })
    }

    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput> {
        state_json::check_limits(state).map_err(|detail| bad_input(&T::SPEC, detail))?;
        let mut read: T::State = read(&T::SPEC, "state", state)?;
        T::check_state(&self.0, &read).map_err(|error| bad_state(&T::SPEC, &error))?;
        check_canonical(
            &T::SPEC,
            state,
            &serde_json::to_value(&read).expect("invariant: states serialise"),
        )?;

        // Derived fields come from a checked state only.
        T::complete(&self.0, &mut read);
        Ok(Box::new(Run::<T> {
            instance: Arc::clone(self),
            state: read,
            candidate: None,
            spare: None,
        }))
    }

    fn steps_max(&self) -> u64 {
        T::steps_max(&self.0)
    }

    fn on_path(&self, draw: PathDraw, rng: &mut TaskRng) -> Option<Box<dyn Machine>> {
        let state = T::state_on_path(&self.0, draw, rng)?;
        Some(Box::new(Run::<T> { instance: Arc::clone(self), state, candidate: None, spare: None }))
    }

    fn goal(&self, answer: &Value) -> Option<bool> {
        let (answer, page) = (exact(answer), T::SPEC.page);
        let is_right = T::goal(&self.0, &answer)?;
        Some(is_right && has_listed_fields(&answer, page.answer) && are_counts(&answer, page))
    }
}

/// Returns whether an answer has no field that its page does not list. The contract says which
/// fields an answer has, and a goal test looks only at those that it needs.
fn has_listed_fields(answer: &Value, listed: &[(&str, &str)]) -> bool {
    let is_listed = |name: &String| listed.iter().any(|(known, _)| known == name);
    listed.is_empty() || answer.as_object().is_none_or(|fields| fields.keys().all(is_listed))
}

/// Returns whether each field that is a count in the page's example is one here too. A goal test
/// that accepts several answers does not compare counts that depend on how an answer was found.
fn are_counts(answer: &Value, page: &Page) -> bool {
    let Ok(example) = serde_json::from_str::<Value>(page.example.answer) else { return true };
    page.answer.iter().all(|(field, meaning)| {
        let given = answer.get(field).filter(|_| example[field].is_u64());
        // Some say -1 for nothing.
        let is_nothing = given.and_then(Value::as_i64) == Some(-1) && meaning.contains("-1");
        given.is_none_or(Value::is_u64) || is_nothing
    })
}

fn transition_index(spec: &Spec) -> Option<usize> {
    spec.constraints.iter().position(|constraint| constraint.kind == Kind::Transition)
}

impl<T: Task> Run<T> {
    fn action_of(line: &str) -> Result<T::Action, Refusal> {
        let (form, fields) = pattern::parse(T::Action::FORMS, line).ok_or(Refusal::Unparsable)?;
        T::Action::read(form, &fields).ok_or(Refusal::Illegal("a number is out of range"))
    }
}

impl<T: Task> Machine for Run<T> {
    fn spec(&self) -> &'static Spec {
        &T::SPEC
    }

    fn problem(&self) -> Arc<dyn Problem> {
        Arc::new(Arc::clone(&self.instance))
    }

    fn propose(&mut self, line: &str) -> Result<(), Refusal> {
        if let Some(state) = self.candidate.take() {
            self.spare = Some(state);
        }

        let action = Self::action_of(line)?;
        if T::ended(&self.instance.0, &self.state) {
            return Err(Refusal::Illegal("the trace has ended"));
        }

        // Cloning into the spare state reuses its memory.
        let mut next = match self.spare.take() {
            Some(mut spare) => {
                spare.clone_from(&self.state);
                spare
            }
            None => self.state.clone(),
        };

        T::step(&self.instance.0, &mut next, action)
            .map_err(|illegal| Refusal::Illegal(illegal.0))?;
        self.candidate = Some(next);
        Ok(())
    }

    fn violations(&self, kinds: Kinds) -> Violations {
        let Some(after) = &self.candidate else {
            return Violations::FORMAT.of_kinds(&T::SPEC, kinds);
        };
        let action = T::last(after).expect("invariant: a candidate was made by an action");

        let mut found = Violations::NONE;
        // A task judges all of its own constraints at once; the kinds are sorted out afterwards.
        if kinds.contains(Kind::Invariant) || kinds.contains(Kind::Terminal) {
            T::violations(&self.instance.0, &self.state, action, after, &mut found);
            found = found.of_kinds(&T::SPEC, kinds);
        }
        // The transition is judged by running the algorithm, so only where it is asked for.
        if kinds.contains(Kind::Transition)
            && let Some(index) = transition_index(&T::SPEC)
        {
            found.require(
                index,
                T::reference(&self.instance.0, &self.state).as_ref() == Some(action),
            );
        }

        found
    }

    fn candidate_ends(&self) -> bool {
        self.candidate.as_ref().is_some_and(|state| T::ended(&self.instance.0, state))
    }

    fn commit(&mut self) {
        if let Some(state) = self.candidate.take() {
            self.spare = Some(std::mem::replace(&mut self.state, state));
        }
    }

    fn replay(&mut self, line: &str) -> Result<(), Refusal> {
        let action = Self::action_of(line)?;
        T::step(&self.instance.0, &mut self.state, action)
            .map_err(|illegal| Refusal::Illegal(illegal.0))
    }

    fn follow_reference(&mut self) -> bool {
        match T::reference(&self.instance.0, &self.state) {
            Some(action) => {
                T::step(&self.instance.0, &mut self.state, action)
                    .expect("invariant: reference actions are legal");
                true
            }
            None => false,
        }
    }

    fn reference(&self) -> Option<String> {
        T::reference(&self.instance.0, &self.state).map(|action| action.to_string())
    }

    fn advance(&mut self, line: &mut String) -> bool {
        line.clear();
        // The default computes the reference twice and allocates its line.
        let Some(action) = T::reference(&self.instance.0, &self.state) else { return false };
        write!(line, "{action}").expect("invariant: writing to memory succeeds");
        T::step(&self.instance.0, &mut self.state, action)
            .expect("invariant: reference actions are legal");
        true
    }

    fn ended(&self) -> bool {
        T::ended(&self.instance.0, &self.state)
    }

    fn answer(&self) -> Option<Value> {
        self.ended().then(|| T::answer(&self.instance.0, &self.state))
    }

    fn choices(&self) -> Option<Vec<String>> {
        Some(T::choices(&self.instance.0, &self.state)?.iter().map(ToString::to_string).collect())
    }

    fn parts(&self) -> Option<(&dyn Any, &dyn Any)> {
        Some((&self.instance.0, &self.state))
    }

    fn view(&self) -> String {
        serde_json::to_string(&self.state).expect("invariant: states serialise")
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.state).expect("invariant: states serialise")
    }

    fn write_state(&self, text: &mut Vec<u8>) {
        text.clear();
        serde_json::to_writer(text, &self.state).expect("invariant: states serialise");
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.state.clone())
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.state.clone_from(snapshot.get());
        self.candidate = None;
    }

    fn fork(&self) -> Box<dyn Machine> {
        Box::new(Self {
            instance: Arc::clone(&self.instance),
            state: self.state.clone(),
            candidate: None,
            spare: None,
        })
    }
}
