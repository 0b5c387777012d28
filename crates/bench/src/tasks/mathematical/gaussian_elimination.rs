//! Gaussian Elimination: solve linear equations exactly, with the first non-zero entry of a column
//! as its pivot.
//!
//! A step is one exchange of rows, one addition of a row to another, or one unknown of the back
//! substitution.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

use super::rationals::{Rationals, TOTAL_BITS_MAX, sum_of_products};
use crate::tasks::Rational;
use crate::tasks::optional_text::OptionalText;
use crate::tasks::pages::gaussian_elimination as page;
use crate::tasks::prelude::*;
use crate::tasks::rational::BITS_MAX;

/// The task `gaussian-elimination`.
pub struct GaussianElimination;

/// With these bounds no entry comes near the length that makes a line illegal: by Hadamard's
/// inequality a minor has at most 32·(2.5 + 30) = 1,040 bits, and every entry is a quotient of two
/// minors.
const SIZE_MAX: usize = 32;
const ENTRY_MAX: u64 = 1_000_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    matrix: Vec<Vec<i64>>,
    rhs: Vec<i64>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The current n by n+1 matrix, row by row, the right-hand side last.
    pub matrix: Vec<Rationals>,
    swaps: u64,
    /// Value of each unknown; none where it has not been computed.
    pub solution: Vec<OptionalText<Rational>>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Action {
        /// Exchanges rows k and p, k < p.
        Swap(k: usize, p: usize) = "swap <nat> <nat>", "swap {k} {p}";
        /// Adds `factor` times row k to row i.
        Add(i: usize, k: usize, factor: Rational) = "add <nat> <nat> <rat>", "add {i} {k} {factor}";
        /// Unknown i has this value.
        Solve(i: usize, value: Rational) = "x<nat> = <rat>", "x{i} = {value}";
    }
}

/// The next operation from column `k` on, whose entries in rows below `below` are done with;
/// `below` = k while the pivot row is to be found.
fn elimination(state: &State, mut k: usize, mut below: usize) -> Option<Action> {
    let n = state.matrix.len();
    let zero = |row: usize, column: usize| state.matrix[row][column].0.is_zero();
    while k < n {
        if below == k {
            let p = (k..n).find(|row| !zero(*row, k))?;
            if p != k {
                return Some(Action::Swap(k, p));
            }
            below = k + 1;
        }

        if let Some(i) = (below..n).find(|row| !zero(*row, k)) {
            // After wrong lines the pivot may be 0: no addition is prescribed then.
            let pivot = Some(&state.matrix[k][k].0).filter(|pivot| !pivot.is_zero())?;
            let factor = Rational(-(&state.matrix[i][k].0 / pivot));
            return state.matrix[i]
                .has_room_for(&factor, &state.matrix[k])
                .then_some(Action::Add(i, k, factor));
        }

        k += 1;
        below = k;
    }

    unknown(state, n - 1)
}

/// The back substitution of one unknown.
fn unknown(state: &State, i: usize) -> Option<Action> {
    let row = &state.matrix[i];
    let (coefficients, rhs) = row.split_at(row.len() - 1);
    if state.solution[i].0.is_some() || coefficients[i].0.is_zero() {
        return None;
    }

    let known =
        state.solution[i + 1..].iter().map(|value| value.0.as_ref()).collect::<Option<Vec<_>>>()?;

    let (numerator, denominator) = sum_of_products(coefficients[i + 1..].iter().zip(known));
    let rest = &rhs[0].0 - BigRational::new(numerator, denominator);
    let value = Rational(rest / &coefficients[i].0);
    (value.bits() < BITS_MAX).then_some(Action::Solve(i, value))
}

/// Coefficients below the diagonal are 0 in the first `columns` columns.
fn is_staircase(matrix: &[Rationals], columns: usize) -> bool {
    matrix
        .iter()
        .enumerate()
        .all(|(i, row)| row[..columns.min(i)].iter().all(|entry| entry.0.is_zero()))
}

/// A row holds for the values known so far, or has an unknown without one.
fn holds(row: &Rationals, solution: &[OptionalText<Rational>]) -> bool {
    let (coefficients, rhs) = row.split_at(row.len() - 1);
    let used =
        coefficients.iter().zip(solution).filter(|(coefficient, _)| !coefficient.0.is_zero());
    let Some(terms) = used
        .map(|(coefficient, value)| Some((coefficient, value.0.as_ref()?)))
        .collect::<Option<Vec<_>>>()
    else {
        return true;
    };

    let (numerator, denominator) = sum_of_products(terms);
    numerator * rhs[0].0.denom() == denominator * rhs[0].0.numer()
}

/// Returns whether a row operation makes way for the pivot of its column, or clears an entry below
/// it.
fn uses_pivot(before: &State, action: &Action, after: &State) -> bool {
    let zero = |state: &State, row: usize, column: usize| {
        state.matrix.get(row).is_none_or(|entries| entries[column].0.is_zero())
    };
    match *action {
        Action::Swap(k, p) => (k..p).all(|row| zero(before, row, k)) && !zero(before, p, k),
        Action::Add(i, k, _) => {
            i > k && !zero(before, k, k) && !zero(before, i, k) && zero(after, i, k)
        }
        Action::Solve(..) => true,
    }
}

fn rows_of(instance: &Instance) -> Vec<Rationals> {
    instance
        .matrix
        .iter()
        .zip(&instance.rhs)
        .map(|(row, rhs)| row.iter().chain([rhs]).copied().collect())
        .collect()
}

impl Task for GaussianElimination {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let magnitude = i64::try_from(page::size::MAGNITUDE.draw(difficulty, rng))
                .expect("invariant: small");

            let mut entry =
                || if rng.chance(1, 4) { 0 } else { rng.between(-magnitude, magnitude) };
            let matrix: Vec<Vec<i64>> = (0..n).map(|_| (0..n).map(|_| entry()).collect()).collect();
            // Drawn before the right sides, so that the solution consists of small integers.
            let solution = array::uniform(n, -9, 9, rng);
            let rhs = matrix
                .iter()
                .map(|row| row.iter().zip(&solution).map(|(x, y)| x * y).sum())
                .collect();

            let instance = Instance { matrix, rhs };
            if is_regular(&instance) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.matrix.len();
        InvalidInput::unless(
            (1..=SIZE_MAX).contains(&n),
            "matrix",
            format!("has {n} rows; give 1 to {SIZE_MAX}"),
        )?;

        let square = instance.matrix.iter().all(|row| row.len() == n);
        InvalidInput::unless(square, "matrix", format!("every row must have {n} entries"))?;
        InvalidInput::unless(instance.rhs.len() == n, "rhs", format!("must have {n} entries"))?;

        let bounded = |row: &Vec<i64>| row.iter().all(|entry| entry.unsigned_abs() <= ENTRY_MAX);
        let range = format!("every entry must lie in -{ENTRY_MAX} … {ENTRY_MAX}");
        InvalidInput::unless(instance.matrix.iter().all(bounded), "matrix", range.clone())?;
        InvalidInput::unless(bounded(&instance.rhs), "rhs", range)?;
        InvalidInput::unless(is_regular(instance), "matrix", "is singular")
    }

    fn start(instance: &Instance) -> State {
        let solution = vec![OptionalText(None); instance.rhs.len()];
        State { matrix: rows_of(instance), swaps: 0, solution, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.matrix.len();
        let fits = |row: &Rationals| row.len() == n + 1 && row.are_short();
        let matrix = state.matrix.len() == n && state.matrix.iter().all(fits);
        let reason = format!(
            "must have {n} rows of {} entries, together below {TOTAL_BITS_MAX} bits",
            n + 1
        );
        InvalidInput::unless(matrix, "matrix", reason)?;

        limits::length("solution", state.solution.len(), n)?;

        let solution: Rationals = state
            .solution
            .iter()
            .filter_map(|value| value.0.as_ref().map(|value| value.0.clone()))
            .collect();
        InvalidInput::unless(solution.are_short(), "solution", "has too long numbers")?;
        // Only here does the reference take a row of the last line without looking it up.
        match &state.last.0 {
            Some(Action::Solve(i, _)) => limits::below("last", [*i], n),
            _ => Ok(()),
        }
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let n = state.matrix.len();
        match action {
            Action::Swap(k, p) => {
                if k >= p || *p >= n {
                    return Err(Illegal("a swap names two rows, the upper one first"));
                }
                state.matrix.swap(*k, *p);
                state.swaps += 1;
            }
            Action::Add(i, k, factor) => {
                if i == k || *i >= n || *k >= n {
                    return Err(Illegal("an addition names two different rows"));
                }
                if !state.matrix[*i].has_room_for(factor, &state.matrix[*k]) {
                    return Err(Illegal("the entries would become too long"));
                }
                state.matrix[*i] = state.matrix[*i].plus(&factor.0, &state.matrix[*k]);
            }
            Action::Solve(i, value) => {
                if state.solution.get(*i).is_none_or(|unknown| unknown.0.is_some()) {
                    return Err(Illegal("there is no such unknown, or it has its value"));
                }
                if value.bits() >= BITS_MAX {
                    return Err(Illegal("the value is too long"));
                }
                state.solution[*i] = OptionalText(Some(value.clone()));
            }
        }

        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        match state.last.0 {
            None => elimination(state, 0, 0),
            Some(Action::Swap(k, _)) => elimination(state, k, k + 1),
            Some(Action::Add(i, k, _)) => {
                if i > k {
                    elimination(state, k, i + 1)
                } else {
                    None
                }
            }
            Some(Action::Solve(i, _)) => unknown(state, i.checked_sub(1)?),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // The solution is checked at the end. For pivots, swaps and determinant: a column is left
        // only when it is 0 below the diagonal, a swap takes the one row that the algorithm takes,
        // and additions of a pivot row to the rows below commute. So the eliminated matrix is the
        // algorithm's.
        found.require(page::PIVOT_ROW, uses_pivot(before, action, after));
        // `determinant` holds by construction: only swaps, which turn its sign and are counted, and
        // additions of another row touch the matrix. A test checks it against its meaning.
        let columns = match action {
            Action::Swap(k, _) | Action::Add(_, k, _) => *k,
            Action::Solve(..) => after.matrix.len(),
        };
        found.require(page::STAIRCASE, is_staircase(&after.matrix, columns));
        found.require(page::CONSISTENT, after.matrix.iter().all(|row| holds(row, &after.solution)));

        if Self::ended(instance, after) {
            found.require(
                page::SOLVES,
                rows_of(instance).iter().all(|row| holds(row, &after.solution)),
            );
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.solution.iter().all(|unknown| unknown.0.is_some())
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A swap for each column but the last, an addition for each place below the diagonal, n
        // unknowns.
        let n = instance.rhs.len() as u64;
        n - 1 + n * (n - 1) / 2 + n
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let pivots: Vec<_> = state.matrix.iter().enumerate().map(|(k, row)| &row[k]).collect();
        let sign = BigInt::from(if state.swaps.is_multiple_of(2) { 1 } else { -1 });
        let numerator = pivots.iter().fold(sign, |product, pivot| product * pivot.0.numer());
        let denominator: BigInt = pivots.iter().map(|pivot| pivot.0.denom()).product();
        let determinant = Rational(BigRational::new(numerator, denominator));

        json!({
            "solution": state.solution,
            "pivots": pivots,
            "swaps": state.swaps,
            "determinant": determinant,
        })
    }
}

/// Returns whether the matrix is not singular: the elimination then finds a pivot in every column.
fn is_regular(instance: &Instance) -> bool {
    !determinant(&rows_of(instance)).is_zero()
}

fn determinant(matrix: &[Rationals]) -> BigRational {
    let mut rows: Vec<Vec<BigRational>> =
        matrix.iter().map(|row| row.iter().map(|entry| entry.0.clone()).collect()).collect();
    let mut product = BigRational::from_integer(1.into());

    for k in 0..rows.len() {
        let Some(p) = (k..rows.len()).find(|row| !rows[*row][k].is_zero()) else {
            return BigRational::zero();
        };
        if p != k {
            rows.swap(k, p);
            product = -product;
        }

        let pivot = rows[k].clone();
        for row in &mut rows[k + 1..] {
            let factor = &row[k] / &pivot[k];
            for (entry, above) in row.iter_mut().zip(&pivot) {
                *entry -= &factor * above;
            }
        }

        product *= &pivot[k];
    }

    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_legal_line_changes_the_determinant() {
        let mut rng = TaskRng::new(5);
        for _ in 0..40 {
            let instance = GaussianElimination::generate(Difficulty::Easy, &mut rng);
            let mut state = GaussianElimination::start(&instance);
            let wanted = determinant(&state.matrix);

            for _ in 0..10 {
                let (i, k) = rng.pair(instance.rhs.len());
                let factor = Rational::from(rng.between(-5, 5));
                let action =
                    if rng.chance(1, 2) { Action::Swap(i, k) } else { Action::Add(i, k, factor) };

                let _ = GaussianElimination::step(&instance, &mut state, action);
                let now = determinant(&state.matrix);
                assert_eq!(if state.swaps.is_multiple_of(2) { now } else { -now }, wanted);
            }
        }
    }
}
