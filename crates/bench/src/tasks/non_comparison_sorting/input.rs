//! The arrays of natural numbers that these sorts take.

use crate::tasks::TaskRng;
use crate::tasks::task::InvalidInput;

/// The longest array that a user may give.
pub const LENGTH_MAX: usize = 16_384;

/// `n` values, each uniform in `0..=max`.
pub fn uniform(n: usize, max: usize, rng: &mut TaskRng) -> Vec<usize> {
    (0..n).map(|_| rng.index(max + 1)).collect()
}

/// Checks the field `a` of a user's input: 2 to [`LENGTH_MAX`] values, each at most `max`.
///
/// # Errors
/// Names the field and the range.
pub fn validate(a: &[usize], max: usize) -> Result<(), InvalidInput> {
    let n = a.len();
    InvalidInput::unless(
        (2..=LENGTH_MAX).contains(&n),
        "a",
        format!("has {n} values; give 2 to {LENGTH_MAX}"),
    )?;
    InvalidInput::unless(
        a.iter().all(|x| *x <= max),
        "a",
        format!("every value must lie in 0..{max}"),
    )
}
