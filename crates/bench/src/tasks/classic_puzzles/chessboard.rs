//! Queens on a chessboard, given by the column of each row's queen: the common part of N-Queens and
//! its variant.

/// Returns whether a queen at this row and column would be attacked by one of these.
pub fn attacks(queens: &[usize], row: usize, column: usize) -> bool {
    queens.iter().enumerate().any(|(r, c)| *c == column || c.abs_diff(column) == r.abs_diff(row))
}

/// Returns whether no two queens share a column or a diagonal.
pub fn is_peaceful(queens: &[usize]) -> bool {
    (0..queens.len()).all(|row| !attacks(&queens[..row], row, queens[row]))
}

/// Returns whether these are n queens, one a row, none of which attacks another.
pub fn is_solution(n: usize, queens: &[usize]) -> bool {
    queens.len() == n && queens.iter().all(|c| *c < n) && is_peaceful(queens)
}
