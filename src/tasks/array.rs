//! Arrays of integers: what the sorts share.

use super::draw::Draw;
use super::pattern::NUMBER_LIMIT;
use super::task::InvalidInput;

/// The longest array that a user may give.
pub const LENGTH_MAX: usize = 4_096;

/// Checks a user's array: 2 to [`LENGTH_MAX`] values, each between -2^53 and 2^53.
///
/// # Errors
/// Names the field and the range.
pub fn validate(field: &'static str, a: &[i64]) -> Result<(), InvalidInput> {
    let n = a.len();
    InvalidInput::unless((2..=LENGTH_MAX).contains(&n), field, format!("has {n} values; give 2 to {LENGTH_MAX}"))?;
    let bounded = a.iter().all(|x| x.unsigned_abs() < NUMBER_LIMIT);
    InvalidInput::unless(bounded, field, "every value must lie between -2^53 and 2^53")
}

/// Pairs i < j with `a[i] > a[j]`.
pub fn inversions(a: &[i64]) -> u64 {
    a.iter().enumerate().map(|(i, x)| a[i + 1..].iter().filter(|y| *y < x).count() as u64).sum()
}

/// Whether two arrays hold the same values, each as often.
pub fn is_permutation(a: &[i64], b: &[i64]) -> bool {
    let sorted = |values: &[i64]| {
        let mut values = values.to_vec();
        values.sort_unstable();
        values
    };
    a.len() == b.len() && sorted(a) == sorted(b)
}

/// `n` values, each uniform in `min..=max`.
pub fn uniform(n: usize, min: i64, max: i64, draw: &mut Draw) -> Vec<i64> {
    (0..n).map(|_| draw.between(min, max)).collect()
}

/// `n` distinct values, uniform in `min..=max`, in random order.
pub fn distinct(n: usize, min: i64, max: i64, draw: &mut Draw) -> Vec<i64> {
    let mut values = Vec::with_capacity(n);
    while values.len() < n {
        let value = draw.between(min, max);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
