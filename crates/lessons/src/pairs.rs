//! Two places of an array that were compared or swapped, as a view shows them.

use crate::numbers::value_at;

/// The places and their values: `cmp 03 04 +0012 -0100`.
pub fn compared_pair(a: &[i64], i: usize, j: usize, width: usize) -> String {
    format!("cmp {i:0width$} {j:0width$} {} {}", value_at(a, i), value_at(a, j))
}

/// The places alone, since the values are no longer needed: `swap 03 04`.
pub fn swapped_pair(i: usize, j: usize, width: usize) -> String {
    format!("swap {i:0width$} {j:0width$}")
}
