//! Cells of an array that is too long to be shown, read by their places.

use crate::numbers::{low_first, up_to_difference, value};
use crate::reads::looked_up;

/// Digits of a place.
const WIDTH: usize = 3;

/// The number that an address of this form stands for: digits, all of the width.
pub fn number(address: &str, width: usize) -> Option<usize> {
    // `parse` alone would also take a sign, and fewer or more digits.
    let is_number = address.len() == width && address.bytes().all(|byte| byte.is_ascii_digit());

    address.parse().ok().filter(|_| is_number)
}

/// The value of the cell with this address.
pub fn read(a: &[i64], address: &str) -> Option<String> {
    let cell = a.get(number(address, WIDTH)?)?;
    Some(value(Some(*cell)))
}

/// The query of a cell, with its value.
pub fn look_up(a: &[i64], place: usize) -> Option<String> {
    let address = format!("{place:0WIDTH$}");
    Some(looked_up(&address, &read(a, &address)?))
}

/// The middle of two numbers: their digits side by side, lowest first, then their sum with its
/// carries, from which each digit of the half can be read off, highest first. The caller writes the
/// half, as an address: `251200:7.3.0. 018?` for 12 and 25. Equal numbers are their own middle and
/// end in `=`.
pub fn middle(lo: usize, hi: usize, width: usize) -> String {
    let (x, y) = (low_first(lo, width), low_first(hi, width));
    let mut pairs = String::new();
    let mut sum = String::new();
    let mut carry = 0;

    for (x, y) in x.chars().zip(y.chars()) {
        pairs.extend([x, y]);
        let digits = x.to_digit(10).unwrap_or(0) + y.to_digit(10).unwrap_or(0) + carry;
        carry = digits / 10;
        sum += &format!("{}{}", digits % 10, if carry == 1 { '+' } else { '.' });
    }

    if lo == hi { pairs + "=" } else { format!("{pairs}:{sum} ") }
}

/// A binary search for the first of the ascending cells `lo..hi` that is greater than `key`, and
/// where it ends. Each middle stands with its value, its characters up to the first that differs
/// from the key's, and `l` or `g`; `=` if all are equal.
pub fn bisection(a: &[i64], lo: usize, hi: usize, key: i64) -> Option<(String, usize)> {
    bisection_for(a, lo, hi, key, |value| value > key)
}

/// [`bisection`] for the first cell that is not less than `key`.
pub fn bisection_not_less(a: &[i64], lo: usize, hi: usize, key: i64) -> Option<(String, usize)> {
    bisection_for(a, lo, hi, key, |value| value >= key)
}

fn bisection_for(
    a: &[i64],
    lo: usize,
    hi: usize,
    key: i64,
    is_past: impl Fn(i64) -> bool,
) -> Option<(String, usize)> {
    bisected(lo, hi, |place| {
        let value = *a.get(place)?;
        Some((look_up(a, place)? + &up_to_difference(value, key) + " ", is_past(value)))
    })
}

/// A search by halves of the cells `lo..hi`, and where it ends. For each middle, `compare` returns
/// what to write about the cell, and true if the cell is past the one that is sought.
pub fn bisected(
    mut lo: usize,
    mut hi: usize,
    compare: impl Fn(usize) -> Option<(String, bool)>,
) -> Option<(String, usize)> {
    let mut line = String::new();

    while lo < hi {
        let place = usize::midpoint(lo, hi);
        let (written, is_past) = compare(place)?;
        line += &(middle(lo, hi, WIDTH) + &written);
        if is_past {
            hi = place;
        } else {
            lo = place + 1;
        }
    }

    Some((line + &middle(lo, lo, WIDTH), lo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]

    fn a_search_reads_the_middle_of_what_is_left() {
        assert_eq!(middle(12, 25, 3), "251200:7.3.0. ");

        let a = [-5, 1, 1, 7, 30];
        let (line, place) = bisection(&a, 0, 4, 1).expect("cells");
        assert_eq!(
            line,
            "040000:4.0.0. 002?=+0001 +0001= 340000:7.0.0. 003?=+0007 +00071g 330000="
        );
        assert_eq!(place, 3);

        assert_eq!(bisection(&a, 4, 4, 1), Some(("440000=".to_owned(), 4)));
        assert_eq!(bisection(&a, 0, 900, 1), None, "there are no such cells");
    }

    #[test]
    fn an_address_has_all_its_digits() {
        let found =
            ["002", "2", "+02", "005", "", "0002", "é"].map(|address| read(&[4, 5, -6], address));
        assert_eq!(found[0].as_deref(), Some("-0006"));
        assert!(found[1..].iter().all(Option::is_none), "{found:?}");
    }
}
