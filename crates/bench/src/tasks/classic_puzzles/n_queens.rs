//! N-Queens: place n queens on an n × n board so that none attacks another, by depth-first search,
//! row by row.
//!
//! A step is one placement or one step back. Many boards are right: an answer counts if its queens
//! pass the goal test.

use super::chessboard::{attacks, is_peaceful, is_solution};
use crate::tasks::pages::n_queens as page;
use crate::tasks::prelude::*;

/// The task `n-queens`.
pub struct NQueens;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Side of the board; rows and columns count from 0.
    pub n: usize,
    /// The columns in the order in which each row tries them.
    pub order: Vec<usize>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Column of the queen in each row that has one, from row 0.
    pub queens: Vec<usize>,
    /// Place in the order of columns at which the current row resumes its search.
    pub next: usize,
    /// Number of `back` so far.
    pub backtracks: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `place r c`: places the queen of row r in column c.
    Place(r, c) = "place",
    /// `back r`: takes the queen of row r away.
    Back(r) = "back",
});

impl Task for NQueens {
    task_items!(Instance, State, Action, Spec { decisive: &["queens"], ..page::SPEC });

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let n = page::size::N.draw(difficulty, rng);
        let mut order: Vec<_> = (0..n).collect();
        rng.shuffle(&mut order);
        Instance { n, order }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.n;
        InvalidInput::unless((1..=26).contains(&n), "n", format!("is {n}; give 1 to 26"))?;

        let mut columns = instance.order.clone();
        columns.sort_unstable();
        let permutation = columns.iter().copied().eq(0..n);
        InvalidInput::unless(
            permutation,
            "order",
            format!("must hold each column 0 to {} once", n - 1),
        )?;

        let longest = Self::steps_max(instance);
        // Boards of sides 2 and 3 have no solution; a search that proves it is a valid problem.
        let is_searched = reference_steps::<Self>(instance, longest).is_some();
        InvalidInput::unless(
            is_searched,
            "order",
            format!("leads to no end of the search within {longest} steps"),
        )
    }

    fn start(_: &Instance) -> State {
        State { queens: Vec::new(), next: 0, backtracks: 0, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::at_most("queens", state.queens.len(), instance.n)?;
        limits::below("queens", state.queens.iter().copied(), instance.n)?;
        limits::below("next", [state.next], instance.n + 1)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Place(r, c) => {
                if r >= instance.n || c >= instance.n {
                    return Err(Illegal("there is no such row or column on the board"));
                }
                if state.queens.len() >= instance.n {
                    return Err(Illegal("every row has its queen"));
                }

                state.queens.push(c);
                state.next = 0;
            }
            Action::Back(r) => {
                if r >= instance.n {
                    return Err(Illegal("there is no such row on the board"));
                }

                let column = state.queens.pop().ok_or(Illegal("there is no queen to take back"))?;
                let place = instance
                    .order
                    .iter()
                    .position(|c| *c == column)
                    .expect("invariant: order holds each column");
                // The search continues after the column that was taken back.
                state.next = place + 1;
                state.backtracks += 1;
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let row = state.queens.len();
        if row == instance.n {
            return None;
        }

        let free = instance.order[state.next..]
            .iter()
            .find(|column| !attacks(&state.queens, row, **column));

        match free {
            Some(column) => Some(Action::Place(row, *column)),
            None => row.checked_sub(1).map(Action::Back),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::NO_ATTACK, is_peaceful(&after.queens));
        found.require(
            page::ROWS,
            after.queens.len() <= instance.n && after.queens.iter().all(|c| *c < instance.n),
        );

        // Applying an action ignores its row, so a line that names another row is wrong.
        let row = match *action {
            Action::Place(row, _) => row == before.queens.len(),
            Action::Back(row) => row == after.queens.len(),
        };
        found.require(page::ROWS, row);

        let placed = matches!(action, Action::Place(..));
        found.require(page::NEXT, after.next <= instance.n && (!placed || after.next == 0));

        if Self::ended(instance, after) {
            found.require(page::GOAL, is_peaceful(&after.queens));
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.queens.len() == instance.n
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "queens": state.queens, "backtracks": state.backtracks })
    }

    /// A search of all boards of 12 queens has 856,188 placements, and each is taken back at most
    /// once. For the larger boards of users the search may take longer: those are refused.
    fn steps_max(_: &Instance) -> u64 {
        1 << 24
    }

    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let queens: Option<Vec<usize>> = serde_json::from_value(answer["queens"].clone()).ok();
        Some(queens.is_some_and(|queens| is_solution(instance.n, &queens)))
    }

    fn choices(instance: &Instance, state: &State) -> Option<Vec<Action>> {
        let row = state.queens.len();
        Some(if row < instance.n {
            (0..instance.n).map(|c| Action::Place(row, c)).collect()
        } else {
            Vec::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Instance, NQueens, Task};

    #[test]
    fn boards_without_a_solution_are_problems_too() {
        let valid = |n: usize| NQueens::validate(&Instance { n, order: (0..n).collect() }).is_ok();
        assert_eq!((0..=8).filter(|n| valid(*n)).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
