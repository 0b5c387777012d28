//! Bitonic Sort: sort blocks in turn upwards and downwards, and merge each two by halving distances.
//!
//! A step is one action line of a sorting network: a stage begun, a comparison, an exchange, `done`.

use super::network::{Action, Constraints, Network, NetworkSort, Stage, State};
use crate::tasks::page::Sizes;
use crate::tasks::pages::bitonic_sort as page;
use crate::tasks::spec::Spec;

pub type BitonicSort = NetworkSort<Bitonic>;

pub struct Bitonic;

/// With [k, j] the stage.
fn is_stage(n: usize, [k, j]: Stage) -> bool {
    k.is_power_of_two() && j.is_power_of_two() && j < k && k <= n
}

impl Network for Bitonic {
    const PAGE: Spec = page::SPEC;
    const N: Sizes = page::size::N;
    const CONSTRAINTS: Constraints = Constraints {
        permutation: page::PERMUTATION,
        distance: page::DISTANCE,
        blocks: page::BLOCKS,
        counts: page::COUNTS,
        sorted: page::SORTED,
    };
    const FIRST: Stage = [2, 1];

    fn has(n: usize, stage: Stage) -> bool {
        is_stage(n, stage)
    }

    fn next(n: usize, [k, j]: Stage) -> Option<Stage> {
        if j > 1 { Some([k, j / 2]) } else { (k < n).then_some([2 * k, k]) }
    }

    fn partner(_: usize, [_, j]: Stage, i: usize) -> Option<usize> {
        (i & j == 0).then_some(i + j)
    }

    fn is_descending([k, _]: Stage, i: usize) -> bool {
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

    fn own_constraint(n: usize, _: Action, after: &State) -> (usize, bool) {
        (page::STAGE, after.stage.is_none_or(|stage| is_stage(n, stage)))
    }

    fn comparators(m: u64) -> u64 {
        m * (m + 1) / 2 * (1 << m) / 2
    }
}
