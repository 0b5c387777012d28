//! Seeds derived from a run's seed, so that a run can be repeated and each of its proposals has its
//! own seed.

use super::turn::TurnId;

/// One step of SplitMix64, with `part` mixed in.
fn mixed(seed: u64, part: u64) -> u64 {
    let mut seed = seed.wrapping_add(part).wrapping_add(0x9E37_79B9_7F4A_7C15);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    seed = (seed ^ (seed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    seed ^ (seed >> 31)
}

/// The seed of a trajectory's next proposal, after `proposals` earlier ones.
#[inline]
pub fn turn_seed(run_seed: u64, id: TurnId, proposals: u64) -> u64 {
    [u64::from(id.round), u64::from(id.trajectory), proposals].into_iter().fold(run_seed, mixed)
}

/// The seed of one of several samples of a turn; the first uses the turn's own.
pub fn sample_seed(turn_seed: u64, sample: u32) -> u64 {
    if sample == 0 { turn_seed } else { mixed(turn_seed, u64::from(sample)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn seeds_never_change() {
        // Recorded runs are looked up by their seeds.
        assert_eq!(
            mixed(0, 0),
            0xE220_A839_7B1D_CDAF,
            "the first number of SplitMix64 from seed 0"
        );
    }

    #[test]
    fn neighbours_have_different_seeds() {
        let mut seeds = BTreeSet::new();
        for (round, trajectory, proposals) in
            (0..4).flat_map(|r| (0..8).flat_map(move |t| (0..8).map(move |p| (r, t, p))))
        {
            let turn = turn_seed(42, TurnId { round, trajectory }, proposals);
            assert_eq!(sample_seed(turn, 0), turn);
            assert!(
                (0..4).all(|sample| seeds.insert(sample_seed(turn, sample))),
                "{round} {trajectory} {proposals}"
            );
        }
    }
}
