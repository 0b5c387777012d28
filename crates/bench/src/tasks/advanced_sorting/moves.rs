//! Moves of values within an array, and checks after them.

use crate::tasks::task::Illegal;

/// The place where an insertion sort puts `a[k]`: the first place in `from..k` whose value is
/// greater, or `k`.
pub fn insertion_place(a: &[i64], from: usize, k: usize) -> usize {
    first(a, from, k, |value| value > a[k])
}

/// The first place in `from..to` whose value has the property, or `to`. The search is linear,
/// since after a wrong line the values may not be sorted.
pub fn first(a: &[i64], from: usize, to: usize, property: impl Fn(i64) -> bool) -> usize {
    (from..to).find(|place| property(a[*place])).unwrap_or(to)
}

/// Moves `a[k]` down to place `p`; the values between move one up.
///
/// # Errors
/// Unless `p <= k` and place `k` exists.
pub fn insert(a: &mut [i64], k: usize, p: usize) -> Result<(), Illegal> {
    if k >= a.len() {
        return Err(Illegal("there is no such place in the array"));
    }
    if p > k {
        return Err(Illegal("a value is inserted at or before its own place"));
    }
    a[p..=k].rotate_right(1);
    Ok(())
}

/// Returns whether the cells `from..=k` are in order after an insertion of `a[k]` at place `p`,
/// with equal values before `p`.
pub fn is_stable_insertion(a: &[i64], from: usize, k: usize, p: usize) -> bool {
    let stable = p == k || a.get(p) < a.get(p + 1);
    (from..=k).contains(&p) && k < a.len() && stable && a[from..=k].is_sorted()
}

/// Returns whether `after` holds the values of `before`, each as often.
///
/// Only the places that differ are sorted, so the cost grows with what a step moves. No legal line
/// of these sorts adds or loses a value, so `before` holds the input's values, and `after` does if
/// this is true.
pub fn keeps_values(before: &[i64], after: &[i64]) -> bool {
    let (mut lost, mut found) = (Vec::new(), Vec::new());
    for (x, y) in before.iter().zip(after).filter(|(x, y)| x != y) {
        lost.push(*x);
        found.push(*y);
    }

    lost.sort_unstable();
    found.sort_unstable();

    before.len() == after.len() && lost == found
}

/// The values of `range`; none if the range is reversed or leaves the array.
pub fn part(a: &[i64], range: std::ops::Range<usize>) -> &[i64] {
    a.get(range).unwrap_or_default()
}
