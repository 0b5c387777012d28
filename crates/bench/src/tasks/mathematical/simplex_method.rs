//! Simplex Method: maximise a linear objective over linear constraints in exact arithmetic,
//! pivoting by Bland's rule.
//!
//! A step is one choice of a pivot, one division of its row, or one subtraction of that row from
//! another.

use num_traits::{One, Signed, Zero};

use super::rationals::Rationals;
use crate::output::value::{equal, exact};
use crate::tasks::Rational;
use crate::tasks::pages::simplex_method as page;
use crate::tasks::prelude::*;

/// The task `simplex-method`.
pub struct SimplexMethod;

/// With these bounds no entry comes near the length that makes a line illegal: every entry is a
/// quotient of two minors, which by Hadamard's inequality have at most 13·(2 + 20) = 286 bits.
const SIZE_MAX: usize = 12;
const ENTRY_MAX: u64 = 1_000_000;
/// Pivots of an answer; no run that does not cycle is known to take as many on inputs of this size.
const PIVOTS_MAX: usize = 10_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    c: Vec<i64>,
    a: Vec<Vec<i64>>,
    b: Vec<i64>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Rows of the constraints, then that of the objective; the right-hand side last.
    pub tableau: Vec<Rationals>,
    /// Basic variable of each constraint's row.
    pub basis: Vec<usize>,
    /// Column and row of each pivot, in order.
    pub pivots: Vec<(usize, usize)>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The row of the objective.
    fn objective(&self) -> &Rationals {
        &self.tableau[self.basis.len()]
    }

    fn rhs(&self, row: usize) -> &Rational {
        let row = &self.tableau[row];
        &row[row.len() - 1]
    }

    fn is_unit_column(&self, column: usize, one: usize) -> bool {
        self.tableau.iter().enumerate().all(|(row, entries)| {
            let entry = &entries[column].0;
            if row == one { entry.is_one() } else { entry.is_zero() }
        })
    }

    /// Carries out a pivot that keeps the solution feasible and does not lower its value; `None` if
    /// it is another one.
    fn pivot(&mut self, instance: &Instance, column: usize, row: usize) -> Option<()> {
        let m = instance.b.len();
        let step = |state: &mut Self, action| SimplexMethod::step(instance, state, action).ok();

        step(self, Action::Pivot(column, row))?;
        let divisor = self.tableau[row][column].clone();
        if !divisor.0.is_positive() || !self.objective()[column].0.is_negative() {
            return None;
        }
        step(self, Action::Div(row, divisor))?;

        for i in (0..=m).filter(|i| *i != row) {
            let factor = self.tableau[i][column].clone();
            step(self, Action::Sub(i, factor))?;
        }
        (0..m).all(|row| !self.rhs(row).0.is_negative()).then_some(())
    }

    /// No pivot is half done.
    fn is_between_pivots(&self) -> bool {
        !matches!(self.last.0, Some(Action::Pivot(..)))
            && self.pivots.last().is_none_or(|(column, row)| self.is_unit_column(*column, *row))
    }

    /// Returns whether a line may follow the last one: a division after its pivot, then
    /// subtractions down the rows.
    fn continues_with(&self, action: &Action) -> bool {
        match (action, &self.last.0) {
            (Action::Pivot(..), _) => self.is_between_pivots(),
            (Action::Div(..), last) => matches!(last, Some(Action::Pivot(..))),
            (Action::Sub(i, _), Some(Action::Sub(previous, _))) => previous < i,
            (Action::Sub(..), last) => matches!(last, Some(Action::Div(..))),
        }
    }

    /// The next row to subtract the pivot row from, going by the last action.
    fn row_left(&self) -> Option<usize> {
        let (column, pivot_row) = *self.pivots.last()?;
        let from = match self.last.0 {
            Some(Action::Div(..)) => 0,
            Some(Action::Sub(i, _)) => i + 1,
            _ => return None,
        };
        (from..self.tableau.len())
            .find(|row| *row != pivot_row && !self.tableau[*row][column].0.is_zero())
    }

    /// The lowest column with a negative entry in the objective's row.
    fn entering(&self) -> Option<usize> {
        let (_, entries) = self.objective().split_last()?;
        entries.iter().position(|entry| entry.0.is_negative())
    }

    /// The row with the smallest ratio, ties by the lowest basis variable.
    fn leaving(&self, column: usize) -> Option<usize> {
        (0..self.basis.len()).filter(|row| self.tableau[*row][column].0.is_positive()).min_by_key(
            |row| (Rational(&self.rhs(*row).0 / &self.tableau[*row][column].0), self.basis[*row]),
        )
    }
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Action {
        /// Entering column, leaving row.
        Pivot(column: usize, row: usize) = "pivot <nat> <nat>", "pivot {column} {row}";
        /// Divides the pivot row by its pivot entry.
        Div(row: usize, divisor: Rational) = "div <nat> <ratio>", "div {row} {divisor}";
        /// Subtracts `factor` times the pivot row from row i.
        Sub(i: usize, factor: Rational) = "sub <nat> <rat>", "sub {i} {factor}";
    }
}

impl Task for SimplexMethod {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let (min_pivots, _) = page::size::MIN_PIVOTS.range(difficulty);
        loop {
            let n = page::size::VARIABLES.draw(difficulty, rng);
            let m = page::size::CONSTRAINTS.draw(difficulty, rng);
            let c = array::uniform(n, 1, 20, rng);

            let mut entry = || if rng.chance(1, 4) { 0 } else { rng.between(1, 9) };
            let a = (0..m).map(|_| (0..n).map(|_| entry()).collect()).collect();
            let instance = Instance { c, a, b: array::uniform(m, 10, 100, rng) };
            // A column of zeros would leave its variable unbounded.
            let bounded = (0..n).all(|column| instance.a.iter().any(|row| row[column] != 0));
            if !bounded {
                continue;
            }

            if let Some((end, _)) = reference_end::<Self>(&instance, u64::MAX)
                && i64::try_from(end.pivots.len()).is_ok_and(|pivots| pivots >= min_pivots)
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let (n, m) = (instance.c.len(), instance.b.len());
        let range = |count: usize| format!("has {count} entries; give 1 to {SIZE_MAX}");
        InvalidInput::unless((1..=SIZE_MAX).contains(&n), "c", range(n))?;
        InvalidInput::unless((1..=SIZE_MAX).contains(&m), "b", range(m))?;

        let small = |entry: &i64| entry.unsigned_abs() <= ENTRY_MAX;
        let natural = |entry: &i64| *entry >= 0 && small(entry);
        InvalidInput::unless(
            instance.c.iter().all(small),
            "c",
            format!("must lie in -{ENTRY_MAX} … {ENTRY_MAX}"),
        )?;

        let shape = instance.a.len() == m && instance.a.iter().all(|row| row.len() == n);
        InvalidInput::unless(
            shape,
            "a",
            format!("must have {m} rows (as b has entries) of {n} entries (as c has)"),
        )?;

        let range = format!("must lie in 0 … {ENTRY_MAX}");
        InvalidInput::unless(instance.a.iter().flatten().all(natural), "a", range.clone())?;
        InvalidInput::unless(instance.b.iter().all(natural), "b", range)?;

        let bounded = (0..n).all(|column| instance.a.iter().any(|row| row[column] > 0));
        InvalidInput::unless(bounded, "a", "a column of zeros leaves its variable unbounded")
    }

    fn start(instance: &Instance) -> State {
        let (n, m) = (instance.c.len(), instance.b.len());
        let slacks = |row: usize| (0..m).map(move |slack| i64::from(slack == row));

        let mut tableau: Vec<Rationals> = instance
            .a
            .iter()
            .zip(&instance.b)
            .enumerate()
            .map(|(row, (entries, rhs))| {
                entries.iter().copied().chain(slacks(row)).chain([*rhs]).collect()
            })
            .collect();

        tableau.push(instance.c.iter().map(|c| -c).chain(slacks(m)).chain([0]).collect());
        State { tableau, basis: (n..n + m).collect(), pivots: Vec::new(), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let (n, m) = (instance.c.len(), instance.b.len());
        let fits = |row: &Rationals| row.len() == n + m + 1 && row.are_short();
        let tableau = state.tableau.len() == m + 1 && state.tableau.iter().all(fits);

        InvalidInput::unless(
            tableau,
            "tableau",
            format!("must have {} rows of {} short entries", m + 1, n + m + 1),
        )?;

        limits::length("basis", state.basis.len(), m)?;
        limits::below("basis", state.basis.iter().copied(), n + m)?;
        limits::below("pivots", state.pivots.iter().map(|(column, _)| *column), n + m)?;
        limits::below("pivots", state.pivots.iter().map(|(_, row)| *row), m)?;
        // The reference divides by the entry at the pivot that was named last.
        match state.last.0 {
            Some(Action::Pivot(column, row)) => {
                let latest = state.pivots.last() == Some(&(column, row));
                InvalidInput::unless(latest, "last", "must be the last of `pivots`")
            }
            _ => Ok(()),
        }
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let (n, m) = (instance.c.len(), instance.b.len());
        let pivot_row = state.pivots.last().map(|(_, row)| *row);
        match action {
            Action::Pivot(column, row) => {
                if *column >= n + m || *row >= m {
                    return Err(Illegal("there is no such column or row"));
                }
                state.pivots.push((*column, *row));
                state.basis[*row] = *column;
            }
            Action::Div(row, divisor) => {
                if pivot_row != Some(*row) || divisor.0.is_zero() {
                    return Err(Illegal("only the latest pivot's row is divided, and not by 0"));
                }
                if !state.tableau[*row].has_room_over(divisor) {
                    return Err(Illegal("the entries would become too long"));
                }
                state.tableau[*row] = state.tableau[*row].over(&divisor.0);
            }
            Action::Sub(i, factor) => {
                let Some(row) = pivot_row.filter(|row| row != i && *i <= m) else {
                    return Err(Illegal("the latest pivot's row is subtracted from another row"));
                };
                if !state.tableau[*i].has_room_for(factor, &state.tableau[row]) {
                    return Err(Illegal("the entries would become too long"));
                }
                state.tableau[*i] = state.tableau[*i].plus(&-&factor.0, &state.tableau[row]);
            }
        }

        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        if let Some(Action::Pivot(column, row)) = state.last.0 {
            let divisor = &state.tableau[row][column];
            // After wrong lines there may be nothing that a legal line could divide by.
            let legal = divisor.0.is_positive() && state.tableau[row].has_room_over(divisor);
            return legal.then(|| Action::Div(row, divisor.clone()));
        }

        if let Some(i) = state.row_left() {
            let (column, row) = *state.pivots.last()?;
            let factor = &state.tableau[i][column];
            let legal = state.tableau[i].has_room_for(factor, &state.tableau[row]);
            return legal.then(|| Action::Sub(i, factor.clone()));
        }

        let column = state.entering()?;
        Some(Action::Pivot(column, state.leaving(column)?))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // `slack-identity` holds by construction: it is linear in a row, and only multiples of rows
        // are added or divided. A test checks it against its meaning.
        //
        // `whole-pivots`, `pivot-entry`, `cleared` and `feasible` let only whole pivots of the
        // simplex method pass, by whatever rule they are chosen, and `optimal` ends them at an
        // optimum, as the goal test demands.
        let m = instance.b.len();
        let between = after.is_between_pivots();

        if between {
            found.require(page::FEASIBLE, (0..m).all(|row| !after.rhs(row).0.is_negative()));
            let unit = after
                .basis
                .iter()
                .enumerate()
                .all(|(row, column)| after.is_unit_column(*column, row));
            found.require(page::UNIT_COLUMNS, unit);
        }

        found.require(page::WHOLE_PIVOTS, before.continues_with(action));
        // The entry of a row in the column of the latest pivot.
        let entry = |state: &State, row: usize| {
            let column = after.pivots.last().map(|(column, _)| *column)?;
            Some(state.tableau.get(row)?.get(column)?.0.clone())
        };

        match action {
            Action::Pivot(_, row) => {
                let leaves = entry(before, *row).is_some_and(|entry| entry.is_positive());
                let enters = entry(before, m).is_some_and(|entry| entry.is_negative());
                found.require(page::PIVOT_ENTRY, leaves && enters);
            }
            Action::Div(row, _) => {
                found
                    .require(page::CLEARED, entry(after, *row).is_some_and(|entry| entry.is_one()));
            }
            Action::Sub(i, _) => {
                let cleared = entry(after, *i).is_some_and(|entry| entry.is_zero());
                let needed = entry(before, *i).is_some_and(|entry| !entry.is_zero());
                found.require(page::CLEARED, cleared && needed);
            }
        }

        found.require(page::MONOTONE, after.rhs(m) >= before.rhs(m));

        if Self::ended(instance, after) {
            let few = after.pivots.len() <= PIVOTS_MAX;
            found.require(page::OPTIMAL, between && after.entering().is_none() && few);
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        !matches!(state.last.0, Some(Action::Pivot(..)))
            && state.row_left().is_none()
            && state.entering().is_none()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Bland's rule never comes back to a basis, of which there are (n+m over m); the first
        // takes no pivot, and a pivot takes at most 2 + m lines.
        let (n, m) = (instance.c.len() as u64, instance.b.len() as u64);
        let bases = (1..=m).fold(1, |bases, k| bases * (n + k) / k);
        (bases - 1) * (m + 2)
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let zero = Rational::from(0);
        let value_of = |variable: usize| {
            let row = state.basis.iter().position(|basic| *basic == variable);
            row.map_or(&zero, |row| state.rhs(row))
        };

        json!({
            "value": state.rhs(instance.b.len()),
            "solution": (0..instance.c.len()).map(value_of).collect::<Vec<_>>(),
            "basis": state.basis,
            "pivots": state.pivots,
        })
    }

    /// The pivots of any run of the simplex method are right, whatever rule chose them, if the rest
    /// of the answer is what they lead to.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let Ok(pivots) =
            serde_json::from_value::<Vec<(usize, usize)>>(exact(&answer["pivots"]).into_owned())
        else {
            return Some(false);
        };
        if pivots.len() > PIVOTS_MAX {
            return Some(false);
        }

        let mut state = Self::start(instance);
        let carried_out = pivots
            .iter()
            .try_for_each(|(column, row)| state.pivot(instance, *column, *row))
            .is_some();
        let end = Self::answer(instance, &state);
        let is_read_off =
            ["value", "solution", "basis"].iter().all(|field| equal(&end[*field], &answer[*field]));
        Some(carried_out && state.entering().is_none() && is_read_off)
    }
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;

    use super::*;

    #[test]
    fn no_legal_line_breaks_the_slack_identity() {
        let mut rng = TaskRng::new(5);
        for _ in 0..40 {
            let instance = SimplexMethod::generate(Difficulty::Easy, &mut rng);
            let (n, m) = (instance.c.len(), instance.b.len());

            let mut state = SimplexMethod::start(&instance);
            for _ in 0..20 {
                let factor = Rational::from(rng.between(0, 5));
                let action = match rng.index(3) {
                    0 => Action::Pivot(rng.index(n + m), rng.index(m)),
                    1 => Action::Div(rng.index(m), factor),
                    _ => Action::Sub(rng.index(m + 1), factor),
                };

                let _ = SimplexMethod::step(&instance, &mut state, action);
                for row in &state.tableau {
                    let slacks = row[n..].iter().zip(&instance.b);
                    let sum: BigRational =
                        slacks.map(|(entry, b)| &entry.0 * Rational::from(*b).0).sum();
                    assert_eq!(sum, row[n + m].0);
                }
            }
        }
    }
}
