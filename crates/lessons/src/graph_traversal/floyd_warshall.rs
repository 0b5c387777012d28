//! Floyd-Warshall: reads row after row and adds, column by column, until a way by way of k is shorter.
// Rows are capital letters, columns small ones. Numbers have their lowest digit first. Of a row one reads its way to k, and
// of each column that k leads to the known distance and the way from k on: `c4512`.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::floyd_warshall::{Action, FloydWarshall, Instance, State};

use crate::Lesson;
use crate::numbers::{counter, place};
use crate::reads::looked_up;

pub struct Of;

/// Digits of a distance; the hundreds stand behind them with a plus.
const WIDTH: usize = 2;

impl Lesson for Of {
    type Task = FloydWarshall;

    fn view(instance: &Instance, state: &State) -> String {
        let k = state.k.get();
        let round = format!("mid {} of {:02}", place(k, 2), instance.n);
        match (state.last.0, k) {
            (Some(Action::Done), _) => "done".to_owned(),
            (Some(Action::Set(i, j, _)), Some(k)) => {
                let rest = if i < instance.n { row(state, k, i, j + 1) } else { None };
                format!("{round} {} {}", row_name(i), rest.unwrap_or_else(|| "-".to_owned()))
            }
            _ => round,
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = FloydWarshall::reference(instance, state)?;
        let mut line = String::new();
        let Some(k) = state.k.get() else { return Some(String::new()) };
        let mut next = 0;
        if let Some(Action::Set(i, j, _)) = state.last.0 {
            if scan(state, k, i, j + 1, &mut line) {
                return Some(line);
            }
            line.push(' ');
            next = i + 1;
        }
        for i in next..instance.n {
            line += &looked_up(&row_name(i), &row(state, k, i, 0)?);
            if scan(state, k, i, 0, &mut line) {
                return Some(line);
            }
            line.push(' ');
        }
        match action {
            Action::Set(..) => None,
            _ => Some(line + "end " + &counter(k + 1, instance.n, 2)),
        }
    }

    /// All rows.
    const READS_MAX: usize = 100;

    const UNTAUGHT: [u32; 3] = [3, 3, 3];

    /// `C` is row 2: its way to k and, of each column that k leads to, the known distance and the way from k on.
    fn read(instance: &Instance, state: &State, address: &str) -> Option<String> {
        let k = state.k.get()?;
        let i = (0..instance.n).find(|i| row_name(*i) == address)?;
        row(state, k, i, 0)
    }
}

fn name(first: u8, vertex: usize) -> String {
    let letter = u8::try_from(vertex % 26).map_or('~', |place| char::from(first + place));
    "+".repeat(vertex / 26) + &letter.to_string()
}

fn row_name(i: usize) -> String {
    name(b'A', i)
}

fn column_name(j: usize) -> String {
    name(b'a', j)
}

fn low_first(distance: usize) -> String {
    let digits: String = format!("{:0WIDTH$}", distance % 100).chars().rev().collect();
    if distance < 100 { digits } else { format!("{digits}+{}", distance / 100) }
}

/// A row from a column on; `-` if it has no way to k.
fn row(state: &State, k: usize, i: usize, from: usize) -> Option<String> {
    let entries = state.dist.get(i)?;
    let Some(to_k) = entries[k] else { return Some("-".to_owned()) };
    let mut row = low_first(to_k) + ":";
    for (j, entry) in entries.iter().enumerate().skip(from) {
        let Some(on) = state.dist[k][j] else { continue };
        let known = entry.map_or_else(|| "--".to_owned(), low_first);
        row += &format!("{}{known}{}", column_name(j), low_first(on));
    }
    Some(row)
}

/// Writes the sum of each column: `<` behind it if it is less than what is known, which ends the scan.
fn scan(state: &State, k: usize, i: usize, from: usize, line: &mut String) -> bool {
    let Some(entries) = state.dist.get(i) else { return false };
    let Some(to_k) = entries[k] else { return false };
    for (j, entry) in entries.iter().enumerate().skip(from) {
        let Some(on) = state.dist[k][j] else { continue };
        *line += &column_name(j);
        // A way to k that is as long as the known distance is not worth an addition.
        if entry.is_some_and(|known| known <= to_k) {
            line.push('.');
            continue;
        }
        let sum = to_k.saturating_add(on);
        *line += &low_first(sum);
        if entry.is_none_or(|known| sum < known) {
            line.push('<');
            return true;
        }
        line.push('g');
    }
    false
}
