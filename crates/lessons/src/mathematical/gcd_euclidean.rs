//! GCD (Euclidean): divides digit by digit, subtracting the divisor until the result is negative.
// The results have their lowest digit first, and a letter that counts the subtractions in front of
// them.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::gcd_euclidean::{GcdEuclidean, Instance, State};

use crate::Lesson;

pub struct GcdEuclideanLesson;

impl Lesson for GcdEuclideanLesson {
    type Task = GcdEuclidean;

    fn view(_: &Instance, state: &State) -> String {
        let [dividend, divisor] = state.r;
        format!("{dividend} by {}", low_first(divisor, width_of(divisor)))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        GcdEuclidean::reference(instance, state)?;
        let [dividend, divisor] = state.r;
        let width = width_of(divisor);

        let digits = dividend.to_string();
        // The first part has as many digits as the divisor.
        let (first, others) = digits.split_at(digits.len().min(width - 1));
        let mut part: u64 = first.parse().ok()?;

        let mut lines = vec![quotient_digit(&mut part, divisor, width)?];

        for digit in others.chars() {
            part = 10 * part + u64::from(digit.to_digit(10)?);
            lines.push(quotient_digit(&mut part, divisor, width)?);
        }

        Some(lines.join(";"))
    }
}

/// Subtracts as often as possible and once more: the letters with their results and signs, then the
/// digit.
fn quotient_digit(part: &mut u64, divisor: u64, width: usize) -> Option<String> {
    let mut line = format!("{} ", low_first(*part, width));
    let digit = *part / divisor;
    for letter in ('a'..).take(usize::try_from(digit).ok()?) {
        *part -= divisor;
        line += &format!("{letter}{}+", low_first(*part, width));
    }

    // The last attempt goes below zero and is written as a complement.
    let letter = ('a'..).nth(usize::try_from(digit).ok()?)?;
    let below = 10u64.pow(u32::try_from(width).ok()?) + *part - divisor;

    Some(format!("{line}{letter}{}-{digit}", low_first(below, width)))
}

/// The digits, lowest first.
fn low_first(number: u64, width: usize) -> String {
    format!("{number:0width$}").chars().rev().collect()
}

/// Digits of a part of the dividend: one more than the divisor has.
fn width_of(divisor: u64) -> usize {
    divisor.to_string().len() + 1
}
