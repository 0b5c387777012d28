//! Counters as lessons write them: side by side, compared and stepped digit by digit.

use crate::numbers::{low_first, up_to_the_difference};

/// Two numbers, digit beside digit, highest first: 12 and 34 are `13 24`.
pub fn interleaved(a: usize, b: usize, width: usize) -> String {
    let width = width_of(a.max(b), width);
    let (a, b) = (format!("{a:0width$}"), format!("{b:0width$}"));
    let pairs: Vec<_> = a.chars().zip(b.chars()).map(|(x, y)| format!("{x}{y}")).collect();
    pairs.join(" ")
}

/// Compares two numbers from the highest digit on, up to the first difference: 12 and 15 are `11=25<`.
pub fn compared(a: usize, b: usize, width: usize) -> String {
    let width = width_of(a.max(b), width);
    up_to_the_difference(&format!("{a:0width$}"), &format!("{b:0width$}"))
}

/// Adds one from the lowest digit on: each digit beside that of the sum, then the sum. 19 is `90 12 20`.
pub fn incremented(number: usize, width: usize) -> String {
    stepped(number, number + 1, width)
}

/// Takes one away, as [`incremented`] adds it. 20 is `09 21 19`.
pub fn decremented(number: usize, width: usize) -> String {
    stepped(number, number.saturating_sub(1), width)
}

fn stepped(before: usize, after: usize, width: usize) -> String {
    let width = width_of(before.max(after), width);
    let mut line = String::new();
    for (x, y) in low_first(before, width).chars().zip(low_first(after, width).chars()) {
        line.extend([x, y, ' ']);
    }
    line + &format!("{after:0width$}")
}

/// The digits of a number, but at least `width`.
fn width_of(number: usize, width: usize) -> usize {
    number.to_string().len().max(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_digit_by_digit() {
        assert_eq!(interleaved(12, 345, 2), "03 14 25");
        assert_eq!([compared(12, 15, 2), compared(7, 7, 2)], ["11=25<", "00=77="]);
        assert_eq!(
            [incremented(19, 2), incremented(9, 1), decremented(20, 2)],
            ["90 12 20", "90 01 10", "09 21 19"].map(String::from)
        );
    }
}
