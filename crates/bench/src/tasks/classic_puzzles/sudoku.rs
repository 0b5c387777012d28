//! Sudoku: fill the grid with naked singles and, where there is none, hidden singles.
//!
//! A step is one cell filled. An answer may fill cells in any order: only the full grid counts.

use super::sudoku_grid::{CELLS, Grid, SIDE};
use crate::tasks::pages::sudoku as page;
use crate::tasks::prelude::*;

/// The task `sudoku`.
pub struct Sudoku;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    grid: Grid,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The givens and the cells filled so far.
    pub grid: Grid,
    naked: u64,
    hidden: u64,
    last: Last<Action>,
}

word_actions!(Action {
    /// `fill r c d`: fills the cell in row r and column c, both 0..=8, with the digit d.
    Fill(row, column, digit) = "fill",
});

/// Fills the grid from this cell on by backtracking with shuffled digits, keeping the digits before
/// it; `false` if that is impossible.
fn fill(grid: &mut Grid, cell: usize, rng: &mut TaskRng) -> bool {
    if cell == CELLS {
        return true;
    }
    let mut digits = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    rng.shuffle(&mut digits);

    for digit in digits {
        grid.set(cell, digit);
        if grid.is_consistent() && fill(grid, cell + 1, rng) {
            return true;
        }
    }

    grid.set(cell, 0);
    false
}

impl Task for Sudoku {
    task_items!(Instance, State, Action, Spec { decisive: &["grid"], ..page::SPEC });

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let givens = page::size::GIVENS.draw(difficulty, rng);
            let mut grid = Grid::EMPTY;
            let full = fill(&mut grid, 0, rng);
            assert!(full, "an empty grid can be filled");

            let mut cells: Vec<_> = (0..CELLS).collect();
            rng.shuffle(&mut cells);
            let mut left = CELLS;
            for cell in cells {
                if left > givens && grid.can_spare(cell) {
                    grid.set(cell, 0);
                    left -= 1;
                }
            }

            if left == givens {
                return Instance { grid };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let grid = &instance.grid;
        InvalidInput::unless(
            grid.is_consistent(),
            "grid",
            "has a digit twice in a row, column or box",
        )?;
        InvalidInput::unless(!grid.is_full(), "grid", "has no empty cell")?;
        InvalidInput::unless(
            grid.is_solved_by_singles(),
            "grid",
            "cannot be solved by naked and hidden singles alone",
        )
    }

    fn start(instance: &Instance) -> State {
        State { grid: instance.grid, naked: 0, hidden: 0, last: Last(None) }
    }

    fn check_state(_: &Instance, _: &State) -> Result<(), InvalidInput> {
        // Reading a grid admits digits and empty cells only, and the counts are only added to.
        Ok(())
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action::Fill(row, column, digit) = *action;
        if row >= SIDE || column >= SIDE {
            return Err(Illegal("rows and columns go from 0 to 8"));
        }
        let digit = u8::try_from(digit).ok().filter(|digit| (1..=9).contains(digit));
        let digit = digit.ok_or(Illegal("digits go from 1 to 9"))?;

        let cell = row * SIDE + column;
        if state.grid.digit(cell) != 0 {
            return Err(Illegal("the cell is not empty"));
        }

        // Judged by the candidates before the cell is filled.
        let found = if state.grid.candidates().count(cell) == 1 {
            &mut state.naked
        } else {
            &mut state.hidden
        };
        *found += 1;
        state.grid.set(cell, digit);
        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        let (cell, digit) = state.grid.first_single()?;
        Some(Action::Fill(cell / SIDE, cell % SIDE, usize::from(digit)))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let grid = &after.grid;
        found.require(page::UNITS, grid.is_consistent());
        found.require(page::GIVENS, grid.keeps(&instance.grid));
        found.require(page::CANDIDATES, grid.every_empty_cell_has_a_candidate());

        let filled = grid.filled().checked_sub(instance.grid.filled());
        found.require(
            page::COUNTS,
            filled.is_some_and(|cells| cells as u64 == after.naked + after.hidden),
        );

        let Action::Fill(row, column, _) = *action;
        let (cell, candidates) = (row * SIDE + column, before.grid.candidates());
        found.require(page::SINGLE, candidates.has_single(cell, grid.digit(cell)));
        found.require(
            page::NAKED_FIRST,
            candidates.count(cell) == 1 || !candidates.has_naked_single(),
        );

        if Self::ended(instance, after) {
            found.require(page::GOAL, grid.is_solution_of(&instance.grid));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.grid.is_full()
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "grid": state.grid, "naked": state.naked, "hidden": state.hidden })
    }

    /// Every empty cell is filled once.
    fn steps_max(instance: &Instance) -> u64 {
        (CELLS - instance.grid.filled()) as u64
    }

    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let grid: Option<Grid> = serde_json::from_value(answer["grid"].clone()).ok();
        Some(grid.is_some_and(|grid| grid.is_solution_of(&instance.grid)))
    }
}
