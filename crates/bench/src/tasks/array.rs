//! Integer arrays: checks of inputs and states, order and permutation tests, random draws.

use super::limits;
use super::pattern::NUMBER_LIMIT;
use super::rng::TaskRng;
use super::task::InvalidInput;

/// The longest array that a user may give.
pub const LENGTH_MAX: usize = 4_096;

/// Checks a user's array: 2 to [`LENGTH_MAX`] values, each between -2^53 and 2^53.
///
/// # Errors
/// Names the field and the range.
pub fn validate(field: &'static str, a: &[i64]) -> Result<(), InvalidInput> {
    let n = a.len();
    InvalidInput::unless(
        (2..=LENGTH_MAX).contains(&n),
        field,
        format!("has {n} values; give 2 to {LENGTH_MAX}"),
    )?;

    let bounded = a.iter().all(|x| x.unsigned_abs() < NUMBER_LIMIT);
    InvalidInput::unless(bounded, field, "every value must lie between -2^53 and 2^53")
}

/// Checks the array of a submitted state: as many values as the input, each between -2^53 and 2^53.
///
/// # Errors
/// Names the field and what it must be.
pub fn check(field: &'static str, a: &[i64], input: &[i64]) -> Result<(), InvalidInput> {
    limits::length(field, a.len(), input.len())?;
    let bounded = a.iter().all(|x| x.unsigned_abs() < NUMBER_LIMIT);
    InvalidInput::unless(bounded, field, "every value must lie between -2^53 and 2^53")
}

/// Pairs of places i < j with a greater value at i than at j; with `or_equal`, an equal one counts
/// too.
pub fn wrong_pairs(values: &[i64], or_equal: bool) -> usize {
    // Merge sort: a value taken from the right half is less than everything that remains in the
    // left half.
    let (mut runs, mut spare) = (values.to_vec(), Vec::with_capacity(values.len()));
    let (mut width, mut pairs) = (1, 0);

    while width < values.len() {
        spare.clear();

        for block in runs.chunks(2 * width) {
            let (left, right) = block.split_at(width.min(block.len()));
            let (mut i, mut j) = (0, 0);
            while i < left.len() && j < right.len() {
                if left[i] > right[j] || or_equal && left[i] == right[j] {
                    pairs += left.len() - i;
                    spare.push(right[j]);
                    j += 1;
                } else {
                    spare.push(left[i]);
                    i += 1;
                }
            }
            spare.extend_from_slice(&left[i..]);
            spare.extend_from_slice(&right[j..]);
        }

        std::mem::swap(&mut runs, &mut spare);
        width *= 2;
    }

    pairs
}

/// Returns whether two arrays hold the same values, each as often.
pub fn is_permutation(a: &[i64], b: &[i64]) -> bool {
    if a.len() != b.len() {
        return false;
    }

    // The common prefix and suffix need no sorting.
    let agree = |(x, y): &(&i64, &i64)| x == y;
    let start = a.iter().zip(b).take_while(agree).count();
    let end =
        a.len() - a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(agree).count();

    let sorted = |values: &[i64]| {
        let mut values = values[start..end].to_vec();
        values.sort_unstable();
        values
    };

    sorted(a) == sorted(b)
}

/// Returns whether `after` is `before` with the values at i and j exchanged.
pub fn is_exchange(before: &[i64], after: &[i64], i: usize, j: usize) -> bool {
    let (low, high) = (i.min(j), i.max(j));
    if before.len() != after.len() || high >= before.len() {
        return false;
    }

    // With i = j there is nothing between the two places.
    before[..low] == after[..low]
        && before[low + 1..high.max(low + 1)] == after[low + 1..high.max(low + 1)]
        && before[high + 1..] == after[high + 1..]
        && (before[low], before[high]) == (after[high], after[low])
}

/// Returns whether `a[..end]` is in order and nothing after it is less than any of it.
pub fn is_final_head(a: &[i64], end: usize) -> bool {
    let (head, rest) = a.split_at(end.min(a.len()));
    head.is_sorted() && head.last().is_none_or(|greatest| rest.iter().all(|x| x >= greatest))
}

/// Returns whether `a[start..]` is in order and nothing before it is greater than any of it.
pub fn is_final_tail(a: &[i64], start: usize) -> bool {
    let (rest, tail) = a.split_at(start.min(a.len()));
    tail.is_sorted() && tail.first().is_none_or(|least| rest.iter().all(|x| x <= least))
}

/// `n` values, each uniform in `min..=max`.
pub fn uniform(n: usize, min: i64, max: i64, rng: &mut TaskRng) -> Vec<i64> {
    (0..n).map(|_| rng.between(min, max)).collect()
}

/// `n` distinct values, uniform in `min..=max`, in random order.
pub fn distinct(n: usize, min: i64, max: i64, rng: &mut TaskRng) -> Vec<i64> {
    let mut values = Vec::with_capacity(n);
    while values.len() < n {
        let value = rng.between(min, max);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
