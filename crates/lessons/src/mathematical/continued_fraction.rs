//! Continued Fraction: the term by repeated subtraction of the leading digits, and the convergent
//! column by column.
// A column has a name, which numerators and denominators share. In the view it holds, for each of
// the two, the digit of the latest number and that of the one before; in the derivation, the digit
// and the carry. `-` is where a number has ended. The lowest column comes first. The action has the
// highest first, and no names; so that no columns have to be counted backwards, both numbers are
// written once more in its order, in groups that begin with the name of their first column. A digit
// of a difference that borrows is written as the sign that shares its key on a keyboard.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::continued_fraction::{
    ContinuedFraction, Convergent, Instance, State,
};

use crate::Lesson;
use crate::numbers::shifted;

pub struct ContinuedFractionLesson;

/// Number of leading digits that determine the term: terms have one digit, so that a remainder
/// other than 0 is at least a tenth of the divisor.
const LEADING: usize = 5;

/// Most subtractions that are written: terms of the benchmark have one digit.
const TERM_MAX: u64 = 20;

/// Columns of a group: enough that nearly all of the benchmark's longest numbers have room.
const GROUP: usize = 8;

/// Names of the columns after the letters.
const NAMES: &str = "<>[]{}|=_~;,'`";

/// The name of a column; numbers of the benchmark are not so long that one is repeated.
fn column_name(column: usize) -> char {
    let names = || ('A'..='Z').chain('a'..='z').chain(NAMES.chars());
    names().nth(column % names().count()).unwrap_or('~')
}

/// The digit in a column, if the number is that long; the lowest column comes first.
fn digit(text: &str, column: usize) -> Option<u32> {
    text.chars().rev().nth(column)?.to_digit(10)
}

/// The latest part of the convergents and the one before.
fn latest(
    convergents: &[Convergent],
    part: impl Fn(&Convergent) -> String,
    before: [&str; 2],
) -> [String; 2] {
    let text = |place: usize| {
        convergents.len().checked_sub(place).and_then(|place| convergents.get(place)).map(&part)
    };
    match (text(1), text(2)) {
        (Some(latest), Some(earlier)) => [latest, earlier],
        (Some(latest), None) => [latest, before[1].to_owned()],
        _ => [before[1].to_owned(), before[0].to_owned()],
    }
}

fn numbers(state: &State) -> [[String; 2]; 2] {
    [
        latest(&state.convergents, |convergent| convergent.numer().to_string(), ["0", "1"]),
        latest(&state.convergents, |convergent| convergent.denom().to_string(), ["1", "0"]),
    ]
}

/// The leading digits of both numbers, which are given as many digits as the longer one has, and no
/// fewer than are subtracted.
fn leading(state: &State) -> [String; 2] {
    let (p, q) = (state.p.0.to_string(), state.q.0.to_string());
    let width = p.len().max(q.len()).max(LEADING);
    [p, q].map(|number| format!("{number:0>width$}").chars().take(LEADING).collect())
}

impl Lesson for ContinuedFractionLesson {
    type Task = ContinuedFraction;

    fn view(_: &Instance, state: &State) -> String {
        let [p, q] = leading(state);
        // The divisor is zero: the expansion is complete.
        if q.bytes().all(|digit| digit == b'0') {
            return "-".to_owned();
        }

        let numbers = numbers(state);
        let count = numbers.iter().flatten().map(String::len).max().unwrap_or(0);

        let column = |place: usize| {
            let digit = |text: &String| {
                digit(text, place).map_or_else(|| "-".to_owned(), |digit| digit.to_string())
            };
            let digits: String = numbers.iter().flatten().map(digit).collect();
            format!("{}{digits}", column_name(place))
        };

        let columns: String = (0..count).map(column).collect();
        let low_first = |number: String| number.chars().rev().collect::<String>();
        let (p, q) = (low_first(p), low_first(q));
        format!("{p}/{q} {columns}")
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = ContinuedFraction::reference(instance, state)?;
        let [p, q] = leading(state);
        let (mut rest, divisor): (u64, u64) = (p.parse().ok()?, q.parse().ok()?);
        let mut line = String::new();

        // One subtraction more than the term says, which goes below zero.
        let last = action.term.min(TERM_MAX) + 1;
        for times in 1..=last {
            let digits;
            (rest, digits) = subtracted(rest, divisor)?;
            line += &format!("{times}:{digits}{}", if times == last { "-" } else { "" });
        }

        line += &format!("{} ", action.term);

        let term = u32::try_from(action.term).ok()?;
        let (columns, [numerator, denominator]) = multiplied(term, &numbers(state));
        line += &format!("{columns} {}", grouped(&numerator));

        // A whole number is written without its denominator.
        if denominator != [1] {
            line += &format!("/{}", grouped(&denominator));
        }

        Some(line)
    }

    const UNTAUGHT: [u32; 3] = [0, 0, 1];
}

/// The difference, and its digits, lowest first. Below zero it wraps around.
fn subtracted(from: u64, subtrahend: u64) -> Option<(u64, String)> {
    let wrap = 10u64.pow(u32::try_from(LEADING).ok()?);
    let rest = (from + wrap).checked_sub(subtrahend)? % wrap;

    let mut base = 1;
    let digit = |digit: char| {
        base *= 10;
        let borrows = from % base < subtrahend % base;
        if borrows { shifted(digit) } else { digit }
    };

    Some((rest, format!("{rest:0LEADING$}").chars().rev().map(digit).collect()))
}

/// The term times the latest numbers, plus the earlier ones: the digit and the carry of both,
/// column by column. Also returns the digits of both, lowest first.
fn multiplied(term: u32, numbers: &[[String; 2]; 2]) -> (String, [Vec<u32>; 2]) {
    let mut line = String::new();
    let mut carries = [0; 2];
    let mut digits = [Vec::new(), Vec::new()];

    for column in 0.. {
        let mut sums = [None; 2];
        for ((sum, carry), [latest, earlier]) in sums.iter_mut().zip(&mut carries).zip(numbers) {
            let (x, y) = (digit(latest, column), digit(earlier, column));
            if x.is_some() || y.is_some() || *carry > 0 {
                let added = term * x.unwrap_or(0) + y.unwrap_or(0) + *carry;
                *carry = added / 10;
                *sum = Some((added % 10, *carry));
            }
        }

        if sums == [None; 2] {
            break;
        }

        line.push(column_name(column));
        for (sum, digits) in sums.into_iter().zip(&mut digits) {
            line +=
                &sum.map_or_else(|| "--".to_owned(), |(digit, carry)| format!("{digit}{carry}"));
            digits.extend(sum.map(|(digit, _)| digit));
        }
    }

    (line, digits)
}

/// A number from its highest digit on, in groups that are named after their first column.
fn grouped(digits: &[u32]) -> String {
    let mut line = String::new();
    for (column, digit) in digits.iter().enumerate().rev() {
        if column + 1 == digits.len() || (column + 1) % GROUP == 0 {
            line.push(column_name(column));
        }
        line += &digit.to_string();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_its_borrows() {
        assert_eq!(subtracted(26_745, 6_374), Some((20_371, "1&302".to_owned())));
        assert_eq!(subtracted(1_249, 6_374), Some((94_875, "5&*$(".to_owned())));
    }

    #[test]
    fn a_number_is_cut_from_its_lowest_digit_on() {
        assert_eq!(grouped(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), "I9H87654321");
        assert_eq!(grouped(&[1, 2, 3, 4, 5, 6, 7, 8]), "H87654321");
        assert_eq!(grouped(&[7]), "A7");
    }
}
