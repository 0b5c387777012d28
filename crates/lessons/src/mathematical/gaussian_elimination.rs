//! Gaussian Elimination: reads entries down a column to the next that is not zero, and divides it by the pivot; then, of a
//! row, subtracts the known unknowns' share from the right side.
// Columns are letters, rows numbers: `c4` is an entry, `r4` a right side. Denominators are made equal by the factors that they do
// not share, or products would soon be too long.

use prime_bench::tasks::Rational;
use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::gaussian_elimination::{Action, GaussianElimination, Instance, State};

use crate::Lesson;
use crate::fractions::{cofactors, lowest_terms, multiplied, parts, product};
use crate::numbers::{comparison_of_naturals, difference, sum};
use crate::reads::looked_up;

pub struct Of;

fn column_name(column: usize) -> String {
    let letter = ('a'..='z').chain('A'..='Z').nth(column).unwrap_or('~');
    letter.to_string()
}

impl Lesson for Of {
    type Task = GaussianElimination;

    fn view(_: &Instance, state: &State) -> String {
        let n = state.matrix.len();
        let known = state.solution.iter().enumerate().rev();
        let known = known.filter_map(|(j, value)| Some(format!(" {}{}", column_name(j), value.0.as_ref()?)));
        let known = known.collect::<String>();
        match &state.last.0 {
            None => format!("a0 of {n}"),
            Some(Action::Swap(k, _)) => format!("swap {}{k} of {n}", column_name(*k)),
            Some(Action::Add(i, k, _)) => format!("add {}{k} to {i} of {n}", column_name(*k)),
            Some(Action::Solve(i, _)) => format!("solve {i} of {n} known{known}"),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = GaussianElimination::reference(instance, state)?;
        let (mut k, mut below) = match state.last.0 {
            None => (0, 0),
            Some(Action::Swap(k, _)) => (k, k + 1),
            Some(Action::Add(i, k, _)) => (k, i + 1),
            Some(Action::Solve(..)) => {
                let Action::Solve(i, _) = action else { return None };
                return unknown(state, i);
            }
        };
        let mut line = String::new();
        while k < state.matrix.len() {
            if below == k {
                let p = down(state, k, k, &mut line)?;
                if p != k {
                    return Some(line);
                }
                below = k + 1;
            }
            if let Some(i) = down(state, k, below, &mut line) {
                let entry = &state.matrix[i][k];
                line += &look_up(state, k, k)?;
                return factor(entry, &state.matrix[k][k]).map(|factor| line + &factor);
            }
            k += 1;
            below = k;
        }
        unknown(state, k.checked_sub(1)?).map(|unknown| format!("{line}end {unknown}"))
    }

    const READS_MAX: usize = 40;

    const UNTAUGHT: [u32; 3] = [0, 0, 1];

    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        let row = (0..state.matrix.len()).find(|row| address.get(1..) == Some(row.to_string().as_str()))?;
        let last = state.matrix.len();
        let column = match address.get(..1)? {
            "r" => last,
            name => (0..last).find(|column| column_name(*column) == name)?,
        };
        Some(state.matrix[row].get(column)?.to_string())
    }
}

fn look_up(state: &State, column: usize, row: usize) -> Option<String> {
    let name = if column == state.matrix.len() { "r".to_owned() } else { column_name(column) };
    Some(looked_up(&format!("{name}{row}"), &state.matrix.get(row)?.get(column)?.to_string()))
}

fn is_zero(value: &Rational) -> bool {
    *value == Rational::from(0)
}

/// Reads down a column, from this row on, to the first entry that is not zero: its row.
fn down(state: &State, column: usize, from: usize, line: &mut String) -> Option<usize> {
    for row in from..state.matrix.len() {
        *line += &look_up(state, column, row)?;
        if !is_zero(&state.matrix[row][column]) {
            return Some(row);
        }
    }
    *line += ". ";
    None
}

fn sign(number: i64) -> char {
    if number < 0 { '-' } else { '+' }
}

/// A fraction by another one in lowest terms, and the signs of both.
fn quotient(x: (i64, i64), y: (i64, i64)) -> Option<String> {
    let mut line = String::new();
    let [mut above, mut below] = [x.0.checked_abs()?, y.0.checked_abs()?];
    if x.1 != y.1 {
        let (common, [ours, theirs]) = cofactors(x.1, y.1)?;
        line += &(common + " ");
        above = multiplied(above, theirs, &mut line)?;
        below = multiplied(below, ours, &mut line)?;
    }
    line += &lowest_terms(above, below)?.0;
    line.extend([' ', sign(x.0), sign(y.0)]);
    Some(line)
}

fn factor(entry: &Rational, pivot: &Rational) -> Option<String> {
    quotient(parts(entry)?, parts(pivot)?)
}

/// The right side less the shares of the unknowns that are known, from the next one on; then by the coefficient.
fn unknown(state: &State, i: usize) -> Option<String> {
    let n = state.matrix.len();
    let row = &state.matrix[i];
    let mut line = look_up(state, n, i)?;
    let (mut above, mut below) = parts(&row[n])?;
    for j in i + 1..n {
        line += &look_up(state, j, i)?;
        let (coefficient, under) = parts(&row[j])?;
        let (value, one) = parts(state.solution[j].0.as_ref()?)?;
        if coefficient == 0 || value == 0 || one != 1 {
            line += ". ";
            continue;
        }
        let (text, share) = product(coefficient, value)?;
        line += &format!("{value} {text} ");
        let mut share = share * coefficient.signum() * value.signum();
        if below != under {
            let (common, [ours, theirs]) = cofactors(below, under)?;
            line += &(common + " ");
            above = multiplied(above, theirs, &mut line)? * above.signum();
            share = multiplied(share, ours, &mut line)? * share.signum();
            below = multiplied(below, theirs, &mut line)?;
        }
        // Of equal signs the difference is taken, of others the sum.
        line.extend([sign(above), sign(share), ' ']);
        let rest = above.checked_sub(share)?;
        let (x, y) = (usize::try_from(above.unsigned_abs()).ok()?, usize::try_from(share.unsigned_abs()).ok()?);
        if (above < 0) == (share < 0) {
            line += &format!("{} {} ", comparison_of_naturals(x, y, 1), difference(x.max(y), x.min(y), 1));
        } else {
            line += &format!("{} ", sum(x, y, 1));
        }
        line += &format!("{rest}/{below} ");
        above = rest;
    }
    line += &look_up(state, i, i)?;
    Some(line + &quotient((above, below), parts(&row[i])?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_in_lowest_terms() {
        assert_eq!(quotient((-3, 2), (5, 4)).as_deref(), Some("4,2:2:4-0 3*2=6 6,5:1-1 5:5-0 1 5:5 1:6 -+"));
    }
}
