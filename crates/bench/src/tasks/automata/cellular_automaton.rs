//! Cellular Automaton: compute generations of Wolfram's elementary automata, cell by cell.
//!
//! A step is one new cell; its line is the bit.

use std::fmt;

use crate::tasks::pages::cellular_automaton as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `cellular-automaton`.
pub struct CellularAutomaton;

const CELLS_MAX: usize = 10_000;
const STEPS_MAX: usize = 1 << 24;
/// The rules that instances are drawn from.
const RULES: [u8; 24] = [
    18, 22, 26, 30, 41, 45, 54, 60, 73, 90, 105, 106, 110, 122, 126, 129, 135, 137, 146, 150, 154,
    161, 169, 193,
];

/// What lies beyond the ends of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The other end of the row: the row is a ring.
    Periodic,
    /// Zeros.
    Zero,
}

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Wolfram's number; bit 4*left + 2*self + right is the new cell.
    pub rule: u8,
    /// What lies beyond the ends of each row.
    pub boundary: Boundary,
    /// Generation 0, a string of 0 and 1.
    pub cells: String,
    /// Number of generations to compute.
    pub generations: usize,
}

impl Instance {
    /// The number that left neighbour, cell and right neighbour form.
    pub fn neighbourhood(&self, cells: &[u8], place: usize) -> usize {
        let bit = |place: usize| usize::from(cells[place] == b'1');
        let (first, last) = (place == 0, place + 1 == cells.len());
        // A periodic row continues at its other end, a bounded one with zeros.
        let beyond =
            |place: usize| if self.boundary == Boundary::Periodic { bit(place) } else { 0 };

        let left = if first { beyond(cells.len() - 1) } else { bit(place - 1) };
        let right = if last { beyond(0) } else { bit(place + 1) };
        4 * left + 2 * bit(place) + right
    }

    /// The value that the rule gives to the next cell of the new row.
    fn next_bit(&self, state: &State) -> bool {
        let neighbourhood = self.neighbourhood(state.cells.as_bytes(), state.next.len());
        self.rule >> neighbourhood & 1 == 1
    }

    /// Returns whether equal neighbourhoods have equal new values, as far as the new row is known.
    fn is_consistent(&self, cells: &[u8], new: impl Iterator<Item = u8>) -> bool {
        let mut seen = [None; 8];
        new.take(cells.len())
            .enumerate()
            .all(|(place, bit)| *seen[self.neighbourhood(cells, place)].get_or_insert(bit) == bit)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of generations completed.
    pub generation: usize,
    /// The last complete generation, a string of 0 and 1.
    pub cells: String,
    /// The new row as far as it is known, from cell 0; empty where none is begun.
    pub next: String,
    /// Ones written so far, in all generations but the first.
    pub ones: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

/// The next cell of the new row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(bool);

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["<0|1>"];

    fn read(_: usize, fields: &Fields<'_>) -> Option<Self> {
        Some(Action(fields.text(0)? == "1"))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "1" } else { "0" })
    }
}

impl Task for CellularAutomaton {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let count = page::size::CELLS.draw(difficulty, rng);
            let generations = page::size::GENERATIONS.draw(difficulty, rng);
            let rule = rng.one_of(&RULES);
            let boundary = rng.one_of(&[Boundary::Periodic, Boundary::Zero]);
            let cells: String = (0..count).map(|_| rng.one_of(&['0', '1'])).collect();

            if cells.contains('0') && cells.contains('1') {
                return Instance { rule, boundary, cells, generations };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let count = instance.cells.len();
        let bits = (1..=CELLS_MAX).contains(&count)
            && instance.cells.bytes().all(|c| matches!(c, b'0' | b'1'));
        InvalidInput::unless(bits, "cells", format!("must be 1 to {CELLS_MAX} zeros and ones"))?;

        let most = STEPS_MAX / count;
        let range = format!("is {}; give 1 to {most} for {count} cells", instance.generations);
        InvalidInput::unless((1..=most).contains(&instance.generations), "generations", range)
    }

    fn start(instance: &Instance) -> State {
        State {
            generation: 0,
            cells: instance.cells.clone(),
            next: String::new(),
            ones: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let count = instance.cells.len();
        limits::length("cells", state.cells.len(), count)?;
        limits::letters("cells", &state.cells, "01")?;
        limits::below("next", [state.next.len()], count)?;
        limits::letters("next", &state.next, "01")?;
        limits::below("generation", [state.generation], instance.generations + 1)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.generation >= instance.generations {
            return Err(Illegal("all generations are computed"));
        }

        state.next.push(if action.0 { '1' } else { '0' });
        state.ones += usize::from(action.0);

        if state.next.len() == state.cells.len() {
            std::mem::swap(&mut state.cells, &mut state.next);
            state.next.clear();
            state.generation += 1;
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let unfinished = state.generation < instance.generations;
        unfinished.then(|| Action(instance.next_bit(state)))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // `after` may have begun a new row, so the row in progress is taken from `before`.
        let new = before.next.bytes().chain([if action.0 { b'1' } else { b'0' }]);
        found.require(
            page::SAME_NEIGHBOURHOOD,
            instance.is_consistent(before.cells.as_bytes(), new),
        );

        // What makes a trace sound: the rule fixes every bit, `apply` puts the rows together and
        // counts the ones, and the trace ends only after the last generation.
        found.require(page::RULE_BIT, action.0 == instance.next_bit(before));

        let count = instance.cells.len();
        found.require(page::ROW_LENGTH, after.cells.len() == count && after.next.len() < count);
        found.require(page::ONES_BOUND, after.ones <= after.generation * count + after.next.len());

        if Self::ended(instance, after) {
            let last = after.generation == instance.generations && after.next.is_empty();
            found.require(page::LAST_GENERATION, last);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.generation >= instance.generations
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.cells.len() as u64 * instance.generations as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "cells": state.cells, "ones": state.ones })
    }
}
