//! Which of several servers gets a request: the one with the least load, unless another one knows its beginning and is
//! not markedly busier. Pure.

/// Share of its places by which the preferred server may be fuller than the least loaded one.
const AFFINITY_SLACK: f64 = 0.25;

/// A server that takes requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub index: usize,
    pub in_flight: u32,
    /// At least 1.
    pub concurrent_max: u32,
    /// Above 0.
    pub weight: f64,
    /// Of the server's name.
    pub hash: u64,
}

impl Candidate {
    /// Its size beside others.
    fn share(&self) -> f64 {
        f64::from(self.concurrent_max) * self.weight
    }

    /// Its load with one request more.
    fn load(&self) -> f64 {
        (f64::from(self.in_flight) + 1.0) / self.share()
    }

    fn is_full(&self) -> bool {
        self.in_flight >= self.concurrent_max
    }

    /// Weighted rendezvous hashing: over many affinities, the share of those for which this is the largest of several
    /// scores is its share of their sizes, and it loses no affinity when another server comes or goes.
    fn preference(&self, affinity: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        let uniform = ((mix(self.hash ^ mix(affinity)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -self.share() / uniform.ln()
    }
}

/// Spreads bits (the finaliser of SplitMix64).
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The server for a request, or none while all are full. `avoid` has just failed it, and gets it only when there is no
/// other.
pub(super) fn choose(candidates: &[Candidate], affinity: u64, avoid: Option<usize>) -> Option<usize> {
    let is_avoided = |candidate: &Candidate| Some(candidate.index) == avoid;
    let all_avoided = candidates.iter().all(is_avoided);
    let open = || candidates.iter().filter(|candidate| all_avoided || !is_avoided(candidate));
    let free = || open().filter(|candidate| !candidate.is_full());
    let preferred = open().max_by(|a, b| a.preference(affinity).total_cmp(&b.preference(affinity)))?;
    // The preferred one among all: while it is full, its requests go where there is least load, not to its neighbour.
    let least = free().min_by(|a, b| {
        a.load().total_cmp(&b.load()).then_with(|| b.preference(affinity).total_cmp(&a.preference(affinity)))
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
    fn idle_servers_share_affinities_by_size() {
        let counts = counts(&pool(&[(0, 8, 1.0), (0, 8, 1.0), (0, 16, 1.0), (0, 16, 0.5)]));
        for (found, share) in counts.into_iter().zip([2_000, 2_000, 4_000, 2_000]) {
            assert!(u32::abs_diff(found, share) < 250, "{found} of about {share}");
        }
    }

    #[test]
    fn only_the_affinities_of_a_server_that_goes_move() {
        let all = pool(&[(0, 8, 1.0), (0, 8, 1.0), (0, 8, 1.0)]);
        for affinity in 0..1_000 {
            let before = choose(&all, affinity, None).unwrap();
            let after = choose(&all[..2], affinity, None).unwrap();
            assert!(before == 2 || before == after, "{affinity} moved from {before} to {after}");
        }
    }

    #[test]
    fn the_preferred_server_is_left_when_it_is_markedly_busier() {
        let affinity =
            (0..1_000).find(|&affinity| choose(&pool(&[(0, 8, 1.0), (0, 8, 1.0)]), affinity, None) == Some(0));
        let chosen = |busy| choose(&pool(&[(busy, 8, 1.0), (0, 8, 1.0)]), affinity.unwrap(), None);
        assert_eq!([chosen(0), chosen(1), chosen(2)], [Some(0); 3], "up to a quarter of its places");
        assert_eq!([chosen(3), chosen(8)], [Some(1); 2]);
    }

    #[test]
    fn full_servers_get_nothing_and_small_weights_only_what_is_left() {
        assert_eq!(counts(&pool(&[(4, 4, 1.0), (3, 4, 1.0)])), [0, 10_000]);
        assert_eq!(counts(&pool(&[(7, 8, 1.0), (0, 8, 0.001)])), [10_000, 0]);
        assert_eq!(counts(&pool(&[(8, 8, 1.0), (0, 8, 0.001)])), [0, 10_000]);
        assert_eq!(choose(&pool(&[(1, 1, 1.0), (2, 2, 1.0)]), 0, None), None);
        assert_eq!(choose(&[], 0, None), None);
    }

    #[test]
    fn a_server_that_failed_is_asked_again_only_when_it_is_alone() {
        let two = pool(&[(0, 8, 1.0), (7, 8, 1.0)]);
        assert!((0..100).all(|affinity| choose(&two, affinity, Some(0)) == Some(1)));
        assert_eq!(choose(&pool(&[(0, 8, 1.0), (8, 8, 1.0)]), 0, Some(0)), None, "it waits for the other one");
        assert_eq!(choose(&two[..1], 0, Some(0)), Some(0));
    }
}
