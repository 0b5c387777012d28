//! Simplex Method: the next row with an entry in the pivot's column; or the first negative cost, and the smallest ratio of
//! the rows that it reads.
// Columns are letters, rows digits. Of a row one reads its right side, its entry and its basis variable.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::simplex_method::{Action, Instance, SimplexMethod, State};

use crate::Lesson;
use crate::fractions::{low_first, parts, product};
use crate::numbers::pairwise;
use crate::reads::looked_up;

pub struct Of;

fn column_name(column: usize) -> String {
    let letter = ('a'..='z').nth(column).unwrap_or('~');
    letter.to_string()
}

/// The rows that are looked at next, of which the pivot's own is none; with their entries in the pivot's column.
fn rows_left(state: &State) -> Vec<(usize, String)> {
    let Some((column, row)) = state.pivots.last().copied() else { return Vec::new() };
    let from = match state.last.0 {
        Some(Action::Div(..)) => 0,
        Some(Action::Sub(i, _)) => i + 1,
        _ => return Vec::new(),
    };
    let others = (from..state.tableau.len()).filter(|other| *other != row);
    others.map(|other| (other, state.tableau[other][column].to_string())).collect()
}

/// The signs of the costs, by column.
fn signs(state: &State) -> Vec<(String, char)> {
    let costs = &state.tableau[state.basis.len()];
    let sign = |text: String| match text.as_bytes() {
        [b'-', ..] => '-',
        [b'0'] => '0',
        _ => '+',
    };
    (0..costs.len() - 1).map(|column| (column_name(column), sign(costs[column].to_string()))).collect()
}

impl Lesson for Of {
    type Task = SimplexMethod;

    fn view(_: &Instance, state: &State) -> String {
        if let Some(Action::Pivot(column, row)) = state.last.0 {
            return format!("pivot {row} {}", state.tableau[row][column]);
        }
        let rows: Vec<_> = rows_left(state).iter().map(|(row, entry)| format!("{row}:{entry} ")).collect();
        let costs: Vec<_> = signs(state).iter().map(|(column, sign)| format!("{column}{sign}")).collect();
        format!("rows {}cost {} of {}", rows.concat(), costs.concat(), state.basis.len())
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = SimplexMethod::reference(instance, state)?;
        let mut line = String::new();
        if let Action::Div(..) = action {
            return Some(line);
        }
        for (row, entry) in rows_left(state) {
            line += &row.to_string();
            if entry != "0" {
                return Some(line);
            }
            line.push('.');
        }
        line.push(' ');
        let Action::Pivot(column, _) = action else { return None };
        for (name, sign) in &signs(state)[..=column] {
            line += &format!("{name}{sign}");
        }
        ratios(state, column).map(|ratios| line + " " + &ratios)
    }

    const READS_MAX: usize = 12;

    const UNTAUGHT: [u32; 3] = [0, 2, 6];

    /// `c3` is row 3 with its entry in column c.
    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        let rows = state.basis.len();
        let columns = state.tableau.first()?.len() - 1;
        let row = (0..rows).find(|row| address.get(1..) == Some(row.to_string().as_str()))?;
        let column = (0..columns).find(|column| address.get(..1) == Some(column_name(*column).as_str()))?;
        Some(entries(state, row, column))
    }
}

fn entries(state: &State, row: usize, column: usize) -> String {
    let row_entries = &state.tableau[row];
    format!("{},{},{:02}", row_entries[row_entries.len() - 1], row_entries[column], state.basis[row])
}

/// A row that could leave the basis.
struct Candidate {
    row: usize,
    basic: usize,
    /// Right side by entry.
    ratio: [i64; 2],
}

/// The ratio of each row with a positive entry, and its cross products with the smallest so far.
fn ratios(state: &State, column: usize) -> Option<String> {
    let mut line = String::new();
    let mut least: Option<Candidate> = None;
    for (row, basic) in state.basis.iter().copied().enumerate() {
        line += &looked_up(&format!("{}{row}", column_name(column)), &entries(state, row, column));
        let entry = &state.tableau[row][column];
        if matches!(entry.to_string().as_bytes(), [b'-' | b'0', ..]) {
            line += ". ";
            continue;
        }
        let (rhs, entry) = (parts(&state.tableau[row][state.tableau[row].len() - 1])?, parts(entry)?);
        // Of equal denominators nothing is left.
        let ratio = if rhs.1 == entry.1 {
            [rhs.0, entry.0]
        } else {
            let (above, x) = product(rhs.0, entry.1)?;
            let (below, y) = product(entry.0, rhs.1)?;
            line += &format!("{above} {below} ");
            [x, y]
        };
        line += &format!("{}:{}", ratio[0], ratio[1]);
        let candidate = Candidate { row, basic, ratio };
        let Some(other) = &least else {
            line.push(' ');
            least = Some(candidate);
            continue;
        };
        let (ours, x) = product(ratio[0], other.ratio[1])?;
        let (theirs, y) = product(other.ratio[0], ratio[1])?;
        let width = low_first(x).len().max(low_first(y).len());
        line += &format!(" {ours} {theirs} {}", pairwise(&format!("{x:0width$}"), &format!("{y:0width$}")));
        if x == y {
            line += &format!("{basic:02},{:02}", other.basic);
        }
        if (x, basic) < (y, other.basic) {
            line.push('l');
            least = Some(candidate);
        }
        line.push(' ');
    }
    least.map(|least| format!("{line}{}", least.row))
}
