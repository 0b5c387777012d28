//! The typed interface of a task: pure functions of an instance, a state and an action. No I/O, no
//! clock.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::action::TaskAction;
use super::rng::TaskRng;
use super::spec::{Difficulty, Spec};
use super::violations::Violations;

/// The states of a reference trace that are equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathDraw {
    /// All.
    Uniform,
    /// For each kind of action, the states before or after it together, however rare the kind is in
    /// the trace.
    ByAction,
}

/// An action that parses but cannot be applied to the state; says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Illegal(pub &'static str);

/// An input of the right shape with a value that the task does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input field `{field}`: {reason}")]
pub struct InvalidInput {
    /// The field's name.
    pub field: &'static str,
    /// What is wrong with its value.
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
/// The reference trace is the fold of [`Task::reference`] and [`Task::step`] from [`Task::start`].
/// `task_items!` writes the items from `Instance` to `set_last`.
pub trait Task: Send + Sync + 'static {
    /// The page's `input`, with its fields in order.
    type Instance: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// The page's `state`, with its fields in order.
    type State: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// An action line.
    type Action: TaskAction;

    /// The constants of the task's page, with the answer fields that decide and the hidden input
    /// fields.
    const PAGE: Spec;
    /// The constant part of the task: the page's, with the forms of its action lines.
    const SPEC: Spec = Spec { actions: Self::Action::FORMS, ..Self::PAGE };

    /// The last action; `None` at the start.
    fn last(state: &Self::State) -> Option<&Self::Action>;

    /// Replaces the last action.
    fn set_last(state: &mut Self::State, action: Self::Action);

    /// Draws an instance. The only randomness of a task.
    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Self::Instance;

    /// Checks a user's input for everything that the functions below rely on.
    ///
    /// # Errors
    /// The first field that is out of range, with the range.
    fn validate(instance: &Self::Instance) -> Result<(), InvalidInput>;

    /// The state before the first step.
    fn start(instance: &Self::Instance) -> Self::State;

    /// Checks a state that a client submitted for everything that the functions below rely on, so
    /// that none of them panics, overflows or runs long. It need not lie on any trace. Its numbers
    /// already lie between -2^62 and 2^62.
    ///
    /// # Errors
    /// The first field of the state that is out of range, with the range.
    fn check_state(instance: &Self::Instance, state: &Self::State) -> Result<(), InvalidInput>;

    /// Derives the fields that the JSON of a checked state leaves out.
    fn complete(_instance: &Self::Instance, _state: &mut Self::State) {}

    /// Carries out an action in place, without recording it: call [`Task::step`].
    ///
    /// # Errors
    /// When the action cannot be applied; the state is then unchanged.
    fn apply(
        instance: &Self::Instance,
        state: &mut Self::State,
        action: &Self::Action,
    ) -> Result<(), Illegal>;

    /// Applies an action and records it as the last one.
    ///
    /// # Errors
    /// Like [`Task::apply`].
    fn step(
        instance: &Self::Instance,
        state: &mut Self::State,
        action: Self::Action,
    ) -> Result<(), Illegal> {
        Self::apply(instance, state, &action)?;
        Self::set_last(state, action);
        Ok(())
    }

    /// The next step of the algorithm; `None` at the end, and where the algorithm prescribes
    /// nothing.
    fn reference(instance: &Self::Instance, state: &Self::State) -> Option<Self::Action>;

    /// Adds the invariant constraints (and, when the trace has ended, the terminal ones) that
    /// `after` breaks. Never calls [`Task::reference`]; the caller judges `format` and
    /// `transition`.
    fn violations(
        instance: &Self::Instance,
        before: &Self::State,
        action: &Self::Action,
        after: &Self::State,
        found: &mut Violations,
    );

    /// Returns whether the trace has ended in this state: after the action `done`, unless the task
    /// says otherwise.
    fn ended(_instance: &Self::Instance, state: &Self::State) -> bool {
        Self::last(state).is_some_and(TaskAction::is_done)
    }

    /// The page's `answer`, read off a final state.
    fn answer(instance: &Self::Instance, state: &Self::State) -> Value;

    /// T_max: no valid trace of an instance of this size is longer. It follows from the input's
    /// size alone, never from running the reference.
    fn steps_max(_instance: &Self::Instance) -> u64 {
        1 << 24
    }

    /// Judges an answer where several are right, by the goal test; `None` means that only equality
    /// with the reference answer counts.
    fn goal(_instance: &Self::Instance, _answer: &Value) -> Option<bool> {
        None
    }

    /// All actions that a search may try in this state, if they are few; `None` for tasks that do
    /// not search.
    fn choices(_instance: &Self::Instance, _state: &Self::State) -> Option<Vec<Self::Action>> {
        None
    }

    /// A random state of the reference trace, if one can be computed without running the trace up
    /// to it.
    fn state_on_path(
        _instance: &Self::Instance,
        _draw: PathDraw,
        _rng: &mut TaskRng,
    ) -> Option<Self::State> {
        None
    }
}

/// Writes the items of [`Task`] that differ in types only. The state keeps its last action in a
/// field `last`.
macro_rules! task_items {
    ($instance:ty, $state:ty, $action:ty, $page:expr) => {
        type Instance = $instance;
        type State = $state;
        type Action = $action;

        const PAGE: $crate::tasks::Spec = $page;

        fn last(state: &$state) -> Option<&$action> {
            state.last.0.as_ref()
        }

        fn set_last(state: &mut $state, action: $action) {
            state.last = $crate::tasks::Last(Some(action));
        }
    };
}

pub(crate) use task_items;

/// Steps of the reference trace, or `None` when it is longer than `max`: for generators that reject
/// by length.
pub fn reference_steps<T: Task>(instance: &T::Instance, max: u64) -> Option<u64> {
    reference_end::<T>(instance, max).map(|(_, steps)| steps)
}

/// Final state and steps of the reference trace, or `None` when it is longer than `max`.
pub fn reference_end<T: Task>(instance: &T::Instance, max: u64) -> Option<(T::State, u64)> {
    let mut state = T::start(instance);
    let mut steps = 0;
    while let Some(action) = T::reference(instance, &state) {
        // Checked before the step: a trace of exactly `max` steps is short enough.
        if steps == max {
            return None;
        }
        T::step(instance, &mut state, action).expect("invariant: reference actions are legal");
        steps += 1;
    }

    Some((state, steps))
}

/// Returns whether the reference trace ends and breaks no constraint: for inputs that users write.
pub fn reference_is_clean<T: Task>(instance: &T::Instance) -> bool {
    let mut state = T::start(instance);
    for _ in 0..T::steps_max(instance) {
        // T_max also bounds a reference that would not end on a user's input.
        let Some(action) = T::reference(instance, &state) else { break };
        let before = state.clone();
        // On a user's input the reference may prescribe something illegal.
        if T::step(instance, &mut state, action.clone()).is_err() {
            return false;
        }

        let mut found = Violations::NONE;
        T::violations(instance, &before, &action, &state, &mut found);
        if !found.is_empty() {
            return false;
        }
    }

    T::ended(instance, &state)
}
