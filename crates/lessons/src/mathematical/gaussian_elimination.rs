//! Gaussian Elimination: reads signs down a column to the next entry that is not zero, and divides
//! it by the pivot; then finds an unknown by its remainder modulo a prime.
// Columns of the matrix are letters, rows numbers: `c4` asks for the sign of an entry. For an entry
// and its pivot, `c4:2` reads both numerators and `c4/2` both signs and denominators, digit beside
// digit, each pair after the letter of its place. The common divisors of both pairs are taken out
// one after the other, so that no number is longer than an entry.
//
// The unknowns of the benchmark are integers from -9 to 9, so that a remainder tells them. `4c` and
// `4r` are an entry and a right side, each digit after a letter, highest first.

use prime_bench::tasks::Rational;
use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::gaussian_elimination::{
    Action, GaussianElimination, Instance, State,
};

use super::common_divisors::{Reduced, Rows, multiplied, reduced, spelled};
use super::residues::{divided, residue, residues};
use crate::Lesson;
use crate::fractions::parts;
use crate::reads::looked_up;

pub struct GaussianEliminationLesson;

/// The letters of numerators and denominators as they are read, and of what remains of them in the
/// end: the benchmark has no longer numbers.
const NUMERATORS: &str = "ABCDEFGH";
const DENOMINATORS: &str = "IJKLMNOP";
/// The primes that remainders are taken by. If one divides the divisor, the next one is tried. Rows
/// begin with different primes, so that all are learnt.
const PRIMES: [i64; 3] = [19, 23, 29];

fn column_name(column: usize) -> String {
    let letter = ('a'..='z').chain('A'..='Z').nth(column).unwrap_or('~');
    letter.to_string()
}

impl Lesson for GaussianEliminationLesson {
    type Task = GaussianElimination;

    fn view(_: &Instance, state: &State) -> String {
        let n = state.matrix.len();
        let known = state.solution.iter().enumerate().rev();
        let known = known
            .filter_map(|(j, value)| Some(format!(" {}{}", column_name(j), value.0.as_ref()?)));
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
            // The pivot comes first: a zero is swapped for the first other entry below it.
            if below == k {
                let p = down(state, k, k, &mut line)?;
                if p != k {
                    return Some(line);
                }
                below = k + 1;
            }

            if let Some(i) = down(state, k, below, &mut line) {
                return factor(state, k, i).map(|factor| line + &factor);
            }

            k += 1;
            below = k;
        }

        // The matrix is triangular, so the last unknown follows.
        unknown(state, k.checked_sub(1)?).map(|unknown| format!("{line}end {unknown}"))
    }

    const READS_MAX: usize = 60;

    const UNTAUGHT: [u32; 3] = [0, 0, 1];

    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        value(state, address)
    }
}

/// The value at an address; the head of this file describes addresses.
fn value(state: &State, address: &str) -> Option<String> {
    let n = state.matrix.len();
    let row = |text: &str| (0..n).find(|row| row.to_string() == text);
    let column = |text: &str| (0..n).find(|column| column_name(*column) == text);

    if address.starts_with(|c: char| c.is_ascii_digit()) {
        let name = address.get(address.len().checked_sub(1)?..)?;
        let row = row(address.strip_suffix(name)?)?;
        let column = if name == "r" { n } else { column(name)? };
        return Some(lettered(state.matrix[row].get(column)?));
    }

    let (column, rows) = (column(address.get(..1)?)?, address.get(1..)?);

    let Some(mark) = rows.find([':', '/']) else {
        return Some(sign(&state.matrix[row(rows)?][column]).to_string());
    };

    let both = [row(&rows[..mark])?, row(&rows[mark + 1..])?].map(|row| &state.matrix[row][column]);
    let [x, y] = both.map(texts);

    Some(if rows.as_bytes()[mark] == b':' {
        columns(&x.0, &y.0, NUMERATORS)
    } else {
        format!("{}{}{}", sign(both[0]), sign(both[1]), columns(&y.1, &x.1, DENOMINATORS))
    })
}

fn look_up(state: &State, address: &str) -> Option<String> {
    Some(looked_up(address, &value(state, address)?))
}

/// The digits of numerator and denominator.
fn texts(value: &Rational) -> (String, String) {
    let text = value.to_string();
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    (numerator.trim_start_matches('-').to_owned(), denominator.to_owned())
}

/// Two numbers, digit beside digit, lowest first, each pair after its letter.
fn columns(x: &str, y: &str, letters: &str) -> String {
    let width = x.len().max(y.len());
    let (x, y) = (format!("{x:0>width$}"), format!("{y:0>width$}"));
    let pairs = x.chars().rev().zip(y.chars().rev());
    let letters = letters.chars().chain(std::iter::repeat('~'));
    letters
        .zip(pairs)
        .map(|(letter, (x, y))| format!("{letter}{x}{y}"))
        .collect::<Vec<_>>()
        .concat()
}

/// A fraction with a letter before each digit, `A` and on in the numerator, `N` and on in the
/// denominator.
fn lettered(value: &Rational) -> String {
    let (numerator, denominator) = texts(value);

    let lettered = |text: &str, from: char| -> String {
        let letters = (from..='Z').chain(std::iter::repeat('~'));
        letters
            .zip(text.chars())
            .map(|(letter, digit)| format!("{letter}{digit}"))
            .collect::<Vec<_>>()
            .concat()
    };

    let sign = if value.to_string().starts_with('-') { '-' } else { '+' };
    format!("{sign}{}/{}", lettered(&numerator, 'A'), lettered(&denominator, 'N'))
}

fn is_zero(value: &Rational) -> bool {
    *value == Rational::from(0)
}

fn sign(value: &Rational) -> char {
    match value.to_string().as_bytes() {
        [b'0'] => '0',
        [b'-', ..] => '-',
        _ => '+',
    }
}

/// Reads signs down a column, from this row on, to the first entry that is not zero: its row.
fn down(state: &State, column: usize, from: usize, line: &mut String) -> Option<usize> {
    for row in from..state.matrix.len() {
        *line += &look_up(state, &format!("{}{row}", column_name(column)))?;
        if !is_zero(&state.matrix[row][column]) {
            return Some(row);
        }
    }
    *line += ". ";
    None
}

/// An entry by its pivot.
fn factor(state: &State, column: usize, row: usize) -> Option<String> {
    let (entry, pivot) = (&state.matrix[row][column], &state.matrix[column][column]);
    let (x, y) = (parts(entry)?, parts(pivot)?);
    let name = column_name(column);

    let mut rows = Rows::default();
    let mut line = look_up(state, &format!("{name}{row}:{column}"))?;

    let (text, numerators) =
        reduced([x.0.unsigned_abs(), y.0.unsigned_abs()], NUMERATORS, &mut rows)?;
    line += &text;

    line += &look_up(state, &format!("{name}{row}/{column}"))?;
    let (text, denominators) =
        reduced([y.1.unsigned_abs(), x.1.unsigned_abs()], DENOMINATORS, &mut rows)?;
    line += &text;

    let (text, Reduced { quotients: [above, below], width }) =
        multiplied(&numerators, &denominators, &mut rows)?;
    line += &text;

    // The pivot's row is added, so the factor has the sign opposite to the quotient's.
    let negated = if (x.0 < 0) == (y.0 < 0) { '-' } else { '+' };
    line += &format!(
        "{}{}{negated}{}/{}",
        sign(entry),
        sign(pivot),
        spelled(above, width, NUMERATORS)?,
        spelled(below, width, NUMERATORS)?
    );

    // A denominator of 1 is not part of the action.
    if below == 1 {
        line.push('.');
    }
    Some(line)
}

/// The prime divides the divisor.
struct DoesNotServe;

/// The remainder of an entry or, in the last column, a right side: that of the numerator, then with
/// its sign; that of the denominator and its inverse; the product. `!` where the prime divides the
/// denominator.
fn remainder(
    state: &State,
    row: usize,
    column: usize,
    prime: i64,
    line: &mut String,
) -> Option<Result<i64, DoesNotServe>> {
    let name = if column == state.matrix.len() { "r".to_owned() } else { column_name(column) };
    *line += &look_up(state, &format!("{row}{name}"))?;

    let (above, below) = parts(&state.matrix[row][column])?;
    let sign = if above < 0 { '-' } else { '+' };

    *line += &format!("{}/{} ", residues(above, 'A', prime), residues(below, 'N', prime));
    line.extend([
        sign,
        residue(above.abs(), prime),
        residue(above, prime),
        '/',
        residue(below, prime),
    ]);

    if below % prime == 0 {
        line.push('!');
        return Some(Err(DoesNotServe));
    }

    let inverse = divided(1, below % prime, prime)?;
    let remainder = (above % prime * inverse).rem_euclid(prime);
    line.extend([residue(inverse, prime), '=', residue(remainder, prime)]);
    Some(Ok(remainder))
}

/// An unknown of this row by the first prime that serves.
fn unknown(state: &State, i: usize) -> Option<String> {
    let mut line = String::new();
    for attempt in 0..PRIMES.len() {
        let prime = PRIMES[(i + attempt) % PRIMES.len()];
        line += &format!("by {prime} ");
        if unknown_by(prime, state, i, &mut line)? {
            return Some(line);
        }
        line.push(' ');
    }
    None
}

/// The right side, less the products of the known unknowns and their coefficients; then the
/// coefficient of the unknown itself, by which what is left is divided. Returns whether the prime
/// served.
fn unknown_by(prime: i64, state: &State, i: usize, line: &mut String) -> Option<bool> {
    let n = state.matrix.len();
    let Ok(mut rest) = remainder(state, i, n, prime, line)? else { return Some(false) };
    line.push(' ');

    for j in i + 1..n {
        let (value, one) = parts(state.solution[j].0.as_ref()?)?;
        // A remainder determines integers of one digit only.
        if one != 1 || value.abs() > 9 {
            return None;
        }

        let Ok(other) = remainder(state, i, j, prime, line)? else { return Some(false) };
        let share = other * value;
        let left = (rest - share).rem_euclid(prime);
        let [factor, product, before, after] =
            [value, share, rest, left].map(|number| residue(number, prime));
        *line += &format!("*{value}{factor}={product} {before}-{product}={after} ");

        rest = left;
    }

    let Ok(coefficient) = remainder(state, i, i, prime, line)? else { return Some(false) };
    if coefficient == 0 {
        line.push('!');
        return Some(false);
    }

    line.push(' ');
    let inverse = divided(1, coefficient, prime)?;
    let unknown = (rest * inverse).rem_euclid(prime);
    // The greater remainders stand for the negative numbers.
    let digit = if unknown > prime / 2 { unknown - prime } else { unknown };

    line.extend([
        residue(rest, prime),
        '/',
        residue(coefficient, prime),
        residue(inverse, prime),
        '=',
    ]);
    line.push(residue(unknown, prime));

    (digit.abs() <= 9).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{Difficulty, TaskRng};

    /// Every derivation of some traces ends in what its action says.
    #[test]
    fn derivations_lead_to_their_actions() {
        let mut rng = TaskRng::new(11);
        for difficulty in
            [Difficulty::Easy, Difficulty::Medium, Difficulty::Hard].into_iter().cycle().take(60)
        {
            let instance = GaussianElimination::generate(difficulty, &mut rng);
            let mut state = GaussianElimination::start(&instance);
            while let Some(action) = GaussianElimination::reference(&instance, &state) {
                let line =
                    GaussianEliminationLesson::derivation(&instance, &state).unwrap_or_default();
                let last = line.rsplit(' ').next().unwrap_or_default();

                match &action {
                    _ if line.is_empty() => {}
                    Action::Swap(..) => {
                        assert!(line.ends_with("?=+ ") || line.ends_with("?=- "), "{line}");
                    }
                    Action::Add(_, _, factor) => {
                        let number: String =
                            last[2..].chars().filter(char::is_ascii_digit).collect();
                        let expected: String =
                            factor.to_string().chars().filter(char::is_ascii_digit).collect();
                        let whole = last.ends_with('.');
                        assert_eq!(number, if whole { expected + "1" } else { expected }, "{line}");
                        assert_eq!(
                            &last[2..3] == "-",
                            factor.to_string().starts_with('-'),
                            "{line}"
                        );
                        assert_eq!(whole, !factor.to_string().contains('/'), "{line}");
                    }
                    Action::Solve(_, value) => {
                        let prime = line
                            .rsplit("by ")
                            .next()
                            .and_then(|text| text[..2].parse().ok())
                            .expect("a prime");
                        let value = value.to_string().parse().expect("an integer");
                        assert!(line.ends_with(residue(value, prime)), "{line} {value}");
                    }
                }

                let applied = GaussianElimination::step(&instance, &mut state, action);
                assert!(applied.is_ok(), "the reference is legal");
            }
        }
    }
}
