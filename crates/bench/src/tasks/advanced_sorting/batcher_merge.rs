//! Batcher Odd-Even Merge Sort: merge sorted blocks of p cells by comparators at distances p, p/2,
//! …, 1.
//!
//! A step is one action line of a sorting network: a stage begun, a comparison, an exchange,
//! `done`.

use super::network::{Constraints, Network, NetworkSort, Stage};
use crate::tasks::page::Sizes;
use crate::tasks::pages::batcher_merge as page;
use crate::tasks::spec::Spec;

/// The task `batcher-merge`.
pub type BatcherMerge = NetworkSort<Batcher>;

/// The task `batcher-merge`.
pub struct Batcher;

/// Comparators of a merge of two blocks of 2^(s-1) cells.
fn merge_comparators(s: u64) -> u64 {
    (1 << (s - 1)) * (s - 1) + 1
}

impl Network for Batcher {
    const PAGE: Spec = page::SPEC;
    const N: Sizes = page::size::N;
    const CONSTRAINTS: Constraints = Constraints {
        permutation: page::PERMUTATION,
        stage: page::STAGE,
        stage_order: page::STAGE_ORDER,
        distance: page::DISTANCE,
        comparator_order: page::COMPARATOR_ORDER,
        compared: page::COMPARED,
        swap_order: page::SWAP_ORDER,
        settled: page::SETTLED,
        blocks: page::BLOCKS,
        counts: page::COUNTS,
        all_comparators: page::ALL_COMPARATORS,
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
        // From cell k mod p on, groups of k cells alternate: those of the first begin a comparator,
        // those of the next end it. No comparator crosses from one block of 2p cells to another.
        let offset = i.checked_sub(k % p)?;
        (offset / k % 2 == 0 && i + k < n && i / (2 * p) == (i + k) / (2 * p)).then_some(i + k)
    }

    fn is_descending(_: Stage, _: usize) -> bool {
        false
    }

    fn is_distance([p, k]: Stage, i: usize, j: usize) -> bool {
        let block = 2 * p;
        let begins = i % block / k % 2 == usize::from(k < p);
        j == i + k && i / block == j / block && begins
    }

    fn are_blocks_sorted(a: &[i64], [p, k]: Stage) -> bool {
        // Later stages of the same p find the blocks half merged.
        p != k || a.chunks(p).all(<[i64]>::is_sorted)
    }

    fn stage_number(n: usize, [p, k]: Stage) -> Option<usize> {
        let powers = p.is_power_of_two() && k.is_power_of_two();
        // Merges of blocks of 1, 2, 4, … cells have 1, 2, 3, … stages.
        let number = || p.ilog2() * (p.ilog2() + 1) / 2 + p.ilog2() - k.ilog2() + 1;
        (powers && k <= p && 2 * p <= n).then(|| number() as usize)
    }

    fn comparators_before(n: usize, [p, k]: Stage) -> usize {
        let blocks = n / (2 * p);

        // Merges of smaller blocks come first, each complete.
        let (m, levels) = (u64::from(n.ilog2()), 1..=u64::from(p.ilog2()));
        let merged: u64 = levels.map(|s| merge_comparators(s) << (m - s)).sum();

        // The first stage of a merge has p comparators in each block of 2p cells; each other stage
        // has p - k.
        let distances = (k.ilog2() + 1..p.ilog2()).map(|exponent| p - (1 << exponent));
        let first = if k < p { p } else { 0 };

        usize::try_from(merged)
            .unwrap_or(usize::MAX)
            .saturating_add(blocks * (first + distances.sum::<usize>()))
    }

    fn comparator_rank([p, k]: Stage, i: usize) -> usize {
        let (block, offset) = (i / (2 * p), i % (2 * p));
        if k == p {
            return block * p + offset;
        }

        // The first k cells of a block have no comparator; then every other k cells begin one.
        let offset = offset.saturating_sub(k);
        block * p.saturating_sub(k) + offset / (2 * k) * k + offset % k
    }

    fn is_settled(_: Stage, _: usize, lower: i64, upper: i64) -> bool {
        lower <= upper
    }

    fn comparators(m: u64) -> u64 {
        // There are 2^(m-s) merges of two blocks of 2^(s-1) cells.
        (1..=m).map(|s| merge_comparators(s) << (m - s)).sum()
    }
}
