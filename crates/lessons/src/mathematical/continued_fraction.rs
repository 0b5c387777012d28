//! Continued Fraction: the term by repeated subtraction of the leading digits, and the convergent column by column.
// Each column of the two latest numerators and denominators has a letter, its digits, and in the derivation the carry. The
// lowest column comes first.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::continued_fraction::{ContinuedFraction, Convergent, Instance, State};

use crate::Lesson;

pub struct Of;

/// Leading digits that tell the term: of a remainder other than 0 a tenth of the divisor is left, since terms have a digit.
const LEADING: usize = 5;

/// Most subtractions that are written: terms of the benchmark have one digit.
const TERM_MAX: u64 = 20;

/// Letters of the numerator's columns and of the denominator's.
const LETTERS: [&[u8; 26]; 2] = [b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"];

fn column_name(part: usize, column: usize) -> char {
    char::from(LETTERS[part][column % 26])
}

/// Digits of a column, lowest column first.
fn digit(text: &str, column: usize) -> u32 {
    text.chars().rev().nth(column).and_then(|digit| digit.to_digit(10)).unwrap_or(0)
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
        let columns = |part: usize, [latest, earlier]: &[String; 2]| -> String {
            let column = |place: usize| {
                let (x, y) = (digit(latest, place), digit(earlier, place));
                format!("{}{x}{y}", column_name(part, place))
            };
            (0..latest.len().max(earlier.len())).map(column).collect()
        };
        let [numerator, denominator] = numbers(state);
        let low_first = |number: String| number.chars().rev().collect::<String>();
        let (p, q) = (low_first(p), low_first(q));
        format!("{p} by {q} {} {}", columns(0, &numerator), columns(1, &denominator))
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
        let [numerator, denominator] = numbers(state);
        Some(format!("{line}{} {}", multiplied(term, 0, &numerator), multiplied(term, 1, &denominator)))
    }

    const UNTAUGHT: [u32; 3] = [0, 4, 40];
}

/// The term times the latest number and the earlier one added: of each column the digit and, if there is one, the carry.
fn multiplied(term: u32, part: usize, [latest, earlier]: &[String; 2]) -> String {
    let mut line = String::new();
    let mut carry = 0;
    let count = latest.len().max(earlier.len());
    let mut column = 0;
    while column < count || carry > 0 {
        let sum = term * digit(latest, column) + digit(earlier, column) + carry;
        carry = sum / 10;
        line += &format!("{}{}", column_name(part, column), sum % 10);
        if carry > 0 {
            line += &carry.to_string();
        }
        column += 1;
    }
    line
}
