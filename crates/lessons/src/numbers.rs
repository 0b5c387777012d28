//! Numbers as lessons write them: of fixed width, compared from the highest digit on, counted and
//! added from the lowest.

use std::cmp::Ordering;

/// A value of an array with its sign, or `-` if it does not exist.
pub fn value(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:+05}"))
}

/// The value at a place of an array.
pub fn value_at(a: &[i64], place: usize) -> String {
    value(a.get(place).copied())
}

/// A place of this width, or `-` if there is none.
pub fn place(place: Option<usize>, width: usize) -> String {
    place.map_or_else(|| "-".to_owned(), |place| format!("{place:0width$}"))
}

/// The digits, lowest first, so that a carry runs in reading order.
pub fn low_first(number: usize, width: usize) -> String {
    format!("{number:0width$}").chars().rev().collect()
}

/// Each digit after its index, lowest first: `0:3 1:2` for 23.
pub fn indexed_digits(number: usize, width: usize) -> String {
    let digits: Vec<_> = low_first(number, width)
        .chars()
        .enumerate()
        .map(|(place, digit)| format!("{place}:{digit}"))
        .collect();
    digits.join(" ")
}

/// Compares two values as they are written: pairs of characters up to the first difference, then
/// `lt`, `eq` or `gt`.
pub fn comparison(x: i64, y: i64) -> String {
    spelled(&value(Some(x)), &value(Some(y)), x.cmp(&y))
}

/// Compares natural numbers like [`comparison`].
pub fn comparison_of_naturals(x: usize, y: usize, width: usize) -> String {
    let width = width_of(x.max(y), width);
    spelled(&format!("{x:0width$}"), &format!("{y:0width$}"), x.cmp(&y))
}

/// Compares a value with one that many are compared with: its characters up to the first that
/// differs, that of the other, and `l` or `g`; `=` if none differs.
pub fn up_to_difference(x: i64, other: i64) -> String {
    against(&value(Some(x)), &value(Some(other)), x < other)
}

fn against(x: &str, other: &str, less: bool) -> String {
    let mut line = String::new();
    for (c, d) in x.chars().zip(other.chars()) {
        line.push(c);
        if c != d {
            line.extend([d, if less { 'l' } else { 'g' }]);
            return line;
        }
    }
    line + "="
}

/// The least of numbered values, the first of equal ones. Each stands with its digits up to the
/// first that differs from the least so far, and `l`, `g` or `=`; the whole value follows a colon
/// where it becomes the least.
pub fn terse_minimum(numbered: impl IntoIterator<Item = (usize, usize)>, width: usize) -> String {
    let mut least = None;
    let mut line = String::new();

    for (number, value) in numbered {
        line += &format!("{number:02}");
        if let Some(least) = least {
            let width = width_of(value.max(least), width);
            let digits = format!("{value:0width$}");
            let same = digits
                .bytes()
                .zip(format!("{least:0width$}").bytes())
                .take_while(|(x, y)| x == y)
                .count();
            line += &digits[..digits.len().min(same + 1)];
            line.push(sign(value.cmp(&least), 'l', '=', 'g'));
        }

        if least.is_none_or(|least| value < least) {
            least = Some(value);
            line += &format!(":{value:0width$}");
        }
    }
    line
}

/// Compares natural numbers up to the first difference, without repeating the outcome: `11=25<` for
/// 12 and 15.
pub fn compared(x: usize, y: usize, width: usize) -> String {
    let width = width_of(x.max(y), width);
    pairwise(&format!("{x:0width$}"), &format!("{y:0width$}"))
}

fn spelled(x: &str, y: &str, order: Ordering) -> String {
    pairwise(x, y) + sign(order, " lt", " eq", " gt")
}

/// Pairs of characters and their relation, up to the first difference.
pub fn pairwise(x: &str, y: &str) -> String {
    let mut line = String::new();
    for (x, y) in x.chars().zip(y.chars()) {
        line.extend([x, y, sign(x.cmp(&y), '<', '=', '>')]);
        if x != y {
            break;
        }
    }
    line
}

/// Two numbers, digit beside digit, highest first: `13 24` for 12 and 34.
pub fn interleaved(x: usize, y: usize, width: usize) -> String {
    let width = width_of(x.max(y), width);
    let (x, y) = (format!("{x:0width$}"), format!("{y:0width$}"));
    let pairs = x.chars().zip(y.chars()).map(|(x, y)| format!("{x}{y}"));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Adds one from the lowest digit on, each digit beside that of the sum, then the sum: `90 12 20`
/// for 19.
pub fn incremented(number: usize, width: usize) -> String {
    stepped(number, number + 1, width)
}

/// Takes one away, as [`incremented`] adds it: `09 21 19` for 20.
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

/// The letter of an item, from `a` on; `~` for those that have none.
pub fn letter(place: usize) -> char {
    ('a'..='z').nth(place).unwrap_or('~')
}

/// The sign for a digit that carries or borrows, which shares its key on a keyboard.
pub fn shifted(digit: char) -> char {
    let place = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
    place.and_then(|place| ")!@#$%^&*(".chars().nth(place)).unwrap_or(digit)
}

/// The digits of a number, but at least `width`.
fn width_of(number: usize, width: usize) -> usize {
    number.to_string().len().max(width)
}

/// The sign of an order.
pub fn sign<T>(order: Ordering, less: T, equal: T, greater: T) -> T {
    match order {
        Ordering::Less => less,
        Ordering::Equal => equal,
        Ordering::Greater => greater,
    }
}

/// A counter beside its limit, both with the lowest digit first: `310/002` for 13 of 200.
pub fn counter(count: usize, limit: usize, width: usize) -> String {
    let width = width_of(count.max(limit), width);
    format!("{}/{}", low_first(count, width), low_first(limit, width))
}

/// x - y from the lowest digit on: both digits, the digit of the difference, and `-` for a borrow.
/// A borrow at the end tells that the difference is negative.
pub fn difference(x: usize, y: usize, width: usize) -> String {
    let mut borrow = 0;
    digitwise(x, y, width, |x, y| {
        // Ten more, so that the unsigned difference cannot underflow; if it is below ten, it was
        // borrowed.
        let digit = 10 + x - y - borrow;
        borrow = u32::from(digit < 10);
        (digit % 10, if borrow == 1 { '-' } else { '.' })
    })
}

/// x + y from the lowest digit on: both digits, the digit of the sum, and `+` for a carry.
pub fn sum(x: usize, y: usize, width: usize) -> String {
    let mut carry = 0;
    digitwise(x, y, width, |x, y| {
        let digit = x + y + carry;
        carry = digit / 10;
        (digit % 10, if carry == 1 { '+' } else { '.' })
    })
}

/// x times a digit from the lowest digit on: the digit of x, the factor, the digit of the product,
/// and the carry.
pub fn multiple(x: usize, factor: usize, width: usize) -> String {
    let mut carry = 0;
    let digit = |digit: char| {
        let product = digit.to_digit(10).map_or(0, |digit| digit as usize) * factor + carry;
        carry = product / 10;
        format!("{digit}{factor}{}{carry}", product % 10)
    };
    low_first(x, width).chars().map(digit).collect::<Vec<_>>().join(".")
}

/// 2x + 1 from the lowest digit on: the digit of x, that of the result, and the carry. The first
/// carry is the 1.
pub fn doubled_plus_one(x: usize, width: usize) -> String {
    let mut carry = 1;
    let digits = low_first(x, width);
    let digit = |digit: char| {
        let doubled = 2 * digit.to_digit(10).unwrap_or(0) + carry;
        carry = doubled / 10;
        format!("{digit}{}{carry}", doubled % 10)
    };
    digits.chars().map(digit).collect::<Vec<_>>().join(".")
}

fn digitwise(
    x: usize,
    y: usize,
    width: usize,
    mut digit: impl FnMut(u32, u32) -> (u32, char),
) -> String {
    let width = width_of(x.max(y), width);
    let mut line = String::new();
    for (x, y) in low_first(x, width).chars().zip(low_first(y, width).chars()) {
        let (result, rest) = digit(x.to_digit(10).unwrap_or(0), y.to_digit(10).unwrap_or(0));
        line += &format!("{x}{y}{result}{rest}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_up_to_the_first_difference() {
        assert_eq!(comparison(-12, -9), "--=00=00=10> lt");
        assert_eq!(comparison(7, 7), "++=00=00=00=77= eq");
        assert_eq!(up_to_difference(-512, -520), "-0512g");
        assert_eq!(up_to_difference(7, 7), "+0007=");
        assert_eq!(comparison_of_naturals(25, 100, 3), "01< lt");
        assert_eq!([compared(12, 15, 2), compared(7, 7, 2)], ["11=25<", "00=77="]);
        assert_eq!(interleaved(12, 345, 2), "03 14 25");

        let numbered = [(0, 31), (1, 40), (2, 29), (3, 29)];
        assert_eq!(terse_minimum(numbered, 2), "00:31014g022l:290329=");
    }

    #[test]
    fn carries_and_borrows_run_from_the_lowest_digit() {
        assert_eq!(counter(13, 200, 3), "310/002");

        let stepped = [incremented(19, 2), incremented(9, 1), decremented(20, 2)];
        assert_eq!(stepped, ["90 12 20", "90 01 10", "09 21 19"]);

        assert_eq!(difference(52, 40, 3), "202.541.000.");
        assert_eq!(difference(12, 40, 3), "202.147-009-");
        assert_eq!(sum(64, 48, 3), "482+641+001.");
        assert_eq!(multiple(28, 9, 3), "8927.2952.0920");
    }
}
