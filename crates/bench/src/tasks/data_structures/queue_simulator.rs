//! Queue Simulator: a queue in a circular buffer of fixed capacity.
//!
//! A step is one operation; its line is the cell that it touches, or why it fails.

use super::change_phases::{self, Change};
use crate::tasks::operation::{OPERATIONS_MAX, VALUE_MAX, as_text, validate_count};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::queue_simulator as page;
use crate::tasks::prelude::*;

/// The task `queue-simulator`.
pub struct QueueSimulator;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of cells.
    pub capacity: usize,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

word_actions!(
    /// An operation of the input; the page explains its forms.
    Operation {
        /// `enqueue v`: appends v.
        Enqueue(value) = "enqueue",
        /// Removes the first value.
        Dequeue = "dequeue",
        /// Reads the first value.
        Front = "front",
    }
);
as_text!(Operation);

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of operations finished.
    pub done: usize,
    /// Value of each cell of the circular buffer, -1 for a free one.
    pub cells: Vec<OptionalIndex>,
    /// Cell of the first value, from 0.
    pub head: usize,
    /// Negative after wrong dequeues.
    pub count: i64,
    /// Enqueues into the last cell and dequeues from it so far.
    pub wraps: usize,
    /// Sum of the values dequeued.
    pub taken_sum: usize,
    /// Enqueues that failed, as the queue was full.
    pub full: usize,
    /// Dequeues and fronts that failed, as the queue was empty.
    pub empty: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The cell `count` places after the head.
    pub fn tail(&self) -> usize {
        let capacity = self.cells.len();
        // After wrong lines the count may be negative or exceed the capacity.
        let count = self.count.unsigned_abs().rem_euclid(capacity as u64);
        let count = usize::try_from(count).expect("invariant: below the capacity");
        (self.head + if self.count < 0 { capacity - count } else { count }) % capacity
    }

    /// All values that were enqueued, whether still held or dequeued.
    fn put_sum(&self) -> u128 {
        self.taken_sum as u128
            + self.cells.iter().filter_map(|cell| cell.get()).sum::<usize>() as u128
    }

    /// Returns whether exactly the `count` cells from the head on hold values.
    fn is_contiguous(&self) -> bool {
        let Ok(count) = usize::try_from(self.count) else { return false };
        let (before, from) = self.cells.split_at(self.head);
        let circular = from.iter().chain(before).enumerate();
        count <= self.cells.len()
            && circular.into_iter().all(|(place, cell)| cell.get().is_some() == (place < count))
    }
}

word_actions!(Action {
    /// `put c`: an enqueue writes cell c.
    Put(cell) = "put",
    /// `take c v`: a dequeue takes value v from cell c.
    Take(cell, value) = "take",
    /// `see c v`: a front reads value v in cell c.
    See(cell, value) = "see",
    /// An enqueue fails.
    Full = "full",
    /// A dequeue or front fails.
    Empty = "empty",
});

impl Task for QueueSimulator {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let operations = page::size::OPERATIONS.draw(difficulty, rng);
            let capacity = page::size::CAPACITY.draw(difficulty, rng);
            let operations =
                change_phases::changes(operations, rng).into_iter().map(|change| match change {
                    Change::Add => Operation::Enqueue(rng.index(100)),
                    Change::Remove => Operation::Dequeue,
                    Change::Look => Operation::Front,
                });

            let instance = Instance { capacity, operations: operations.collect() };
            let end = reference_end::<Self>(&instance, u64::MAX);
            if end.is_some_and(|(state, _)| state.full > 0 && state.empty > 0 && state.wraps >= 2) {
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
            Operation::Enqueue(value) => *value <= VALUE_MAX,
            Operation::Dequeue | Operation::Front => true,
        };
        let range = format!("values must not exceed {VALUE_MAX}");
        InvalidInput::unless(instance.operations.iter().all(small), "operations", range)
    }

    fn start(instance: &Instance) -> State {
        State {
            done: 0,
            cells: vec![OptionalIndex::NONE; instance.capacity],
            head: 0,
            count: 0,
            wraps: 0,
            taken_sum: 0,
            full: 0,
            empty: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::length("cells", state.cells.len(), instance.capacity)?;
        limits::below("cells", state.cells.iter().copied(), VALUE_MAX + 1)?;
        limits::below("head", [state.head], instance.capacity)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let capacity = instance.capacity;
        let operation =
            *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;
        if let Action::Put(cell) | Action::Take(cell, _) | Action::See(cell, _) = *action
            && cell >= capacity
        {
            return Err(Illegal("there is no such cell"));
        }

        match (*action, operation) {
            (Action::Put(cell), Operation::Enqueue(value)) => {
                state.cells[cell] = OptionalIndex::some(value);
                state.count += 1;
                state.wraps += usize::from(cell + 1 == capacity);
            }
            (Action::Take(cell, value), Operation::Dequeue) => {
                state.cells[cell] = OptionalIndex::NONE;
                state.head = (cell + 1) % capacity;
                state.count -= 1;
                state.wraps += usize::from(cell + 1 == capacity);
                // Repeated wrong lines with the largest numbers could overflow the sum.
                state.taken_sum = state.taken_sum.saturating_add(value);
            }
            (Action::See(..), Operation::Front) => {}
            (Action::Full, Operation::Enqueue(_)) => state.full += 1,
            (Action::Empty, Operation::Dequeue | Operation::Front) => state.empty += 1,
            _ => return Err(Illegal("the operation has no such result")),
        }

        state.done += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let operation = instance.operations.get(state.done)?;
        // After wrong lines the cell at the head may be free, so that there is no value to name and
        // no line is prescribed.
        let front = || state.cells[state.head].get().map(|value| (state.head, value));

        match operation {
            Operation::Enqueue(_) if usize::try_from(state.count) == Ok(instance.capacity) => {
                Some(Action::Full)
            }
            Operation::Enqueue(_) => Some(Action::Put(state.tail())),
            Operation::Dequeue | Operation::Front if state.count == 0 => Some(Action::Empty),
            Operation::Dequeue => front().map(|(cell, value)| Action::Take(cell, value)),
            Operation::Front => front().map(|(cell, value)| Action::See(cell, value)),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::OCCUPIED, after.is_contiguous());

        let put = match (action, instance.operations.get(before.done)) {
            (Action::Put(_), Some(Operation::Enqueue(value))) => *value as u128,
            _ => 0,
        };
        found.require(page::VALUES, after.put_sum() == before.put_sum() + put);

        let changed = before.cells.iter().zip(&after.cells).filter(|(old, new)| old != new).count();
        let is_front = match *action {
            Action::Take(cell, value) | Action::See(cell, value) => {
                cell == before.head && before.cells.get(cell) == Some(&OptionalIndex::some(value))
            }
            _ => true,
        };
        found.require(page::FRONT_READ, is_front);

        let fails = match action {
            Action::Full => usize::try_from(before.count) == Ok(instance.capacity),
            Action::Empty => before.count == 0,
            _ => true,
        };
        found.require(page::FAILURES, fails);

        found.require(page::ONE_CELL, changed <= 1);
        let count = usize::try_from(after.count).is_ok_and(|count| count <= instance.capacity);
        found.require(page::BOUNDS, after.head < instance.capacity && count);

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
            "cells": state.cells,
            "head": state.head,
            "tail": state.tail(),
            "count": state.count,
            "wraps": state.wraps,
            "taken_sum": state.taken_sum,
            "full": state.full,
            "empty": state.empty,
        })
    }
}
