//! Matrix Multiply: the product of the two factors digit by digit, then its signed sum with the
//! running one.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::matrix_multiply::{Instance, MatrixMultiply, State};

use crate::Lesson;
use crate::numbers::{comparison_of_naturals, difference, low_first, multiple, sum, value};

/// Digits of a running sum: at most 8 × 50 × 50.
const WIDTH: usize = 5;

pub struct MatrixMultiplyLesson;

impl Lesson for MatrixMultiplyLesson {
    type Task = MatrixMultiply;

    fn view(instance: &Instance, state: &State) -> String {
        let (left, right) = factors(instance, state)
            .map_or((None, None), |(left, right)| (Some(left), Some(right)));
        format!("{} add {} times {}", signed(state.acc), value(left), value(right))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        MatrixMultiply::reference(instance, state)?;
        let (left, right) = factors(instance, state)?;
        let (acc, product) = (state.acc, left * right);
        let (augend, addend) = (magnitude(acc)?, magnitude(product)?);
        let sign = if (left < 0) == (right < 0) { '+' } else { '-' };

        let multiplied = multiplied(magnitude(left)?, magnitude(right)?);

        // A product of zero keeps the sign that its factors give it.
        let added = if (acc < 0) == (sign == '-') {
            sum(augend, addend, WIDTH)
        } else {
            let order = comparison_of_naturals(augend, addend, WIDTH);
            format!("{order} {}", difference(augend.max(addend), augend.min(addend), WIDTH))
        };

        Some(format!("{multiplied}{sign} {added} {}", signed(acc + product)))
    }
}

/// The entries that the next step multiplies.
fn factors(instance: &Instance, state: &State) -> Option<(i64, i64)> {
    let left = instance.a.get(state.i)?.get(state.k)?;
    let right = instance.b.get(state.k)?.get(state.j)?;
    Some((*left, *right))
}

fn magnitude(number: i64) -> Option<usize> {
    usize::try_from(number.unsigned_abs()).ok()
}

fn signed(number: i64) -> String {
    format!("{number:+0width$}", width = WIDTH + 1)
}

/// The product from the lowest digits on: the left factor times each digit of the right one, then
/// their sum.
fn multiplied(left: usize, right: usize) -> String {
    let (units, tens) = (left * (right % 10), left * (right / 10) * 10);
    let (by_units, by_tens) = (multiple(left, right % 10, 3), multiple(left, right / 10, 3));
    format!(
        "{by_units}={} {by_tens}={} {} ",
        low_first(units, 4),
        low_first(tens, 4),
        sum(units, tens, WIDTH - 1)
    )
}
