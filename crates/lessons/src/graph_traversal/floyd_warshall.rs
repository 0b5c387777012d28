//! Floyd-Warshall: reads row after row and adds, column by column, until a way by way of k is
//! shorter.
// Numbers have their lowest digit first. Columns are letters: small ones before the known distances
// of a row, capital ones before the ways from k on, which are the same for all rows and stand in
// the prompt. A row begins with its way to k.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::floyd_warshall::{Action, FloydWarshall, Instance, State};

use crate::Lesson;
use crate::numbers::{counter, place};
use crate::reads::looked_up;

pub struct FloydWarshallLesson;

/// Digits of a distance; the hundreds follow with a plus.
const WIDTH: usize = 2;

impl Lesson for FloydWarshallLesson {
    type Task = FloydWarshall;

    fn view(instance: &Instance, state: &State) -> String {
        let k = state.k.get();
        let mut view = format!("mid {} of {:02}", place(k, 2), instance.n);

        match (state.last.0, k) {
            (Some(Action::Done), _) => return "done".to_owned(),
            (last, Some(k)) => {
                let mut ways = String::new();
                for (j, on) in onward(state, k) {
                    ways += &format!("{}{}", name(b'A', j), low_first(on));
                }
                view += &format!(" {}", if ways.is_empty() { NOTHING } else { &ways });
                if let Some(Action::Set(i, j, _)) = last {
                    let rest = row(state, k, i, j + 1).unwrap_or_else(|| NOTHING.to_owned());
                    view += &format!(" {}={rest}", row_name(i));
                }
            }
            _ => {}
        }

        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = FloydWarshall::reference(instance, state)?;
        let mut line = String::new();
        let Some(k) = state.k.get() else { return Some(String::new()) };

        let mut next = 0;
        // The row of the last improvement continues after its column.
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

    /// A round without an improvement reads all 25 rows.
    const BYTES_MAX: usize = 5_118;

    /// `02` is row 2: its way to k and the known distance of each column that k leads to.
    fn read(instance: &Instance, state: &State, address: &str) -> Option<String> {
        let k = state.k.get()?;
        let i = (0..instance.n).find(|i| row_name(*i) == address)?;
        row(state, k, i, 0)
    }
}

/// Stands for a row without a way to k, for k's own row, and for the ways on from k if there are
/// none.
const NOTHING: &str = "-";

fn name(first: u8, vertex: usize) -> String {
    let letter = u8::try_from(vertex % 26).map_or('~', |place| char::from(first + place));
    "+".repeat(vertex / 26) + &letter.to_string()
}

fn row_name(i: usize) -> String {
    format!("{i:02}")
}

fn low_first(distance: usize) -> String {
    let digits: String = format!("{:0WIDTH$}", distance % 100).chars().rev().collect();
    if distance < 100 { digits } else { format!("{digits}+{}", distance / 100) }
}

/// Digits of both numbers in turn, the highest first, up to the first that differs.
fn pairs_to_difference(sum: usize, known: usize) -> String {
    let (sum, known) = (sum.to_string(), known.to_string());

    let mut pairs = String::new();
    for (x, y) in sum.chars().zip(known.chars()) {
        pairs.extend([x, y]);
        if x != y {
            break;
        }
    }

    pairs
}

/// The other columns that k leads to, and its ways there.
fn onward(state: &State, k: usize) -> impl Iterator<Item = (usize, usize)> {
    let ways = state.dist.get(k).into_iter().flatten().enumerate();
    ways.filter_map(move |(j, way)| Some((j, (*way)?)).filter(|_| j != k))
}

/// A column of a row in which a way by way of k could be shorter.
struct Column {
    j: usize,
    known: Option<usize>,
    /// The way from k on.
    on: usize,
}

/// The row's way to k, and its columns from one on; `None` if it has no way to k, or is k's own.
fn columns(state: &State, k: usize, i: usize, from: usize) -> Option<(usize, Vec<Column>)> {
    let entries = state.dist.get(i).filter(|_| i != k)?;
    let ways = onward(state, k).filter(|(j, _)| *j >= from && *j != i);
    Some((entries[k]?, ways.map(|(j, on)| Column { j, known: entries[j], on }).collect()))
}

/// A row from a column on. `None` if there is no such row.
fn row(state: &State, k: usize, i: usize, from: usize) -> Option<String> {
    state.dist.get(i)?;
    let Some((to_k, columns)) = columns(state, k, i, from) else { return Some(NOTHING.to_owned()) };

    let mut row = low_first(to_k) + ":";
    for Column { j, known, .. } in columns {
        row += &name(b'a', j);
        row += &known.map_or_else(|| "--".to_owned(), low_first);
    }

    Some(row)
}

/// Writes the sum of each column, followed by `<` if it is less than what is known, which ends the
/// scan.
fn scan(state: &State, k: usize, i: usize, from: usize, line: &mut String) -> bool {
    let Some((to_k, columns)) = columns(state, k, i, from) else { return false };
    for Column { j, known, on } in columns {
        *line += &name(b'a', j);

        // A way to k that is as long as the known distance is not worth an addition.
        if known.is_some_and(|known| known <= to_k) {
            line.push('.');
            continue;
        }

        let sum = to_k.saturating_add(on);
        *line += &low_first(on);
        *line += &low_first(sum);

        // Two with hundreds are rare, and compared from the highest digit on.
        if let Some(known) = known.filter(|known| (*known).min(sum) >= 100) {
            line.push(':');
            *line += &pairs_to_difference(sum, known);
        }

        if known.is_none_or(|known| sum < known) {
            line.push('<');
            return true;
        }
    }

    false
}
