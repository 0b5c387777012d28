//! Batcher Odd-Even Merge Sort: merge sorted blocks of p cells by comparators at distances p, p/2, …, 1.
//!
//! A step is one action line of a sorting network: a stage begun, a comparison, an exchange, `done`.

use super::network::{Action, Constraints, Network, NetworkSort, Stage, State};
use crate::tasks::page::Sizes;
use crate::tasks::pages::batcher_merge as page;
use crate::tasks::spec::Spec;

pub type BatcherMerge = NetworkSort<Batcher>;

pub struct Batcher;

impl Network for Batcher {
    const PAGE: Spec = page::SPEC;
    const N: Sizes = page::size::N;
    const CONSTRAINTS: Constraints = Constraints {
        permutation: page::PERMUTATION,
        distance: page::DISTANCE,
        blocks: page::BLOCKS,
        counts: page::COUNTS,
        sorted: page::SORTED,
    };
    const FIRST: Stage = [1, 1];

    fn has(n: usize, [p, k]: Stage) -> bool {
        p.is_power_of_two() && k.is_power_of_two() && k <= p && p <= n / 2
    }

    fn next(n: usize, [p, k]: Stage) -> Option<Stage> {
        if k > 1 { Some([p, k / 2]) } else { (p < n / 2).then_some([2 * p, 2 * p]) }
    }

    fn partner(n: usize, [p, k]: Stage, i: usize) -> Option<usize> {
        // From k mod p on, k cells in turn begin a comparator and do not; none crosses two blocks of 2p cells.
        let offset = i.checked_sub(k % p)?;
        (offset / k % 2 == 0 && i + k < n && i / (2 * p) == (i + k) / (2 * p)).then_some(i + k)
    }

    fn is_descending(_: Stage, _: usize) -> bool {
        false
    }

    fn is_distance([p, k]: Stage, i: usize, j: usize) -> bool {
        j == i + k && i / (2 * p) == j / (2 * p)
    }

    fn are_blocks_sorted(a: &[i64], [p, k]: Stage) -> bool {
        // Later stages of the same p find the blocks half merged.
        p != k || a.chunks(p).all(<[i64]>::is_sorted)
    }

    fn own_constraint(_: usize, action: Action, after: &State) -> (usize, bool) {
        let holds = match action {
            Action::Swap(i, j) => after.a[i] < after.a[j],
            _ => true,
        };
        (page::SWAP_ORDER, holds)
    }

    fn comparators(m: u64) -> u64 {
        // A merge of two blocks of 2^(s-1) cells takes 2^(s-1)·(s-1) + 1 comparators, and there are 2^(m-s) of them.
        (1..=m).map(|s| ((1 << (s - 1)) * (s - 1) + 1) << (m - s)).sum()
    }
}
