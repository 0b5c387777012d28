//! Two numbers, divided by their greatest common divisor and multiplied again, digit by digit.
// A row of the computation has places with letters that no row near it has, and each of its digits
// follows from the row before, which those letters find.

/// The letters of four rows between, which take turns.
const BETWEEN: [&str; 4] = ["QRSTUVWX", "abcdefgh", "ijklmnop", "qrstuvwx"];
/// Names of subtractions, in turn.
const NAMES: &str = "!#$%&'()*+,-.:;<>@[]^_{|}~";

/// The digit in a place, the lowest one first.
fn digit(number: u64, place: usize) -> u64 {
    u32::try_from(place)
        .ok()
        .and_then(|place| 10_u64.checked_pow(place))
        .map_or(0, |power| number / power % 10)
}

/// Digits of a number other than 0.
fn count(number: u64) -> usize {
    number.to_string().len()
}

/// The number formed by the first digits of another one.
fn leading(number: u64, digits: usize) -> u64 {
    number.to_string().get(..digits).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The letter of a place.
fn letter(letters: &str, place: usize) -> Option<char> {
    letters.chars().nth(place)
}

/// The letters of the rows between, which take turns throughout a derivation.
#[derive(Default)]
pub struct Rows(usize);

impl Rows {
    fn next(&mut self) -> &'static str {
        self.0 += 1;
        BETWEEN[(self.0 - 1) % BETWEEN.len()]
    }
}

/// Takes from the first of two numbers (or from the second one, if `turned`) the other one, times a
/// digit and a power of ten.
#[derive(Clone, Copy)]
struct Subtraction {
    name: char,
    turned: bool,
    shift: usize,
    times: u64,
}

impl Subtraction {
    /// The next subtraction, chosen by the leading digits so that the result stays above zero. The
    /// next subtractions take the rest of a quotient. `None` if there are no more names.
    fn of(pair: [u64; 2], index: usize) -> Option<Self> {
        let (greater, less) = (pair[0].max(pair[1]), pair[0].min(pair[1]));
        let apart = count(greater) - count(less);
        let (two, divisor) = (leading(greater, 2), leading(less, 2));

        let (shift, times) = if two > divisor {
            // One more than the divisor's leading digits: the share is never too large.
            (apart, two / (divisor + 1))
        } else if apart > 0 {
            (apart - 1, leading(greater, 3) / (divisor + 1))
        } else {
            (0, 1)
        };

        Some(Self { name: NAMES.chars().nth(index)?, turned: pair[0] < pair[1], shift, times })
    }

    fn text(self) -> String {
        format!("{}{}{}{}", self.name, if self.turned { 'z' } else { 'y' }, self.shift, self.times)
    }

    /// The pair after the subtraction (before it, if `undone`), and the row that computes it: the
    /// digits of both and the carry. The row of a subtraction is as long as the longer number was
    /// before.
    fn row(self, pair: [u64; 2], undone: bool, letters: &str) -> Option<(String, [u64; 2])> {
        let (changed, other) = if self.turned { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
        let share = 10_u64
            .checked_pow(u32::try_from(self.shift).ok()?)?
            .checked_mul(self.times.checked_mul(other)?)?;

        let result =
            if undone { changed.checked_add(share)? } else { changed.checked_sub(share)? };
        let longest = if undone { result.max(other) } else { changed.max(other) };

        let mut line = String::new();
        let mut carry = 0;

        for place in 0..count(longest) {
            let factor = place.checked_sub(self.shift).map_or(0, |place| digit(other, place));
            let part = self.times * factor + carry;
            let (from, to) = (digit(changed, place), digit(result, place));
            // In a subtraction, part and result together make the digit and the tens borrowed.
            carry = if undone { (from + part) / 10 } else { (part + to).saturating_sub(from) / 10 };

            let (x, y) =
                if self.turned { (digit(other, place), to) } else { (to, digit(other, place)) };
            line += &format!("{}{x}{y}{carry}", letter(letters, place)?);
        }

        Some((line, if self.turned { [other, result] } else { [result, other] }))
    }
}

/// Two numbers without common divisors, and how many places of both are written; the highest may be
/// 0.
pub struct Reduced {
    pub quotients: [u64; 2],
    pub width: usize,
}

/// Two numbers, whose digits stand after the letters `given`, divided by their greatest common
/// divisor.
///
/// The leading digits are written down to the first place where the numbers differ and to the
/// second digit of the lesser; they tell what is subtracted. Subtracting ends where one number has
/// a single digit: the remainder of the other one modulo it is written, then their common divisor.
/// It also ends where the numbers are equal. Finally both are divided by the divisor, or the
/// subtractions are undone from 1 and 1 on.
pub fn reduced(pair: [u64; 2], given: &str, rows: &mut Rows) -> Option<(String, Reduced)> {
    let [mut x, mut y] = pair;
    let mut line = String::new();
    let mut letters = given;
    let mut width = count(x.max(y));
    let mut done: Vec<Subtraction> = Vec::new();

    let divisor = loop {
        let less = x.min(y);
        let mut differ = false;
        for place in (0..width).rev() {
            let (ours, theirs) = (digit(x, place), digit(y, place));
            line += &format!("{}{ours}{theirs}", letter(letters, place)?);
            differ |= ours != theirs;
            if differ && place + 2 <= count(less) {
                break;
            }
        }

        if x == y {
            line.push('=');
            break None;
        }

        if less < 10 {
            let greater = x.max(y);
            let mut rest = greater % less;
            // A remainder of single digits, or modulo 1, is known without a row.
            if greater >= 10 && less > 1 {
                line.push('Z');
                rest = 0;
                for place in (0..count(greater)).rev() {
                    rest = (10 * rest + digit(greater, place)) % less;
                    line += &format!("{}{rest}", letter(letters, place)?);
                }
            }

            let divisor =
                (1..=less).rev().find(|divisor| less % divisor == 0 && rest % divisor == 0)?;
            line += &format!("Y{less}{rest}{divisor} ");
            break Some(divisor);
        }

        let subtraction = Subtraction::of([x, y], done.len())?;
        line += &format!("{} ", subtraction.text());

        width = count(x.max(y));
        letters = rows.next();
        let row;
        (row, [x, y]) = subtraction.row([x, y], false, letters)?;
        line += &format!("{row} ");
        done.push(subtraction);
    };

    let mut quotients = [1, 1];
    match divisor {
        Some(divisor) => quotients = pair.map(|number| number / divisor),
        None => {
            // The numbers are equal; divided by themselves they are 1 and 1.
            if !done.is_empty() {
                line += &format!("{}110", letter(rows.next(), 0)?);
            }
            line.push(' ');
            while let Some(subtraction) = done.pop() {
                let row;
                (row, quotients) = subtraction.row(quotients, true, rows.next())?;
                line += &format!("{} {row} ", subtraction.text());
            }
        }
    }

    // From the highest place on, each digit and what is left for the next.
    let of = if divisor.is_some() { pair } else { quotients };
    let divisor = divisor.unwrap_or(1);
    let width = count(of[0].max(of[1]));
    let mut rests = [0, 0];

    for place in (0..width).rev() {
        line.push(letter(given, place)?);
        for (rest, number) in rests.iter_mut().zip(of) {
            let part = 10 * *rest + digit(number, place);
            *rest = part % divisor;
            line += &format!("{}{rest}", part / divisor);
        }
    }

    Some((line + " ", Reduced { quotients, width }))
}

/// Each of two numbers times its own factor, digit by digit of both factors: the digits and carries
/// of the two sums so far, place by place. Nothing is written where both factors are 1, nor for a
/// place where both have 0.
pub fn multiplied(
    numbers: &Reduced,
    factors: &Reduced,
    rows: &mut Rows,
) -> Option<(String, Reduced)> {
    let mut line = String::new();
    let Reduced { quotients: pair, mut width } = *numbers;
    if factors.quotients == [1, 1] {
        return Some((line, Reduced { quotients: pair, width }));
    }

    let mut sums = [0_u64; 2];

    for shift in 0..factors.width {
        let digits = factors.quotients.map(|factor| digit(factor, shift));
        line += &format!("*{}{} ", digits[0], digits[1]);
        if digits == [0, 0] {
            continue;
        }

        let letters = rows.next();
        let power = 10_u64.checked_pow(u32::try_from(shift).ok()?)?;

        let before = sums;
        for ((sum, number), digit) in sums.iter_mut().zip(pair).zip(digits) {
            *sum = sum.checked_add(number.checked_mul(digit)?.checked_mul(power)?)?;
        }

        // All places of the numbers, zeros too, as far as there are letters; and what is carried.
        let places = width.max(numbers.width + shift).min(letters.len());
        width = places.max(count(sums[0].max(sums[1])));

        let mut carries = [0, 0];
        for place in 0..width {
            line.push(letter(letters, place)?);
            for (number, carry) in carries.iter_mut().enumerate() {
                let x = place.checked_sub(shift).map_or(0, |place| digit(pair[number], place));
                let sum = digit(before[number], place) + digits[number] * x + *carry;
                *carry = sum / 10;
                line += &format!("{}{carry}", sum % 10);
            }
        }

        line.push(' ');
    }

    Some((line, Reduced { quotients: sums, width }))
}

/// The digits from the highest place down, each after its letter, as they are copied into the
/// action; `.` for leading zeros.
pub fn spelled(number: u64, width: usize, letters: &str) -> Option<String> {
    let digit = |place: usize| {
        let digit =
            if place < count(number) { digit(number, place).to_string() } else { ".".to_owned() };
        Some(format!("{}{digit}", letter(letters, place)?))
    };
    (0..width).rev().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_divisors_are_taken_out() {
        let of = |x, y| {
            let (line, reduced) = reduced([x, y], "ABCDEFGH", &mut Rows::default()).expect("small");
            (line, reduced.quotients)
        };

        assert_eq!(of(3, 6), ("A36Y303 A1020 ".to_owned(), [1, 2]));
        assert_eq!(of(7, 7), ("A77= A1010 ".to_owned(), [1, 1]));

        for (x, y) in [
            (1, 1),
            (1, 12_345_678),
            (7_350_000, 24_500_000),
            (99_999_999, 10),
            (83_160, 55_440),
            (1_300, 13),
        ] {
            let (line, [above, below]) = of(x, y);
            assert_eq!(above * y, below * x, "{line}");
            assert!(
                (2..=above.min(below)).all(|divisor| above % divisor > 0 || below % divisor > 0),
                "{line}"
            );
        }
    }
}
