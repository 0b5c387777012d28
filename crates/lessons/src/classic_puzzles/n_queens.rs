//! N-Queens: the squares that each queen attacks in the row, then the free columns.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::attacks;
use prime_bench::tasks::classic_puzzles::n_queens::{Action, Instance, NQueens, State};

use crate::Lesson;

pub struct NQueensLesson;

impl Lesson for NQueensLesson {
    type Task = NQueens;

    fn view(instance: &Instance, state: &State) -> String {
        let columns = |columns: &[usize]| {
            columns.iter().map(|c| letter(*c).to_ascii_lowercase()).collect::<String>()
        };

        let left = columns(&instance.order[state.next..]);
        format!(
            "n={:02} row={:02} queens={} left={left}",
            instance.n,
            state.queens.len(),
            columns(&state.queens)
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = NQueens::reference(instance, state)?;

        let mut line = attacked(instance, state) + "try";
        for column in &instance.order[state.next..] {
            let is_attacked = attacks(&state.queens, state.queens.len(), *column);
            line += &format!(" {}{}", letter(*column), if is_attacked { '-' } else { '+' });
            if !is_attacked {
                break;
            }
        }

        Some(line + if matches!(action, Action::Place(..)) { "" } else { " none" })
    }

    /// A later free column, tried at once.
    fn alternatives(instance: &Instance, state: &State) -> Vec<(Action, String)> {
        let row = state.queens.len();
        let free = instance.order[state.next..]
            .iter()
            .filter(|column| !attacks(&state.queens, row, **column));

        let line = attacked(instance, state);
        free.skip(1)
            .map(|column| (Action::Place(row, *column), format!("{line}try {}+", letter(*column))))
            .collect()
    }
}

/// The squares that each queen attacks in this row: on both diagonals and in her column.
fn attacked(instance: &Instance, state: &State) -> String {
    let row = state.queens.len();
    let on_board = |column: Option<usize>| column.filter(|c| *c < instance.n).map_or('.', letter);
    let mut line = String::new();

    for (r, c) in state.queens.iter().enumerate() {
        let away = row - r;
        let diagonals = (on_board(c.checked_sub(away)), on_board(Some(c + away)));
        line += &format!(
            "{}{away}{}{}{} ",
            letter(*c).to_ascii_lowercase(),
            diagonals.0,
            letter(*c),
            diagonals.1
        );
    }

    line
}

/// Derivations name columns by letters, unlike the digits of the view.
fn letter(column: usize) -> char {
    char::from(b'A' + u8::try_from(column % 26).expect("invariant: below 26"))
}
