//! Range checks for the lists, places and counts of submitted states.

use std::ops::RangeInclusive;

use super::task::InvalidInput;

/// Exceeds the steps of any run, and sums of such counts over any list do not overflow.
pub const COUNT_MAX: u64 = 1 << 40;

/// Checks that a list has `wanted` entries.
///
/// # Errors
/// Names the field and both numbers.
pub fn length(field: &'static str, len: usize, wanted: usize) -> Result<(), InvalidInput> {
    InvalidInput::unless(
        len == wanted,
        field,
        format!("has {len} entries; the input calls for {wanted}"),
    )
}

/// Checks that a list has at most `most` entries.
///
/// # Errors
/// Names the field and the range.
pub fn at_most(field: &'static str, len: usize, most: usize) -> Result<(), InvalidInput> {
    InvalidInput::unless(len <= most, field, format!("has {len} entries; give up to {most}"))
}

/// Checks that all places (vertices, nodes, cells) that are present are below `end`.
///
/// # Errors
/// Names the field and the range.
pub fn below<P: Into<Option<usize>>>(
    field: &'static str,
    places: impl IntoIterator<Item = P>,
    end: usize,
) -> Result<(), InvalidInput> {
    let exist = places.into_iter().all(|place| place.into().is_none_or(|place| place < end));
    InvalidInput::unless(exist, field, format!("every place must be below {end}"))
}

/// Checks that all numbers lie in 0 … [`COUNT_MAX`].
///
/// # Errors
/// Names the field and the range.
pub fn counts<N: TryInto<u64>>(
    field: &'static str,
    numbers: impl IntoIterator<Item = N>,
) -> Result<(), InvalidInput> {
    let small =
        numbers.into_iter().all(|number| number.try_into().is_ok_and(|count| count <= COUNT_MAX));
    InvalidInput::unless(small, field, format!("every count must lie in 0 … {COUNT_MAX}"))
}

/// Checks that values lie in a range.
///
/// # Errors
/// Names the field and the range.
pub fn within(
    field: &'static str,
    values: impl IntoIterator<Item = i64>,
    range: RangeInclusive<i64>,
) -> Result<(), InvalidInput> {
    let inside = values.into_iter().all(|value| range.contains(&value));
    InvalidInput::unless(inside, field, format!("must lie in {} … {}", range.start(), range.end()))
}

/// Checks that all numbers fit into an action line: below 2^53.
///
/// # Errors
/// Names the field and the range.
pub fn sayable<N: TryInto<u64>>(
    field: &'static str,
    numbers: impl IntoIterator<Item = N>,
) -> Result<(), InvalidInput> {
    let limit = super::pattern::NUMBER_LIMIT;
    let small =
        numbers.into_iter().all(|number| number.try_into().is_ok_and(|number| number < limit));
    InvalidInput::unless(small, field, "every number must lie in 0 … 2^53 - 1")
}

/// Checks that a text consists of the characters of `of`.
///
/// # Errors
/// Names the field and the characters.
pub fn letters(field: &'static str, text: &str, of: &str) -> Result<(), InvalidInput> {
    InvalidInput::unless(
        text.chars().all(|c| of.contains(c)),
        field,
        format!("must consist of characters of {of:?}"),
    )
}
