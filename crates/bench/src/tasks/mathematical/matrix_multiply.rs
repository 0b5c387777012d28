//! Matrix Multiply: the product of two square matrices, row by row, each entry as a running sum of
//! products.
//!
//! A step is one multiply-add; its line is the running sum after it.

use crate::tasks::pages::matrix_multiply as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `matrix-multiply`.
pub struct MatrixMultiply;

const SIZE_MAX: usize = 64;
/// With this bound no sum of a user's instance exceeds 2^53.
const ENTRY_MAX: u64 = 1_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Left factor, row by row, n by n.
    pub a: Vec<Vec<i64>>,
    /// Right factor, row by row, n by n.
    pub b: Vec<Vec<i64>>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Row of the entry in progress, from 0; n at the end.
    pub i: usize,
    /// Column of that entry, from 0.
    pub j: usize,
    /// Index of the next product in its sum, from 0.
    pub k: usize,
    /// Sum of that entry's products so far.
    pub acc: i64,
    product: Vec<i64>,
    last: Last<Action>,
}

line_actions! {
    /// The running sum after the next product.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { sum: i64 } = "acc <int>", "acc {sum}"
}

fn largest(matrix: &[Vec<i64>]) -> i64 {
    matrix.iter().flatten().map(|entry| entry.abs()).max().unwrap_or(0)
}

fn row_sums(matrix: &[Vec<i64>]) -> Vec<i64> {
    matrix.iter().map(|row| row.iter().sum()).collect()
}

fn dot(left: impl IntoIterator<Item = i64>, right: impl IntoIterator<Item = i64>) -> i64 {
    left.into_iter().zip(right).map(|(x, y)| x * y).sum()
}

/// Every complete row of the product has the sum that the row sums of B give.
fn rows_check(instance: &Instance, product: &[i64]) -> bool {
    let n = instance.a.len();
    let sums = row_sums(&instance.b);
    // An incomplete last row is left out.
    product
        .chunks_exact(n)
        .zip(&instance.a)
        .all(|(row, a)| row.iter().sum::<i64>() == dot(a.iter().copied(), sums.iter().copied()))
}

/// Returns whether the entries are those of the product, row by row.
fn is_product(instance: &Instance, product: &[i64]) -> bool {
    let n = instance.a.len();
    let entries = instance.a.iter().flat_map(|row| {
        (0..n).map(|j| dot(row.iter().copied(), instance.b.iter().map(move |below| below[j])))
    });
    entries.eq(product.iter().copied())
}

impl Task for MatrixMultiply {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let magnitude = i64::try_from(page::size::MAGNITUDE.draw(difficulty, rng))
                .expect("invariant: small");

            let mut matrix = || {
                (0..n).map(|_| array::uniform(n, -magnitude, magnitude, rng)).collect::<Vec<_>>()
            };

            let instance = Instance { a: matrix(), b: matrix() };
            let entries = instance.a.iter().chain(&instance.b).flatten();
            if entries.filter(|entry| **entry != 0).count() > n * n {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.a.len();
        InvalidInput::unless(
            (1..=SIZE_MAX).contains(&n),
            "a",
            format!("has {n} rows; give 1 to {SIZE_MAX}"),
        )?;

        for (field, matrix) in [("a", &instance.a), ("b", &instance.b)] {
            let square = matrix.len() == n && matrix.iter().all(|row| row.len() == n);
            InvalidInput::unless(square, field, format!("must have {n} rows of {n} entries"))?;

            let bounded = matrix.iter().flatten().all(|entry| entry.unsigned_abs() <= ENTRY_MAX);
            InvalidInput::unless(
                bounded,
                field,
                format!("every entry must lie in -{ENTRY_MAX} … {ENTRY_MAX}"),
            )?;
        }

        Ok(())
    }

    fn start(_: &Instance) -> State {
        State { i: 0, j: 0, k: 0, acc: 0, product: Vec::new(), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.a.len();
        let most = i64::try_from(NUMBER_LIMIT).unwrap_or(i64::MAX) - 1;
        limits::below("i", [state.i], n + 1)?;
        limits::below("j", [state.j], n)?;
        limits::below("k", [state.k], n)?;
        limits::within("acc", [state.acc], -most..=most)?;

        limits::length("product", state.product.len(), state.i * n + state.j)?;
        limits::within("product", state.product.iter().copied(), -most..=most)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let n = instance.a.len();
        if state.i >= n {
            return Err(Illegal("every entry is known"));
        }

        state.acc = action.sum;
        state.k += 1;
        if state.k == n {
            state.product.push(state.acc);
            (state.acc, state.k) = (0, 0);
            state.j += 1;
            if state.j == n {
                state.j = 0;
                state.i += 1;
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let row = instance.a.get(state.i)?;
        let sum = state.acc + row[state.k] * instance.b[state.k][state.j];
        (sum.unsigned_abs() < NUMBER_LIMIT).then_some(Action { sum })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let added = before.k + 1;
        // No product exceeds that of the largest entries.
        let bound = i64::try_from(added).expect("invariant: small")
            * largest(&instance.a)
            * largest(&instance.b);
        found.require(page::BOUNDED, action.sum.abs() <= bound);

        found.require(page::ROW_CHECKSUM, rows_check(instance, &after.product));

        // The parity of the running sum, from the lowest bits alone.
        let odd = instance.a[before.i]
            .iter()
            .zip(&instance.b)
            .take(added)
            .fold(0, |odd, (left, row)| odd ^ (left & row[before.j] & 1));
        found.require(page::PARITY, action.sum & 1 == odd);

        // Sums and parities leave many wrong entries unseen. At the end the product is computed,
        // once, in as many operations as the trace has lines.
        if Self::ended(instance, after) {
            found.require(page::COMPLETE, is_product(instance, &after.product));
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.i >= instance.a.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        (instance.a.len() as u64).pow(3)
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        json!({ "product": state.product.chunks(instance.a.len()).collect::<Vec<_>>() })
    }
}
