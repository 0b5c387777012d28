//! Stack Simulator: pushes, pops and peeks on a stack of bounded capacity.
//!
//! A step is one operation; its line is the result.

use super::change_phases::{self, Change};
use crate::tasks::operation::{OPERATIONS_MAX, VALUE_MAX, as_text, validate_count};
use crate::tasks::pages::stack_simulator as page;
use crate::tasks::prelude::*;

/// The task `stack-simulator`.
pub struct StackSimulator;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Most values that the stack holds.
    pub capacity: usize,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

word_actions!(
    /// An operation of the input; the page explains its forms.
    Operation {
        /// `push v`: puts v on top.
        Push(value) = "push",
        /// Removes the top.
        Pop = "pop",
        /// Reads the top.
        Peek = "peek",
    }
);
as_text!(Operation);

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of operations finished.
    pub done: usize,
    /// The values, top last.
    pub stack: Vec<usize>,
    /// Most values held so far.
    pub max_depth: usize,
    /// Sum of the values popped.
    pub popped_sum: usize,
    /// Pushes that failed, as the stack was full.
    pub overflows: usize,
    /// Pops and peeks that failed, as the stack was empty.
    pub underflows: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// All values that were pushed, whether still held or popped.
    fn pushed_sum(&self) -> u128 {
        self.popped_sum as u128 + self.stack.iter().sum::<usize>() as u128
    }
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// A push that succeeds.
        Pushed = "ok", "ok";
        /// The value popped or peeked at.
        Value(value: usize) = "<nat>", "{value}";
        /// A push that fails.
        Overflow = "overflow", "overflow";
        /// A pop or peek that fails.
        Underflow = "underflow", "underflow";
    }
}

impl Task for StackSimulator {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let operations = page::size::OPERATIONS.draw(difficulty, rng);
            let capacity = page::size::CAPACITY.draw(difficulty, rng);
            let operations =
                change_phases::changes(operations, rng).into_iter().map(|change| match change {
                    Change::Add => Operation::Push(rng.index(100)),
                    Change::Remove => Operation::Pop,
                    Change::Look => Operation::Peek,
                });

            let instance = Instance { capacity, operations: operations.collect() };
            let end = reference_end::<Self>(&instance, u64::MAX);
            if end.is_some_and(|(state, _)| state.overflows > 0 && state.underflows > 0) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let capacity = instance.capacity;
        let range = format!("is {capacity}; give 1 to {OPERATIONS_MAX}");
        InvalidInput::unless((1..=OPERATIONS_MAX).contains(&capacity), "capacity", range)?;
        validate_count("operations", instance.operations.len())?;
        let small = |operation: &Operation| match operation {
            Operation::Push(value) => *value <= VALUE_MAX,
            Operation::Pop | Operation::Peek => true,
        };
        let range = format!("values must not exceed {VALUE_MAX}");
        InvalidInput::unless(instance.operations.iter().all(small), "operations", range)
    }

    fn start(_: &Instance) -> State {
        State {
            done: 0,
            stack: Vec::new(),
            max_depth: 0,
            popped_sum: 0,
            overflows: 0,
            underflows: 0,
            last: Last(None),
        }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::below("stack", state.stack.iter().copied(), VALUE_MAX + 1)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let operation =
            *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;
        match (*action, operation) {
            (Action::Pushed, Operation::Push(value)) => {
                state.stack.push(value);
                state.max_depth = state.max_depth.max(state.stack.len());
            }
            (Action::Value(_), Operation::Pop | Operation::Peek) if state.stack.is_empty() => {
                return Err(Illegal("the stack is empty"));
            }
            (Action::Value(value), Operation::Pop) => {
                state.stack.pop();
                // Repeated wrong lines with the largest numbers could overflow the sum.
                state.popped_sum = state.popped_sum.saturating_add(value);
            }
            (Action::Value(_), Operation::Peek) => {}
            (Action::Overflow, Operation::Push(_)) => state.overflows += 1,
            (Action::Underflow, Operation::Pop | Operation::Peek) => state.underflows += 1,
            _ => return Err(Illegal("the operation has no such result")),
        }

        state.done += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        Some(match instance.operations.get(state.done)? {
            Operation::Push(_) if state.stack.len() >= instance.capacity => Action::Overflow,
            Operation::Push(_) => Action::Pushed,
            Operation::Pop | Operation::Peek => {
                state.stack.last().map_or(Action::Underflow, |top| Action::Value(*top))
            }
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let (old, new) = (before.stack.len(), after.stack.len());
        found.require(page::DEPTH, new <= instance.capacity && old.abs_diff(new) <= 1);

        let pushed = match (action, instance.operations.get(before.done)) {
            (Action::Pushed, Some(Operation::Push(value))) => *value as u128,
            _ => 0,
        };
        found.require(page::PUSHED_VALUES, after.pushed_sum() == before.pushed_sum() + pushed);

        // All but the top of the deeper stack is as it was.
        let below = old.max(new).saturating_sub(1);
        found.require(
            page::LOWER_PART,
            old.min(new) >= below && before.stack[..below] == after.stack[..below],
        );

        let top = before.stack.last();
        found.require(
            page::VALUE_READ,
            !matches!(action, Action::Value(value) if top != Some(value)),
        );

        let fails = match action {
            Action::Overflow => old >= instance.capacity,
            Action::Underflow => old == 0,
            _ => true,
        };
        found.require(page::FAILURES, fails);
        found.require(page::COUNTS, after.overflows + after.underflows <= after.done);

        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.operations.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.operations.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // One step an operation.
        instance.operations.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "stack": state.stack,
            "max_depth": state.max_depth,
            "popped_sum": state.popped_sum,
            "overflows": state.overflows,
            "underflows": state.underflows,
        })
    }
}
