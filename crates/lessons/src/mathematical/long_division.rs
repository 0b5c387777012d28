//! Long Division: subtracts the divisor until the result is negative.
// Subtract until the result goes below zero. It is written modulo 10^width with its sign behind, so that the

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::long_division::{Instance, LongDivision, State};

use crate::Lesson;

pub struct Of;

impl Lesson for Of {
    type Task = LongDivision;

    fn view(instance: &Instance, state: &State) -> String {
        let width = width_of(&instance.divisor);
        let digit = instance.digit(state.pos).map_or_else(|| "-".to_owned(), |digit| digit.to_string());
        format!("by {} with {} next {digit}", reversed(instance.divisor(), width), reversed(state.r, width))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = LongDivision::reference(instance, state)?;
        let (width, divisor) = (width_of(&instance.divisor), instance.divisor());
        let part = state.r * 10 + instance.digit(state.pos)?;
        let mut line = reversed(part, width);
        // The result is written modulo 10^width with its sign last, so that the sign is the last borrow.
        for times in 1..=9.min(u64::from(action.digit) + 1) {
            let (rest, sign) = match part.checked_sub(times * divisor) {
                Some(rest) => (rest, '+'),
                None => (10u64.pow(u32::try_from(width).ok()?) + part - times * divisor, '-'),
            };
            line += &format!(" {times}:{}{sign}", reversed(rest, width));
        }
        Some(line + " stop")
    }
}

/// Digits, lowest first, padded to `width`: subtraction then runs in reading order.
fn reversed(number: u64, width: usize) -> String {
    format!("{number:0width$}").chars().rev().collect()
}

/// Width of numbers in views and derivations: one digit more than the divisor, at least that of the hard level.
fn width_of(divisor: &str) -> usize {
    (divisor.len() + 1).max(7)
}
