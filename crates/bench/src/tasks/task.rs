//! The typed face of a task: pure functions of an instance, a state and an action. No I/O, no clock, no actors.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::pattern::{self, Fields};
use super::rng::TaskRng;
use super::spec::{Difficulty, Spec};
use super::violations::Violations;

/// An action that parses but cannot be applied to the state; says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Illegal(pub &'static str);

/// An input of the right shape with a value that the task does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input field `{field}`: {reason}")]
pub struct InvalidInput {
    pub field: &'static str,
    pub reason: String,
}

impl InvalidInput {
    /// `Err` with this field and reason unless `holds`.
    pub fn unless(holds: bool, field: &'static str, reason: impl Into<String>) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { field, reason: reason.into() }) }
    }
}

/// A step machine of PRIME-Bench.
///
/// The reference trace is the fold of [`Task::reference`] and [`Task::apply`] from [`Task::start`].
pub trait Task: Send + Sync + 'static {
    /// The contract's `input`, fields in its order.
    type Instance: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// The contract's `state`, fields in its order.
    type State: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// One action; `Display` writes its line.
    type Action: Clone + PartialEq + fmt::Display + fmt::Debug + Send + Sync;

    /// The constants of the task's page, with its action forms and the fields that decide.
    const SPEC: Spec;

    /// Draws an instance. The only randomness of a task.
    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Self::Instance;

    /// Checks an input that a user wrote: everything that the functions below rely on.
    ///
    /// # Errors
    /// The first field that is out of range, with the range.
    fn validate(instance: &Self::Instance) -> Result<(), InvalidInput>;

    fn start(instance: &Self::Instance) -> Self::State;

    /// Checks a state that a client handed in: everything that the functions below rely on, so that none of them
    /// panics, overflows or runs long. It need not lie on any trace. Its numbers lie between -2^62 and 2^62 already.
    ///
    /// # Errors
    /// The first field of the state that is out of range, with the range.
    fn check_state(instance: &Self::Instance, state: &Self::State) -> Result<(), InvalidInput>;

    /// Fills in what the JSON of a checked state leaves out.
    fn complete(_instance: &Self::Instance, _state: &mut Self::State) {}

    /// The action of a line that matched `SPEC.actions[form]`; `None` where a number does not fit.
    fn read(form: usize, fields: &Fields<'_>) -> Option<Self::Action>;

    /// Carries out an action in place.
    ///
    /// # Errors
    /// When the action cannot be applied; the state is then as it was.
    fn apply(instance: &Self::Instance, state: &mut Self::State, action: &Self::Action) -> Result<(), Illegal>;

    /// The next step of the algorithm; `None` at the end, and where the algorithm prescribes nothing.
    fn reference(instance: &Self::Instance, state: &Self::State) -> Option<Self::Action>;

    /// The invariant constraints (and, when the trace has ended, the terminal ones) that `after` breaks.
    /// Never calls [`Task::reference`]; `format` and `transition` are judged by the caller.
    fn violations(
        instance: &Self::Instance,
        before: &Self::State,
        action: &Self::Action,
        after: &Self::State,
    ) -> Violations;

    /// Whether the trace has ended in this state.
    fn ended(instance: &Self::Instance, state: &Self::State) -> bool;

    /// The contract's `answer`, read off a final state.
    fn answer(instance: &Self::Instance, state: &Self::State) -> Value;

    /// T_max: no valid trace of an instance of this size is longer. A trajectory that comes here has lost its way.
    /// It follows from the input's size alone, never from running the reference.
    fn steps_max(_instance: &Self::Instance) -> u64 {
        1 << 24
    }

    /// Judges an answer where several are right, by the goal test; `None` means that only equality with the
    /// reference answer counts.
    fn goal(_instance: &Self::Instance, _answer: &Value) -> Option<bool> {
        None
    }

    /// All actions that a search may try in this state, where they are few; `None` for tasks that are no search.
    fn choices(_instance: &Self::Instance, _state: &Self::State) -> Option<Vec<Self::Action>> {
        None
    }

    /// A random state of the reference trace, where one can be reached without walking there (long traces).
    fn state_on_path(_instance: &Self::Instance, _draw: &mut TaskRng) -> Option<Self::State> {
        None
    }
}

/// Steps of the reference trace, or `None` when it is longer than `max`: for generators that reject by length.
pub fn reference_steps<T: Task>(instance: &T::Instance, max: u64) -> Option<u64> {
    reference_end::<T>(instance, max).map(|(_, steps)| steps)
}

/// Final state and steps of the reference trace, or `None` when it is longer than `max`.
pub fn reference_end<T: Task>(instance: &T::Instance, max: u64) -> Option<(T::State, u64)> {
    let mut state = T::start(instance);
    let mut steps = 0;
    while let Some(action) = T::reference(instance, &state) {
        if steps == max {
            return None;
        }
        T::apply(instance, &mut state, &action).expect("invariant: reference actions are legal");
        steps += 1;
    }
    Some((state, steps))
}

/// Whether the reference trace ends and breaks no constraint: for inputs that users write.
pub fn reference_is_clean<T: Task>(instance: &T::Instance) -> bool {
    let mut state = T::start(instance);
    for _ in 0..T::steps_max(instance) {
        let Some(action) = T::reference(instance, &state) else { break };
        let before = state.clone();
        let legal = T::apply(instance, &mut state, &action).is_ok();
        if !legal || !T::violations(instance, &before, &action, &state).is_empty() {
            return false;
        }
    }
    T::ended(instance, &state)
}

/// An action that knows its task, so that its line can be read back.
pub trait ActionOf: Sized {
    type Task: Task<Action = Self>;
}

/// The state field `last`: the last action, written as its line, `""` at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last<A>(pub Option<A>);

impl<A: fmt::Display> Serialize for Last<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(action) => serializer.collect_str(action),
            None => serializer.serialize_str(""),
        }
    }
}

impl<'de, A: ActionOf> Deserialize<'de> for Last<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = String::deserialize(deserializer)?;
        if line.is_empty() {
            return Ok(Self(None));
        }
        let action =
            pattern::parse(A::Task::SPEC.actions, &line).and_then(|(form, fields)| A::Task::read(form, &fields));
        let refuse = || {
            let start: String = line.chars().take(40).collect();
            serde::de::Error::custom(format!("{start:?} is no action line of the task"))
        };
        action.map(|action| Self(Some(action))).ok_or_else(refuse)
    }
}
