//! Wilcoxon's signed-rank test on the differences of paired values, such as the accuracies of
//! tasks.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::left_out::at_least;
use super::paired::differences;
use super::{ALPHA, Computed};

/// Maximum number of differences for which the distribution is enumerated. With more, the normal
/// approximation is good to many digits.
const ENUMERATED_MAX: usize = 400;

/// Result of the signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SignedRank {
    /// Number of differences that are not zero.
    pub n: usize,
    /// Rank sum of the negative differences.
    pub w_minus: f64,
    /// Two-sided p.
    pub p: f64,
    /// True if the distribution over all signs was enumerated, ties included; otherwise it is the
    /// normal one with the correction for ties.
    pub is_exact: bool,
}

/// Ranks twice as large as usual, so that the mean ranks of ties are integers.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    while ranks.len() < sorted.len() {
        let first = ranks.len();
        let value = sorted[first];
        // Equal up to rounding: differences of proportions such as 0.3 − 0.1 and 0.4 − 0.2 are
        // ties.
        let tied = sorted[first..]
            .iter()
            .take_while(|other| **other - value <= 1e-12 * value.max(1.0))
            .count();
        ranks.extend(std::iter::repeat_n(2 * first + tied + 1, tied));
    }
    ranks
}

/// The probability of a doubled rank sum of at most `limit` if each rank has either sign.
fn at_most(ranks: &[usize], limit: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    let mut probability = vec![0.0; total + 1];
    probability[0] = 1.0;

    let mut highest = 0;
    for rank in ranks {
        highest += rank;
        // Downwards, so that each rank is added once.
        for sum in (0..=highest).rev() {
            let with = if sum >= *rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = f64::midpoint(probability[sum], with);
        }
    }

    probability[..=limit.min(total)].iter().sum()
}

/// Tests whether the differences `right − left` are symmetric around zero. Zero differences are
/// dropped.
///
/// # Errors
/// With fewer than six non-zero differences, because then no arrangement is significant.
pub fn wilcoxon(left: &[f64], right: &[f64]) -> Computed<SignedRank> {
    let mut differences = differences(left, right)?;
    differences.retain(|difference| difference.abs() > 1e-12);

    let n = differences.len();
    // The most extreme arrangement has p = 2 · 0.5^n.
    at_least("non-zero differences", super::discordant_needed(1), n)?;
    debug_assert!(2.0 * 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX)) <= ALPHA);

    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&differences.iter().map(|it| it.abs()).collect::<Vec<_>>());
    let negative: usize =
        differences.iter().zip(&ranks).filter(|(it, _)| **it < 0.0).map(|(_, rank)| rank).sum();

    let total: usize = ranks.iter().sum();
    let smaller = negative.min(total - negative);

    let is_exact = n <= ENUMERATED_MAX;
    let p = if is_exact {
        2.0 * at_most(&ranks, smaller)
    } else {
        let variance: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
        2.0 * Normal::standard().cdf((smaller as f64 - total as f64 / 2.0) / variance.sqrt())
    };

    Ok(SignedRank { n, w_minus: negative as f64 / 2.0, p: p.min(1.0), is_exact })
}

#[cfg(test)]
mod tests {
    use super::super::LeftOut;
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn without_ties_the_test_is_exact() {
        // scipy.stats.wilcoxon(b, a): the six tasks of the paired t test.
        let left = [0.62, 0.35, 0.71, 0.48, 0.55, 0.80];
        let right = [0.70, 0.52, 0.69, 0.66, 0.71, 0.86];
        let test = wilcoxon(&left, &right).unwrap();
        assert_eq!((test.n, test.w_minus, test.is_exact), (6, 1.0, true));
        assert_near(test.p, 0.0625, 1e-12);
    }

    #[test]
    fn ties_are_enumerated() {
        // scipy.stats.wilcoxon(d, method=PermutationMethod()): 30 of 2,048 signs. The normal
        // approximation says 0.018.
        let differences = [1.0, 2.0, 2.0, -3.0, 4.0, 4.0, 4.0, 0.0, 5.0, -1.0, 6.0, 7.0];
        let test = wilcoxon(&[0.0; 12], &differences).unwrap();
        assert_eq!((test.n, test.w_minus), (11, 6.5));
        assert_near(test.p, 0.014_648_437_5, 1e-12);
    }

    #[test]
    fn many_differences_are_approximated_as_they_are_enumerated() {
        let differences = |n: u32| -> Vec<f64> {
            (1..=n)
                .map(|i| if i % 5 < 2 { -f64::from(i % 97) - 1.0 } else { f64::from(i % 89) + 1.0 })
                .collect()
        };

        let (few, many) = (differences(400), differences(401));
        let few = wilcoxon(&vec![0.0; 400], &few).unwrap();
        let many = wilcoxon(&vec![0.0; 401], &many).unwrap();

        assert!(few.is_exact && !many.is_exact);
        assert!((few.p.ln() - many.p.ln()).abs() < 0.5, "{few:?} {many:?}");
    }

    #[test]
    fn too_few_differences_are_left_out() {
        let left_out = LeftOut::TooFew { what: "non-zero differences", need: 6, have: 5 };
        assert_eq!(wilcoxon(&[0.0; 7], &[1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0]), Err(left_out));
    }
}
