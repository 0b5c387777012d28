//! Simplex Method: the next row with an entry in the pivot's column; or the first negative cost,
//! and the smallest ratio of the rows that it reads.
// Columns are letters, rows digits. A row is read by its entry and, if that is positive, its right
// side.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::simplex_method::{Action, Instance, SimplexMethod, State};

use crate::Lesson;
use crate::fractions::{cofactors, low_first, multiplied, parts, product};
use crate::numbers::{compared, pairwise};
use crate::reads::looked_up;

pub struct SimplexMethodLesson;

fn column_name(column: usize) -> String {
    let letter = ('a'..='z').nth(column).unwrap_or('~');
    letter.to_string()
}

/// The rows that are looked at next, without the pivot's own, and their entries in the pivot's
/// column.
fn rows_left(state: &State) -> Vec<(usize, String)> {
    let Some((column, row)) = state.pivots.last().copied() else { return Vec::new() };

    let from = match state.last.0 {
        Some(Action::Div(..)) => 0,
        Some(Action::Sub(i, _)) => i + 1,
        _ => return Vec::new(),
    };

    let others = (from..state.tableau.len()).filter(|other| *other != row);
    others.map(|other| (other, state.tableau[other][column].to_string())).collect()
}

/// The signs of the costs, by column.
fn signs(state: &State) -> Vec<(String, char)> {
    let costs = &state.tableau[state.basis.len()];
    let sign = |text: String| match text.as_bytes() {
        [b'-', ..] => '-',
        [b'0'] => '0',
        _ => '+',
    };
    (0..costs.len() - 1)
        .map(|column| (column_name(column), sign(costs[column].to_string())))
        .collect()
}

impl Lesson for SimplexMethodLesson {
    type Task = SimplexMethod;

    fn view(_: &Instance, state: &State) -> String {
        if let Some(Action::Pivot(column, row)) = state.last.0 {
            return format!("pivot {row} {}", state.tableau[row][column]);
        }

        let rows: Vec<_> =
            rows_left(state).iter().map(|(row, entry)| format!("{row}:{entry} ")).collect();
        let costs: Vec<_> =
            signs(state).iter().map(|(column, sign)| format!("{column}{sign}")).collect();
        format!("rows {}cost {} of {}", rows.concat(), costs.concat(), state.basis.len())
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = SimplexMethod::reference(instance, state)?;
        let mut line = String::new();
        // The view has the pivot's row and entry already.
        if let Action::Div(..) = action {
            return Some(line);
        }

        // The rows that the pivot is still to be subtracted from.
        for (row, entry) in rows_left(state) {
            line += &row.to_string();
            if entry != "0" {
                return Some(line);
            }
            line.push('.');
        }

        line.push(' ');
        // No row is left: the next pivot follows.
        let Action::Pivot(column, _) = action else { return None };

        for (name, sign) in &signs(state)[..=column] {
            line += &format!("{name}{sign}");
        }

        ratios(state, column).map(|ratios| line + " " + &ratios)
    }

    const READS_MAX: usize = 30;

    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        value(state, address)
    }
}

/// `c3` is the entry of row 3 in column c, `R3` the right side of this row, and `B3` its basis
/// variable.
fn value(state: &State, address: &str) -> Option<String> {
    let columns = state.tableau.first()?.len() - 1;
    let row =
        (0..state.basis.len()).find(|row| address.get(1..) == Some(row.to_string().as_str()))?;
    match address.get(..1)? {
        "R" => Some(state.tableau[row][columns].to_string()),
        "B" => Some(format!("{:02}", state.basis[row])),
        name => {
            let column = (0..columns).find(|column| column_name(*column) == name)?;
            Some(state.tableau[row][column].to_string())
        }
    }
}

/// A row that could leave the basis.
struct Candidate {
    row: usize,
    basic: usize,
    /// Right side by entry.
    ratio: [i64; 2],
    /// Its digits down to the tenths.
    tenths: i64,
}

/// The query of an address like `c3`, with its value.
fn look_up(state: &State, name: &str, row: usize) -> Option<String> {
    let address = format!("{name}{row}");
    Some(looked_up(&address, &value(state, &address)?))
}

/// The ratio of each row with a positive entry, down to the tenths, compared with that of the
/// smallest so far, which stands with its row after the latest `l`. Only where these are equal
/// their cross products follow, and where those are equal the basis variables.
fn ratios(state: &State, column: usize) -> Option<String> {
    let mut line = String::new();
    let mut least: Option<Candidate> = None;

    for (row, basic) in state.basis.iter().copied().enumerate() {
        line += &look_up(state, &column_name(column), row)?;

        let entry = &state.tableau[row][column];
        if matches!(entry.to_string().as_bytes(), [b'-' | b'0', ..]) {
            line += ". ";
            continue;
        }

        line += &look_up(state, "R", row)?;
        let (rhs, entry) =
            (parts(&state.tableau[row][state.tableau[row].len() - 1])?, parts(entry)?);

        let ratio = ratio(rhs, entry, &mut line)?;
        let (divided, tenths) = tenths(ratio)?;
        line += &divided;
        let candidate = Candidate { row, basic, ratio, tenths };

        let Some(other) = &least else {
            line += &format!("l{row}:{tenths:03} ");
            least = Some(candidate);
            continue;
        };

        line += &format!(
            "{tenths:03} {}",
            compared(tenths.try_into().ok()?, other.tenths.try_into().ok()?, 3)
        );

        let mut order = tenths.cmp(&other.tenths);
        if order.is_eq() {
            let (ours, x) = product(ratio[0], other.ratio[1])?;
            let (theirs, y) = product(other.ratio[0], ratio[1])?;
            let width = low_first(x).len().max(low_first(y).len());
            line += &format!(
                " {ours} {theirs} {}",
                pairwise(&format!("{x:0width$}"), &format!("{y:0width$}"))
            );
            order = x.cmp(&y);
        }

        if order.is_eq() {
            let (ours, theirs) = (look_up(state, "B", row)?, look_up(state, "B", other.row)?);
            line += &format!(
                " {ours}{theirs}{}",
                pairwise(&format!("{basic:02}"), &format!("{:02}", other.basic))
            );
            order = basic.cmp(&other.basic);
        }

        if order.is_lt() {
            line += &format!(" l{row}:{tenths:03}");
            least = Some(candidate);
        }

        line.push(' ');
    }

    least.map(|least| format!("{line}{}", least.row))
}

/// The right side over the entry, as two natural numbers. Where both have a denominator, these are
/// made equal first.
fn ratio(rhs: (i64, i64), entry: (i64, i64), line: &mut String) -> Option<[i64; 2]> {
    let (ours, theirs) = if rhs.1 == entry.1 {
        (1, 1)
    } else if rhs.1 == 1 || entry.1 == 1 {
        (rhs.1, entry.1)
    } else {
        let (common, [ours, theirs]) = cofactors(rhs.1, entry.1)?;
        *line += &(common + " ");
        (ours, theirs)
    };
    Some([multiplied(rhs.0, theirs, line)?, multiplied(entry.0, ours, line)?])
}

/// Long division down to the tenths, numbers with the lowest digit first. Each digit of the
/// quotient is followed by what is taken away, unless that is nothing or the divisor itself, and by
/// the rest, in front of which the next digit comes. A leading 0 of the quotient stands alone,
/// since everything is left.
fn tenths([dividend, divisor]: [i64; 2]) -> Option<(String, i64)> {
    let mut line = format!("{},{}:", low_first(dividend), low_first(divisor));
    let digits = dividend.to_string() + "0";

    // The first digit of the quotient takes as many digits as the divisor has, or all there are.
    let first = low_first(divisor).len().min(digits.len() - 1) - 1;

    let mut rest: i64 = digits[..first].parse().unwrap_or(0);
    let mut quotient: i64 = 0;

    for digit in digits[first..].chars() {
        rest = rest.checked_mul(10)?.checked_add(i64::from(digit.to_digit(10)?))?;
        let times = rest / divisor;
        line += &times.to_string();

        if quotient == 0 && times == 0 {
            line.push(' ');
            continue;
        }

        if times > 1 {
            line += &format!(":{}", low_first(times * divisor));
        }

        rest -= times * divisor;
        line += &format!("-{} ", low_first(rest));
        quotient = quotient.checked_mul(10)?.checked_add(times)?;
    }

    Some((line, quotient))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_divided_down_to_its_tenths() {
        assert_eq!(tenths([651, 56]), Some(("156,65:1-9 1-53 6:633-41 ".to_owned(), 116)));
        assert_eq!(tenths([5, 23]), Some(("5,32:0 2:64-4 ".to_owned(), 2)));
        assert_eq!(tenths([40, 4]), Some(("04,4:1-0 0-0 0-0 ".to_owned(), 100)));
    }
}
