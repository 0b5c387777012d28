//! What k samples of an instance would have achieved, computed from n ≥ k samples.

use statrs::function::factorial::ln_binomial;

use super::left_out::at_least;
use super::{Computed, LeftOut};

/// The unbiased estimate of pass@k: the probability that at least one of k samples, drawn without
/// replacement from `samples` of which `right` are right, is right (Chen et al. 2021, eq. 1).
///
/// # Errors
/// With fewer samples than `k` or than `right`.
pub fn pass_at(k: usize, samples: usize, right: usize) -> Computed<f64> {
    at_least("samples", k.max(1).max(right), samples)?;

    let wrong = samples - right;
    // Every draw of k has a right one.
    if wrong < k {
        return Ok(1.0);
    }
    // C(n−c, k)/C(n, k) as a product, which does not overflow.
    let none = ((wrong + 1)..=samples).map(|m| 1.0 - k as f64 / m as f64).product::<f64>();
    Ok(1.0 - none)
}

/// majority@k: the probability that the right answer wins the vote of k samples, drawn without
/// replacement from samples of which `right` gave the right answer and `others` counts each other
/// answer. Tied answers win with equal probability.
///
/// # Errors
/// With fewer samples than `k`, and for a `k` of 0.
pub fn majority_at(k: usize, right: usize, others: &[usize]) -> Computed<f64> {
    if k == 0 {
        return Err(LeftOut::TooFew { what: "samples of a vote", need: 1, have: 0 });
    }

    let samples = right + others.iter().sum::<usize>();
    at_least("samples", k, samples)?;

    let all = ln_binomial(samples as u64, k as u64);
    let mut probability = 0.0;

    for votes in 1..=right.min(k) {
        let lead = ln_binomial(right as u64, votes as u64);
        // ways[drawn][ties]: ways to draw `drawn` other answers, none with more than `votes` votes
        // and `ties` of them with exactly as many.
        let mut ways = vec![vec![0.0_f64; k / votes + 1]; k - votes + 1];
        ways[0][0] = 1.0;

        for other in others {
            let mut next = vec![vec![0.0; k / votes + 1]; k - votes + 1];
            for (drawn, by_ties) in ways.iter().enumerate() {
                for (ties, count) in by_ties.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                    for more in 0..=votes.min(*other).min(k - votes - drawn) {
                        let ties = ties + usize::from(more == votes);
                        next[drawn + more][ties] +=
                            count * ln_binomial(*other as u64, more as u64).exp();
                    }
                }
            }
            ways = next;
        }

        let share = |(ties, count): (usize, &f64)| count / (ties + 1) as f64;
        let wins: f64 = ways[k - votes].iter().enumerate().map(share).sum();
        probability += (lead - all).exp() * wins;
    }
    Ok(probability.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn pass_at_k_is_unbiased() {
        // Chen et al. 2021: 1 − C(7, k)/C(10, k).
        assert_near(pass_at(1, 10, 3).unwrap(), 0.3, 1e-12);
        assert_near(pass_at(5, 10, 3).unwrap(), 0.916_666_666_7, 1e-9);
        assert_eq!(pass_at(8, 10, 3), Ok(1.0));
        assert_eq!(pass_at(3, 5, 0), Ok(0.0));
        assert_eq!(pass_at(6, 5, 1), Err(LeftOut::TooFew { what: "samples", need: 6, have: 5 }));
    }

    #[test]
    fn the_majority_is_enumerated() {
        // Enumerated with fractions over all draws.
        for (k, right, others, expected) in [
            (3, 6, &[3, 1][..], 43.0 / 60.0),
            (5, 6, &[3, 1], 139.0 / 168.0),
            (5, 4, &[4, 2], 19.0 / 42.0),
            (4, 4, &[6], 1.0 / 3.0),
            (1, 3, &[7], 0.3),
            (2, 0, &[5], 0.0),
            (4, 4, &[], 1.0),
        ] {
            assert_near(majority_at(k, right, others).unwrap(), expected, 1e-10);
        }
        assert!(majority_at(3, 1, &[1]).is_err() && majority_at(0, 1, &[1]).is_err());
    }
}
