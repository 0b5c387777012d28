//! Bitonic Sort: sort blocks in turn upwards and downwards, and merge each two by halving
//! distances.
//!
//! A step is one action line of a sorting network: a stage begun, a comparison, an exchange,
//! `done`.

use super::network::{Constraints, Network, NetworkSort, Stage};
use crate::tasks::page::Sizes;
use crate::tasks::pages::bitonic_sort as page;
use crate::tasks::spec::Spec;

/// The task `bitonic-sort`.
pub type BitonicSort = NetworkSort<Bitonic>;

/// The task `bitonic-sort`.
pub struct Bitonic;

impl Network for Bitonic {
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
    const FIRST: Stage = [2, 1];

    fn has(n: usize, [k, j]: Stage) -> bool {
        k.is_power_of_two() && j.is_power_of_two() && j < k && k <= n
    }

    fn next(n: usize, [k, j]: Stage) -> Option<Stage> {
        if j > 1 { Some([k, j / 2]) } else { (k < n).then_some([2 * k, k]) }
    }

    fn partner(_: usize, [_, j]: Stage, i: usize) -> Option<usize> {
        // The lower cell of a pair is the one whose bit `j` is clear.
        (i & j == 0).then_some(i + j)
    }

    fn is_descending([k, _]: Stage, i: usize) -> bool {
        // Blocks of `k` cells are sorted upwards and downwards in turn.
        i & k != 0
    }

    fn is_distance([_, j]: Stage, i: usize, l: usize) -> bool {
        l == i + j && i & j == 0
    }

    fn are_blocks_sorted(a: &[i64], [k, j]: Stage) -> bool {
        let is_sorted = |(number, block): (usize, &[i64])| {
            if number % 2 == 0 { block.is_sorted() } else { block.is_sorted_by(|x, y| x >= y) }
        };
        // Later stages of the same k find the blocks half merged.
        2 * j != k || a.chunks(j).enumerate().all(is_sorted)
    }

    fn stage_number(n: usize, [k, j]: Stage) -> Option<usize> {
        let powers = k.is_power_of_two() && j.is_power_of_two();
        // Merges into blocks of 2, 4, 8, … cells have 1, 2, 3, … stages.
        let number = || k.ilog2() * (k.ilog2() - 1) / 2 + k.ilog2() - j.ilog2();
        (powers && j < k && k <= n).then(|| number() as usize)
    }

    fn comparators_before(n: usize, stage: Stage) -> usize {
        // Each stage pairs all cells.
        Self::stage_number(n, stage).map_or(0, |number| (number - 1) * (n / 2))
    }

    fn comparator_rank([_, j]: Stage, i: usize) -> usize {
        // In every `2 * j` cells the first `j` are the lower ones of a pair.
        i / (2 * j) * j + i % j
    }

    fn is_settled([k, _]: Stage, i: usize, lower: i64, upper: i64) -> bool {
        if (i / k).is_multiple_of(2) { lower <= upper } else { lower >= upper }
    }

    fn comparators(m: u64) -> u64 {
        // m(m+1)/2 stages, each with a comparator for every two of the 2^m cells.
        m * (m + 1) / 2 * (1 << m) / 2
    }
}
