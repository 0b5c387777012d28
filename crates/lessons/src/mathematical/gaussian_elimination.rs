//! Gaussian Elimination: reads signs down a column to the next entry that is not zero, and divides it by the pivot; then finds
//! an unknown by its remainder modulo a prime.
// Columns of the matrix are letters, rows numbers: `c4` asks for the sign of an entry. Of an entry and its pivot, `c4:2` are both
// numerators, `c4/2` both signs and denominators, digit beside digit, each pair behind the letter of its place; the common divisors of
// both pairs are taken out one after the other, so that no number is longer than an entry. A row of the computation has places
// with letters that no row near it has, and each of its digits follows from the row before, which those letters find.
//
// The unknowns of the benchmark are integers from -9 to 9, so that a remainder tells them. `4c` and `4r` are an entry and a right
// side, their digits behind letters, highest first.

use prime_bench::tasks::Rational;
use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::gaussian_elimination::{Action, GaussianElimination, Instance, State};

use crate::Lesson;
use crate::fractions::parts;
use crate::reads::looked_up;

pub struct Of;

/// The letters of numerators and denominators as they are read, and of what remains of them in the end: the benchmark has no
/// longer numbers.
const NUMERATORS: &str = "ABCDEFGH";
const DENOMINATORS: &str = "IJKLMNOP";
/// The letters of four rows between, which take turns.
const BETWEEN: [&str; 4] = ["QRSTUVWX", "abcdefgh", "ijklmnop", "qrstuvwx"];
/// Names of subtractions, in turn.
const NAMES: &str = "!#$%&'()*+,-.:;<>@[]^_{|}~";
/// The primes that remainders are taken by. Where one divides what has to be divided by, the next one is tried; rows begin with
/// different ones, so that all are learnt.
const PRIMES: [i64; 3] = [19, 23, 29];

fn column_name(column: usize) -> String {
    let letter = ('a'..='z').chain('A'..='Z').nth(column).unwrap_or('~');
    letter.to_string()
}

impl Lesson for Of {
    type Task = GaussianElimination;

    fn view(_: &Instance, state: &State) -> String {
        let n = state.matrix.len();
        let known = state.solution.iter().enumerate().rev();
        let known = known.filter_map(|(j, value)| Some(format!(" {}{}", column_name(j), value.0.as_ref()?)));
        let known = known.collect::<String>();
        match &state.last.0 {
            None => format!("a0 of {n}"),
            Some(Action::Swap(k, _)) => format!("swap {}{k} of {n}", column_name(*k)),
            Some(Action::Add(i, k, _)) => format!("add {}{k} to {i} of {n}", column_name(*k)),
            Some(Action::Solve(i, _)) => format!("solve {i} of {n} known{known}"),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = GaussianElimination::reference(instance, state)?;
        let (mut k, mut below) = match state.last.0 {
            None => (0, 0),
            Some(Action::Swap(k, _)) => (k, k + 1),
            Some(Action::Add(i, k, _)) => (k, i + 1),
            Some(Action::Solve(..)) => {
                let Action::Solve(i, _) = action else { return None };
                return unknown(state, i);
            }
        };
        let mut line = String::new();
        while k < state.matrix.len() {
            if below == k {
                let p = down(state, k, k, &mut line)?;
                if p != k {
                    return Some(line);
                }
                below = k + 1;
            }
            if let Some(i) = down(state, k, below, &mut line) {
                return factor(state, k, i).map(|factor| line + &factor);
            }
            k += 1;
            below = k;
        }
        unknown(state, k.checked_sub(1)?).map(|unknown| format!("{line}end {unknown}"))
    }

    const READS_MAX: usize = 60;

    const UNTAUGHT: [u32; 3] = [0, 0, 1];

    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        value(state, address)
    }
}

/// What stands at an address, as the head of this file tells.
fn value(state: &State, address: &str) -> Option<String> {
    let n = state.matrix.len();
    let row = |text: &str| (0..n).find(|row| row.to_string() == text);
    let column = |text: &str| (0..n).find(|column| column_name(*column) == text);
    if address.starts_with(|c: char| c.is_ascii_digit()) {
        let name = address.get(address.len().checked_sub(1)?..)?;
        let row = row(address.strip_suffix(name)?)?;
        let column = if name == "r" { n } else { column(name)? };
        return Some(lettered(state.matrix[row].get(column)?));
    }
    let (column, rows) = (column(address.get(..1)?)?, address.get(1..)?);
    let Some(mark) = rows.find([':', '/']) else {
        return Some(sign(&state.matrix[row(rows)?][column]).to_string());
    };
    let both = [row(&rows[..mark])?, row(&rows[mark + 1..])?].map(|row| &state.matrix[row][column]);
    let [x, y] = both.map(texts);
    Some(if rows.as_bytes()[mark] == b':' {
        columns(&x.0, &y.0, NUMERATORS)
    } else {
        format!("{}{}{}", sign(both[0]), sign(both[1]), columns(&y.1, &x.1, DENOMINATORS))
    })
}

fn look_up(state: &State, address: &str) -> Option<String> {
    Some(looked_up(address, &value(state, address)?))
}

/// The digits of numerator and denominator.
fn texts(value: &Rational) -> (String, String) {
    let text = value.to_string();
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    (numerator.trim_start_matches('-').to_owned(), denominator.to_owned())
}

/// Two numbers, digit beside digit, lowest first, each pair behind its letter.
fn columns(x: &str, y: &str, letters: &str) -> String {
    let width = x.len().max(y.len());
    let (x, y) = (format!("{x:0>width$}"), format!("{y:0>width$}"));
    let pairs = x.chars().rev().zip(y.chars().rev());
    let letters = letters.chars().chain(std::iter::repeat('~'));
    letters.zip(pairs).map(|(letter, (x, y))| format!("{letter}{x}{y}")).collect::<Vec<_>>().concat()
}

/// A fraction with a letter before each digit, `A` and on in the numerator, `N` and on in the denominator.
fn lettered(value: &Rational) -> String {
    let (numerator, denominator) = texts(value);
    let lettered = |text: &str, from: char| -> String {
        let letters = (from..='Z').chain(std::iter::repeat('~'));
        letters.zip(text.chars()).map(|(letter, digit)| format!("{letter}{digit}")).collect::<Vec<_>>().concat()
    };
    let sign = if value.to_string().starts_with('-') { '-' } else { '+' };
    format!("{sign}{}/{}", lettered(&numerator, 'A'), lettered(&denominator, 'N'))
}

fn is_zero(value: &Rational) -> bool {
    *value == Rational::from(0)
}

fn sign(value: &Rational) -> char {
    match value.to_string().as_bytes() {
        [b'0'] => '0',
        [b'-', ..] => '-',
        _ => '+',
    }
}

/// Reads signs down a column, from this row on, to the first entry that is not zero: its row.
fn down(state: &State, column: usize, from: usize, line: &mut String) -> Option<usize> {
    for row in from..state.matrix.len() {
        *line += &look_up(state, &format!("{}{row}", column_name(column)))?;
        if !is_zero(&state.matrix[row][column]) {
            return Some(row);
        }
    }
    *line += ". ";
    None
}

/// The digit in a place, the lowest one first.
fn digit(number: u64, place: usize) -> u64 {
    u32::try_from(place).ok().and_then(|place| 10_u64.checked_pow(place)).map_or(0, |power| number / power % 10)
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

/// The letters of the rows between, which go on through all of a derivation.
#[derive(Default)]
struct Rows(usize);

impl Rows {
    fn next(&mut self) -> &'static str {
        self.0 += 1;
        BETWEEN[(self.0 - 1) % BETWEEN.len()]
    }
}

/// Takes from the first of two numbers (or from the second one, if `turned`) the other one, times a digit and a power of ten.
#[derive(Clone, Copy)]
struct Subtraction {
    name: char,
    turned: bool,
    shift: usize,
    times: u64,
}

impl Subtraction {
    /// Of the leading digits, so that the result is never below zero nor zero. What is left of a quotient is for the next ones. `None`
    /// if there are no more names.
    fn of(pair: [u64; 2], index: usize) -> Option<Self> {
        let (greater, less) = (pair[0].max(pair[1]), pair[0].min(pair[1]));
        let apart = count(greater) - count(less);
        let (two, divisor) = (leading(greater, 2), leading(less, 2));
        let (shift, times) = if two > divisor {
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

    /// The pair after it, or before it, and the row that computes it: the digits of both and the carry. After a subtraction the row is as
    /// long as the longer number was before.
    fn row(self, pair: [u64; 2], undone: bool, letters: &str) -> Option<(String, [u64; 2])> {
        let (changed, other) = if self.turned { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
        let share = 10_u64.checked_pow(u32::try_from(self.shift).ok()?)?.checked_mul(self.times.checked_mul(other)?)?;
        let result = if undone { changed.checked_add(share)? } else { changed.checked_sub(share)? };
        let longest = if undone { result.max(other) } else { changed.max(other) };
        let mut line = String::new();
        let mut carry = 0;
        for place in 0..count(longest) {
            let factor = place.checked_sub(self.shift).map_or(0, |place| digit(other, place));
            let part = self.times * factor + carry;
            let (from, to) = (digit(changed, place), digit(result, place));
            carry = if undone { (from + part) / 10 } else { (part + to).saturating_sub(from) / 10 };
            let (x, y) = if self.turned { (digit(other, place), to) } else { (to, digit(other, place)) };
            line += &format!("{}{x}{y}{carry}", letter(letters, place)?);
        }
        Some((line, if self.turned { [other, result] } else { [result, other] }))
    }
}

/// Two numbers without common divisors, and the places that are written of both, of which the highest may be 0.
struct Reduced {
    quotients: [u64; 2],
    width: usize,
}

/// Two numbers, whose digits stand behind these letters, by their greatest common divisor.
///
/// The leading digits are written down to the first place where the numbers differ and to the second digit of the less one; they tell
/// what is subtracted. That ends where one number has one digit, which what the other one leaves modulo it is compared with; or where
/// the numbers are equal. Then both are divided by the digit, or the subtractions undone from 1 and 1 on.
fn reduced(pair: [u64; 2], given: &str, rows: &mut Rows) -> Option<(String, Reduced)> {
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
            if greater >= 10 && less > 1 {
                line.push('Z');
                rest = 0;
                for place in (0..count(greater)).rev() {
                    rest = (10 * rest + digit(greater, place)) % less;
                    line += &format!("{}{rest}", letter(letters, place)?);
                }
            }
            let divisor = (1..=less).rev().find(|divisor| less % divisor == 0 && rest % divisor == 0)?;
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

/// Each of two numbers by its own factor, digit by digit of both factors: of each place the digits and carries of the two sums so
/// far. Nothing where both factors are 1, nor of a place where both have 0.
fn multiplied(numbers: &Reduced, factors: &Reduced, rows: &mut Rows) -> Option<(String, Reduced)> {
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

/// The digits from the highest place on, each behind its letter, as they are copied into the action; `.` for zeros in front.
fn spelled(number: u64, width: usize) -> Option<String> {
    let digit = |place: usize| {
        let digit = if place < count(number) { digit(number, place).to_string() } else { ".".to_owned() };
        Some(format!("{}{digit}", letter(NUMERATORS, place)?))
    };
    (0..width).rev().map(digit).collect()
}

/// An entry by its pivot.
fn factor(state: &State, column: usize, row: usize) -> Option<String> {
    let (entry, pivot) = (&state.matrix[row][column], &state.matrix[column][column]);
    let (x, y) = (parts(entry)?, parts(pivot)?);
    let name = column_name(column);
    let mut rows = Rows::default();
    let mut line = look_up(state, &format!("{name}{row}:{column}"))?;
    let (text, numerators) = reduced([x.0.unsigned_abs(), y.0.unsigned_abs()], NUMERATORS, &mut rows)?;
    line += &text;
    line += &look_up(state, &format!("{name}{row}/{column}"))?;
    let (text, denominators) = reduced([y.1.unsigned_abs(), x.1.unsigned_abs()], DENOMINATORS, &mut rows)?;
    line += &text;
    let (text, Reduced { quotients: [above, below], width }) = multiplied(&numerators, &denominators, &mut rows)?;
    line += &text;
    let negated = if (x.0 < 0) == (y.0 < 0) { '-' } else { '+' };
    line += &format!("{}{}{negated}{}/{}", sign(entry), sign(pivot), spelled(above, width)?, spelled(below, width)?);
    // A denominator of 1 is no part of the action.
    if below == 1 {
        line.push('.');
    }
    Some(line)
}

/// A remainder modulo a prime: `a` for 0.
fn residue(number: i64, prime: i64) -> char {
    let place = usize::try_from(number.rem_euclid(prime)).unwrap_or(usize::MAX);
    (b'a'..=b'~').nth(place).map_or('~', char::from)
}

/// A quotient modulo a prime that does not divide the divisor.
fn divided(x: i64, y: i64, prime: i64) -> Option<i64> {
    (0..prime).find(|quotient| (quotient * y - x).rem_euclid(prime) == 0)
}

/// The remainders of the leading digits, one after the other, each behind the letter of its last digit.
fn residues(number: i64, from: char, prime: i64) -> String {
    let mut rest = 0;
    let digits = number.unsigned_abs().to_string();
    let digits = digits.chars().zip(from..='Z');
    digits
        .map(|(digit, letter)| {
            rest = (10 * rest + i64::from(digit.to_digit(10).unwrap_or(0))) % prime;
            format!("{letter}{}", residue(rest, prime))
        })
        .collect::<Vec<_>>()
        .concat()
}

/// The prime divides what has to be divided by.
struct DoesNotServe;

/// The remainder of an entry or, in the last column, a right side: that of the numerator, then with its sign; that of the denominator
/// and its inverse; the product. `!` where the prime divides the denominator.
fn remainder(
    state: &State,
    row: usize,
    column: usize,
    prime: i64,
    line: &mut String,
) -> Option<Result<i64, DoesNotServe>> {
    let name = if column == state.matrix.len() { "r".to_owned() } else { column_name(column) };
    *line += &look_up(state, &format!("{row}{name}"))?;
    let (above, below) = parts(&state.matrix[row][column])?;
    let sign = if above < 0 { '-' } else { '+' };
    *line += &format!("{}/{} ", residues(above, 'A', prime), residues(below, 'N', prime));
    line.extend([sign, residue(above.abs(), prime), residue(above, prime), '/', residue(below, prime)]);
    if below % prime == 0 {
        line.push('!');
        return Some(Err(DoesNotServe));
    }
    let inverse = divided(1, below % prime, prime)?;
    let remainder = (above % prime * inverse).rem_euclid(prime);
    line.extend([residue(inverse, prime), '=', residue(remainder, prime)]);
    Some(Ok(remainder))
}

/// An unknown of this row by the first prime that serves.
fn unknown(state: &State, i: usize) -> Option<String> {
    let mut line = String::new();
    for attempt in 0..PRIMES.len() {
        let prime = PRIMES[(i + attempt) % PRIMES.len()];
        line += &format!("by {prime} ");
        if unknown_by(prime, state, i, &mut line)? {
            return Some(line);
        }
        line.push(' ');
    }
    None
}

/// The right side, less the products of the known unknowns and their coefficients; then the coefficient of the unknown itself, by
/// which what is left is divided. Whether the prime served.
fn unknown_by(prime: i64, state: &State, i: usize, line: &mut String) -> Option<bool> {
    let n = state.matrix.len();
    let Ok(mut rest) = remainder(state, i, n, prime, line)? else { return Some(false) };
    line.push(' ');
    for j in i + 1..n {
        let (value, one) = parts(state.solution[j].0.as_ref()?)?;
        if one != 1 || value.abs() > 9 {
            return None;
        }
        let Ok(other) = remainder(state, i, j, prime, line)? else { return Some(false) };
        let share = other * value;
        let left = (rest - share).rem_euclid(prime);
        let [factor, product, before, after] = [value, share, rest, left].map(|number| residue(number, prime));
        *line += &format!("*{value}{factor}={product} {before}-{product}={after} ");
        rest = left;
    }
    let Ok(coefficient) = remainder(state, i, i, prime, line)? else { return Some(false) };
    if coefficient == 0 {
        line.push('!');
        return Some(false);
    }
    line.push(' ');
    let inverse = divided(1, coefficient, prime)?;
    let unknown = (rest * inverse).rem_euclid(prime);
    let digit = if unknown > prime / 2 { unknown - prime } else { unknown };
    line.extend([residue(rest, prime), '/', residue(coefficient, prime), residue(inverse, prime), '=']);
    line.push(residue(unknown, prime));
    (digit.abs() <= 9).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{Difficulty, TaskRng};

    /// Every derivation of some traces ends in what its action says.
    #[test]
    fn derivations_lead_to_their_actions() {
        let mut rng = TaskRng::new(11);
        for difficulty in [Difficulty::Easy, Difficulty::Medium, Difficulty::Hard].into_iter().cycle().take(60) {
            let instance = GaussianElimination::generate(difficulty, &mut rng);
            let mut state = GaussianElimination::start(&instance);
            while let Some(action) = GaussianElimination::reference(&instance, &state) {
                let line = Of::derivation(&instance, &state).unwrap_or_default();
                let last = line.rsplit(' ').next().unwrap_or_default();
                match &action {
                    _ if line.is_empty() => {}
                    Action::Swap(..) => assert!(line.ends_with("?=+ ") || line.ends_with("?=- "), "{line}"),
                    Action::Add(_, _, factor) => {
                        let number: String = last[2..].chars().filter(char::is_ascii_digit).collect();
                        let expected: String = factor.to_string().chars().filter(char::is_ascii_digit).collect();
                        let whole = last.ends_with('.');
                        assert_eq!(number, if whole { expected + "1" } else { expected }, "{line}");
                        assert_eq!(&last[2..3] == "-", factor.to_string().starts_with('-'), "{line}");
                        assert_eq!(whole, !factor.to_string().contains('/'), "{line}");
                    }
                    Action::Solve(_, value) => {
                        let prime = line.rsplit("by ").next().and_then(|text| text[..2].parse().ok()).expect("a prime");
                        let value = value.to_string().parse().expect("an integer");
                        assert!(line.ends_with(residue(value, prime)), "{line} {value}");
                    }
                }
                let applied = GaussianElimination::step(&instance, &mut state, action);
                assert!(applied.is_ok(), "the reference is legal");
            }
        }
    }

    #[test]
    fn common_divisors_are_taken_out() {
        let of = |x, y| {
            let (line, reduced) = reduced([x, y], NUMERATORS, &mut Rows::default()).expect("small");
            (line, reduced.quotients)
        };
        assert_eq!(of(3, 6), ("A36Y303 A1020 ".to_owned(), [1, 2]));
        assert_eq!(of(7, 7), ("A77= A1010 ".to_owned(), [1, 1]));
        for (x, y) in
            [(1, 1), (1, 12_345_678), (7_350_000, 24_500_000), (99_999_999, 10), (83_160, 55_440), (1_300, 13)]
        {
            let (line, [above, below]) = of(x, y);
            assert_eq!(above * y, below * x, "{line}");
            assert!((2..=above.min(below)).all(|divisor| above % divisor > 0 || below % divisor > 0), "{line}");
        }
    }

    #[test]
    fn remainders_run_from_the_highest_digit() {
        assert_eq!(residues(-123, 'A', 19), "AbBmCj", "1, 12, 123 - 6 * 19 = 9");
        assert_eq!(divided(3, 2, 19), Some(11));
    }
}
