//! N-Queens, last queen: n-1 queens of a solution are given, and the last goes into the free
//! column.
//!
//! The trace is one step: that placement. The paper's case study asks for nothing else.

use super::chessboard::{is_peaceful, is_solution};
use super::n_queens::NQueens;
use crate::tasks::pages::n_queens_last_queen as page;
use crate::tasks::prelude::*;

pub struct LastQueen;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    n: usize,
    queens: Vec<usize>,
}

impl Instance {
    /// The first column without a queen.
    fn free_column(&self) -> Option<usize> {
        (0..self.n).find(|column| !self.queens.contains(column))
    }

    fn completed(&self, column: usize) -> bool {
        let mut queens = self.queens.clone();
        queens.push(column);
        is_solution(self.n, &queens)
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    queens: Vec<usize>,
    last: Last<Action>,
}

word_actions!(Action { Place(row, column) = "place" });

impl Task for LastQueen {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let whole = NQueens::generate(difficulty, rng);
        let (solved, _) =
            reference_end::<NQueens>(&whole, u64::MAX).expect("invariant: the search ends");
        let queens = solved.queens[..whole.n - 1].to_vec();
        Instance { n: whole.n, queens }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.n;
        InvalidInput::unless((1..=1_000).contains(&n), "n", format!("is {n}; give 1 to 1000"))?;

        let given = &instance.queens;
        InvalidInput::unless(
            given.len() == n - 1,
            "queens",
            format!("must have {} columns, one a row", n - 1),
        )?;
        InvalidInput::unless(
            given.iter().all(|c| *c < n),
            "queens",
            format!("every column must be below {n}"),
        )?;
        InvalidInput::unless(is_peaceful(given), "queens", "attack each other")?;

        let completes = instance.free_column().is_some_and(|column| instance.completed(column));
        InvalidInput::unless(
            completes,
            "queens",
            "attack the one place that is left for the last queen",
        )
    }

    fn start(instance: &Instance) -> State {
        State { queens: instance.queens.clone(), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::at_most("queens", state.queens.len(), instance.n)?;
        limits::below("queens", state.queens.iter().copied(), instance.n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action::Place(row, column) = *action;
        if row >= instance.n || column >= instance.n {
            return Err(Illegal("there is no such row or column on the board"));
        }
        if state.queens.len() >= instance.n {
            return Err(Illegal("every row has its queen"));
        }
        state.queens.push(column);
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        (state.queens.len() + 1 == instance.n)
            .then(|| instance.free_column().map(|column| Action::Place(instance.n - 1, column)))?
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::NO_ATTACK, is_peaceful(&after.queens));
        found.require(
            page::ROWS,
            after.queens.len() <= instance.n && after.queens.iter().all(|c| *c < instance.n),
        );

        if Self::ended(instance, after) {
            found.require(page::GOAL, is_solution(instance.n, &after.queens));
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.queens.len() == instance.n
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "column": state.queens.last() })
    }

    /// One queen is missing.
    fn steps_max(_: &Instance) -> u64 {
        1
    }

    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let column: Option<usize> = serde_json::from_value(answer["column"].clone()).ok();
        Some(column.is_some_and(|column| instance.completed(column)))
    }

    fn choices(instance: &Instance, _: &State) -> Option<Vec<Action>> {
        Some((0..instance.n).map(|column| Action::Place(instance.n - 1, column)).collect())
    }
}
