//! Load balancing: the least loaded backend gets a request, unless the one with its prefix cached
//! is not much busier. Pure.

/// How much higher the preferred backend's load may be than the lowest one.
const AFFINITY_SLACK: f64 = 0.25;

/// A backend that accepts requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub index: usize,
    pub in_flight: u32,
    /// Maximum concurrent requests, at least 1.
    pub concurrent_max: u32,
    /// The configured weight, above 0.
    pub weight: f64,
    /// Depends on the backend's URL and model.
    pub hash: u64,
}

impl Candidate {
    /// Its relative capacity.
    fn capacity(&self) -> f64 {
        f64::from(self.concurrent_max) * self.weight
    }

    /// Its load with one more request.
    fn load(&self) -> f64 {
        (f64::from(self.in_flight) + 1.0) / self.capacity()
    }

    fn is_full(&self) -> bool {
        self.in_flight >= self.concurrent_max
    }

    /// Weighted rendezvous hashing: each backend has the highest score for a share of the
    /// affinities that is its share of the capacity, and no affinity moves between two backends
    /// when a third is added or removed.
    fn preference(&self, affinity: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        let uniform = ((mix(self.hash ^ mix(affinity)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -self.capacity() / uniform.ln()
    }
}

/// Mixes bits with the finaliser of SplitMix64.
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The backend for a request; `None` while all are full. `avoid` has just failed it and is chosen
/// only if there is no other.
pub(super) fn choose(
    candidates: &[Candidate],
    affinity: u64,
    avoid: Option<usize>,
) -> Option<usize> {
    let is_avoided = |candidate: &Candidate| Some(candidate.index) == avoid;
    let all_avoided = candidates.iter().all(is_avoided);

    let open = || candidates.iter().filter(|candidate| all_avoided || !is_avoided(candidate));
    let free = || open().filter(|candidate| !candidate.is_full());

    let preferred =
        open().max_by(|a, b| a.preference(affinity).total_cmp(&b.preference(affinity)))?;
    // Preferred among all, full ones included: its overflow goes to the least loaded backend, not
    // to the next in rank.
    let least = free().min_by(|a, b| {
        a.load()
            .total_cmp(&b.load())
            .then_with(|| b.preference(affinity).total_cmp(&a.preference(affinity)))
    })?;

    let is_near = !preferred.is_full() && preferred.load() <= least.load() + AFFINITY_SLACK;
    Some(if is_near { preferred.index } else { least.index })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(sizes: &[(u32, u32, f64)]) -> Vec<Candidate> {
        let candidate = |(index, &(in_flight, concurrent_max, weight))| Candidate {
            index,
            in_flight,
            concurrent_max,
            weight,
            hash: mix(index as u64 + 100),
        };
        sizes.iter().enumerate().map(candidate).collect()
    }

    /// How often each is chosen for the affinities 0 to 9,999.
    fn counts(pool: &[Candidate]) -> Vec<u32> {
        let mut counts = vec![0; pool.len()];
        for affinity in 0..10_000 {
            counts[choose(pool, affinity, None).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn idle_backends_share_affinities_by_capacity() {
        let counts = counts(&pool(&[(0, 8, 1.0), (0, 8, 1.0), (0, 16, 1.0), (0, 16, 0.5)]));
        for (found, share) in counts.into_iter().zip([2_000, 2_000, 4_000, 2_000]) {
            assert!(u32::abs_diff(found, share) < 250, "{found} of about {share}");
        }
    }

    #[test]
    fn only_the_affinities_of_a_removed_backend_move() {
        let all = pool(&[(0, 8, 1.0), (0, 8, 1.0), (0, 8, 1.0)]);
        for affinity in 0..1_000 {
            let before = choose(&all, affinity, None).unwrap();
            let after = choose(&all[..2], affinity, None).unwrap();
            assert!(before == 2 || before == after, "{affinity} moved from {before} to {after}");
        }
    }

    #[test]
    fn the_preferred_backend_is_skipped_when_it_is_much_busier() {
        let affinity = (0..1_000).find(|&affinity| {
            choose(&pool(&[(0, 8, 1.0), (0, 8, 1.0)]), affinity, None) == Some(0)
        });
        let chosen = |busy| choose(&pool(&[(busy, 8, 1.0), (0, 8, 1.0)]), affinity.unwrap(), None);
        assert_eq!(
            [chosen(0), chosen(1), chosen(2)],
            [Some(0); 3],
            "up to a quarter of its capacity"
        );
        assert_eq!([chosen(3), chosen(8)], [Some(1); 2]);
    }

    #[test]
    fn full_backends_get_nothing_and_small_weights_only_the_overflow() {
        assert_eq!(counts(&pool(&[(4, 4, 1.0), (3, 4, 1.0)])), [0, 10_000]);
        assert_eq!(counts(&pool(&[(7, 8, 1.0), (0, 8, 0.001)])), [10_000, 0]);
        assert_eq!(counts(&pool(&[(8, 8, 1.0), (0, 8, 0.001)])), [0, 10_000]);
        assert_eq!(choose(&pool(&[(1, 1, 1.0), (2, 2, 1.0)]), 0, None), None);
        assert_eq!(choose(&[], 0, None), None);
    }

    #[test]
    fn a_backend_that_failed_is_chosen_again_only_when_it_is_the_only_one() {
        let two = pool(&[(0, 8, 1.0), (7, 8, 1.0)]);
        assert!((0..100).all(|affinity| choose(&two, affinity, Some(0)) == Some(1)));
        assert_eq!(
            choose(&pool(&[(0, 8, 1.0), (8, 8, 1.0)]), 0, Some(0)),
            None,
            "it waits for the other one"
        );
        assert_eq!(choose(&two[..1], 0, Some(0)), Some(0));
    }
}
