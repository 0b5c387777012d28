//! Long Division: subtracts the divisor until the result is negative.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::long_division::{Instance, LongDivision, State};

use crate::Lesson;
use crate::numbers::low_first;

pub struct LongDivisionLesson;

/// Width of numbers: one digit more than the longest divisor of the benchmark has.
const WIDTH: usize = 7;

impl Lesson for LongDivisionLesson {
    type Task = LongDivision;

    fn view(instance: &Instance, state: &State) -> String {
        let digit =
            instance.digit(state.pos).map_or_else(|| "-".to_owned(), |digit| digit.to_string());
        format!("by {} with {} next {digit}", digits(instance.divisor()), digits(state.r))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = LongDivision::reference(instance, state)?;
        let divisor = instance.divisor();
        let mut rest = state.r * 10 + instance.digit(state.pos)?;
        let mut line = digits(rest);
        // One attempt more than fits shows that it fails; after 9 none is needed.
        for times in 1..=9.min(u64::from(action.digit) + 1) {
            line += &format!(" {times}:{}", subtracted(rest, divisor));
            rest = rest.saturating_sub(divisor);
        }

        Some(format!("{line} rest {}", digits(action.remainder)))
    }
}

/// Digits, lowest first: subtraction then runs in reading order.
fn digits(number: u64) -> String {
    low_first(usize::try_from(number).unwrap_or(usize::MAX), WIDTH)
}

/// The digits of `x - y`, lowest first; a digit that borrows from the next is written as a letter
/// (`a` is 0), so that each follows from its column and the digit before it, and the last one tells
/// whether the result is negative.
fn subtracted(x: u64, y: u64) -> String {
    let width = digits(x.max(y)).len();
    let column =
        |number: u64| low_first(usize::try_from(number).unwrap_or(usize::MAX), width).into_bytes();

    let mut borrow = 0;
    let digit = |(x, y): (u8, u8)| {
        let digit = 10 + x - y - borrow;
        borrow = u8::from(digit < 10);
        char::from(if borrow == 1 { b'a' + digit } else { b'0' + digit - 10 })
    };

    column(x).into_iter().zip(column(y)).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::subtracted;

    #[test]
    fn a_digit_that_borrows_is_a_letter() {
        assert_eq!(subtracted(52, 17), "f300000");
        assert_eq!(subtracted(17, 52), "5gjjjjj");
        assert_eq!(subtracted(1_000, 1), "jjj0000");
    }
}
