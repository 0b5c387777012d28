//! Corrections for many tests at once, as adjusted p-values, which are all compared with the same
//! level.

/// Bonferroni: each p times the number of tests, at most 1.
pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    p.iter().map(|value| (value * p.len() as f64).min(1.0)).collect()
}

/// Holm's step-down procedure (1979), which rejects whatever Bonferroni rejects and more: the i-th
/// smallest of m values times m − i + 1, never below an earlier one, at most 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));

    let mut adjusted = vec![0.0; p.len()];
    let mut highest = 0.0_f64;

    for (rank, place) in order.into_iter().enumerate() {
        highest = highest.max((p[place] * (p.len() - rank) as f64).min(1.0));
        adjusted[place] = highest;
    }

    adjusted
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn adjusted_values_are_those_of_statsmodels() {
        // statsmodels.stats.multitest.multipletests, methods "holm" and "bonferroni".
        let p = [0.001, 0.04, 0.03, 0.005];
        for (value, expected) in holm(&p).into_iter().zip([0.004, 0.06, 0.06, 0.015]) {
            assert_near(value, expected, 1e-12);
        }

        for (value, expected) in bonferroni(&p).into_iter().zip([0.004, 0.16, 0.12, 0.02]) {
            assert_near(value, expected, 1e-12);
        }

        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty() && bonferroni(&[]).is_empty());
    }
}
