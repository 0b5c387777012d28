//! Continued Fraction: the term by repeated subtraction of the leading digits, and the convergent column by column.
// A column has a letter, which numerators and denominators share, and what stands in it: of each part the digit of the latest number
// and that of the one before, in the derivation the digit and the carry. `-` is where a number has ended. The lowest column comes
// first.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::continued_fraction::{ContinuedFraction, Convergent, Instance, State};

use crate::Lesson;

pub struct Of;

/// Leading digits that tell the term: of a remainder other than 0 a tenth of the divisor is left, since terms have a digit.
const LEADING: usize = 5;

/// Most subtractions that are written: terms of the benchmark have one digit.
const TERM_MAX: u64 = 20;

/// The letter of a column; those of the benchmark's longest numbers are repeated.
fn column_name(column: usize) -> char {
    ('A'..='Z').chain('a'..='z').nth(column % 52).unwrap_or('~')
}

/// The digit in a column, if the number is that long; the lowest column comes first.
fn digit(text: &str, column: usize) -> Option<u32> {
    text.chars().rev().nth(column)?.to_digit(10)
}

/// The latest part of the convergents and the one before.
fn latest(convergents: &[Convergent], part: impl Fn(&Convergent) -> String, before: [&str; 2]) -> [String; 2] {
    let text = |place: usize| convergents.len().checked_sub(place).and_then(|place| convergents.get(place)).map(&part);
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

/// The leading digits of both numbers, of as many digits as the longer one has.
fn leading(state: &State) -> [String; 2] {
    let (p, q) = (state.p.0.to_string(), state.q.0.to_string());
    let width = p.len().max(q.len());
    [p, q].map(|number| format!("{number:0>width$}").chars().take(LEADING).collect())
}

impl Lesson for Of {
    type Task = ContinuedFraction;

    fn view(_: &Instance, state: &State) -> String {
        let [p, q] = leading(state);
        if q.bytes().all(|digit| digit == b'0') {
            return "-".to_owned();
        }
        let numbers = numbers(state);
        let count = numbers.iter().flatten().map(String::len).max().unwrap_or(0);
        let column = |place: usize| {
            let digit = |text: &String| digit(text, place).map_or_else(|| "-".to_owned(), |digit| digit.to_string());
            let digits: String = numbers.iter().flatten().map(digit).collect();
            format!("{}{digits}", column_name(place))
        };
        let columns: String = (0..count).map(column).collect();
        let low_first = |number: String| number.chars().rev().collect::<String>();
        let (p, q) = (low_first(p), low_first(q));
        format!("{p} by {q} {columns}")
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = ContinuedFraction::reference(instance, state)?;
        let [p, q] = leading(state);
        let (mut rest, divisor): (u64, u64) = (p.parse().ok()?, q.parse().ok()?);
        let mut line = String::new();
        // One subtraction more than the term says, which goes below zero.
        let wrap = 10u64.pow(u32::try_from(LEADING).ok()?);
        let last = action.term.min(TERM_MAX) + 1;
        for times in 1..=last {
            rest = (rest + wrap).checked_sub(divisor)? % wrap;
            let digits: String = format!("{rest:0LEADING$}").chars().rev().collect();
            line += &format!("{times}:{digits}{}", if times == last { "- " } else { "+" });
        }
        line += &format!("{} ", action.term);
        let term = u32::try_from(action.term).ok()?;
        Some(line + &multiplied(term, &numbers(state)))
    }

    const UNTAUGHT: [u32; 3] = [0, 1, 36];
}

/// The term times the latest numbers and the earlier ones added: of each column the digit and the carry of both.
fn multiplied(term: u32, numbers: &[[String; 2]; 2]) -> String {
    let mut line = String::new();
    let mut carries = [0; 2];
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
        for sum in sums {
            line += &sum.map_or_else(|| "--".to_owned(), |(digit, carry)| format!("{digit}{carry}"));
        }
    }
    line
}
