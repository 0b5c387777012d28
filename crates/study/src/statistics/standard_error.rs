//! Means with standard errors: clustered by task, stratified by task, over repeats. After Miller,
//! "Adding Error Bars to Evals" (arXiv 2411.00640), sections 2 and 3.

use serde::Serialize;

use super::left_out::{at_least, finite};
use super::{Computed, Interval, t_quantile, z_quantile};

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
    /// The 95 % interval.
    pub interval: Interval,
    /// Number of values.
    pub n: usize,
    /// Number of tasks that the values come from.
    pub groups: usize,
}

impl Estimate {
    /// The same mean and spread with the uncertainty of fewer observations, for values some of
    /// which repeat others and add no information. The interval is Student's.
    ///
    /// # Errors
    /// With fewer than two observations.
    pub fn of_fewer(self, observations: usize) -> Computed<Self> {
        at_least("different inputs", 2, observations)?;
        if observations >= self.n {
            return Ok(self);
        }

        let (n, fewer) = (self.n as f64, observations as f64);
        let standard_error = self.standard_error * (n / fewer).sqrt();
        let interval = Interval::around(self.mean, t_quantile(fewer - 1.0) * standard_error);
        Ok(Self { standard_error, interval, groups: observations, ..self })
    }
}

/// The mean of repeated instances, and how alike the repeats are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Repeats {
    /// Estimate from the instances' means: an instance is the unit, however often it was run.
    pub estimate: Estimate,
    /// Intraclass correlation ICC(1) by analysis of variance: 1 if repeats of an instance always
    /// agree, about 0 if they differ as much as instances do. `None` unless every instance has the
    /// same number of repeats, at least two.
    pub intraclass_correlation: Option<f64>,
}

/// The arithmetic mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sum of squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The sample standard deviation (n − 1); 0 for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { (squares(values) / (values.len() - 1) as f64).sqrt() }
}

fn checked(groups: &[Vec<f64>]) -> Computed<(usize, f64)> {
    finite(groups.iter().flatten())?;
    let n: usize = groups.iter().map(Vec::len).sum();
    at_least("values", 2, n)?;
    Ok((n, groups.iter().flatten().sum::<f64>() / n as f64))
}

/// The mean over all values with a standard error clustered by task: a statement about tasks like
/// these. Residuals are summed by cluster (Miller, eq. 4), and the variance is multiplied by C/(C −
/// 1), with Student's t of C − 1 degrees of freedom, because clusters are few. Doubtful below 30
/// clusters of unequal size.
///
/// # Errors
/// With fewer than two clusters that have values.
pub fn clustered(clusters: &[Vec<f64>]) -> Computed<Estimate> {
    let (n, mean) = checked(clusters)?;
    let groups = clusters.iter().filter(|cluster| !cluster.is_empty()).count();
    at_least("tasks", 2, groups)?;

    let sums = clusters.iter().map(|cluster| cluster.iter().map(|value| value - mean).sum::<f64>());
    let variance: f64 = sums.map(|sum| sum * sum).sum::<f64>() / (n as f64).powi(2);
    let standard_error = (variance * groups as f64 / (groups - 1) as f64).sqrt();

    let half = t_quantile((groups - 1) as f64) * standard_error;
    Ok(Estimate { mean, standard_error, interval: Interval::around(mean, half), n, groups })
}

/// The mean over all values with a standard error stratified by task: a statement about exactly
/// these tasks, on new instances.
///
/// # Errors
/// If a stratum has fewer than two values.
pub fn stratified(strata: &[Vec<f64>]) -> Computed<Estimate> {
    let sizes: Vec<usize> = strata.iter().map(Vec::len).collect();
    stratified_over(strata, &sizes)
}

/// [`stratified`] where `observations` says how many of each stratum's values are different
/// observations.
///
/// # Errors
/// If a stratum has fewer than two values or observations.
pub fn stratified_over(strata: &[Vec<f64>], observations: &[usize]) -> Computed<Estimate> {
    let (n, mean) = checked(strata)?;
    let smallest = strata.iter().map(Vec::len).min().unwrap_or_default();
    at_least("instances of each task", 2, smallest)?;
    let fewest = observations.iter().copied().min().unwrap_or_default();
    at_least("different inputs of each task", 2, fewest)?;

    let part = |(stratum, observations): (&Vec<f64>, &usize)| {
        let size = stratum.len() as f64;
        let variance = squares(stratum) / (size - 1.0);
        (size / n as f64).powi(2) * variance / *observations as f64
    };

    let standard_error = strata.iter().zip(observations).map(part).sum::<f64>().sqrt();
    let interval = Interval::around(mean, z_quantile() * standard_error);
    Ok(Estimate { mean, standard_error, interval, n, groups: strata.len() })
}

/// The mean over instances that were run several times. Repeats are averaged first, because a
/// repeated instance is not a new one.
///
/// # Errors
/// With fewer than two instances, and if one has no runs.
pub fn repeats(instances: &[Vec<f64>]) -> Computed<Repeats> {
    checked(instances)?;
    at_least("instances", 2, instances.len())?;
    at_least("runs of each instance", 1, instances.iter().map(Vec::len).min().unwrap_or_default())?;

    let means: Vec<f64> = instances.iter().map(|runs| mean(runs)).collect();
    let n = means.len();
    let standard_error = standard_deviation(&means) / (n as f64).sqrt();
    let half = t_quantile((n - 1) as f64) * standard_error;

    let centre = mean(&means);
    let estimate = Estimate {
        mean: centre,
        standard_error,
        interval: Interval::around(centre, half),
        n,
        groups: n,
    };

    Ok(Repeats { estimate, intraclass_correlation: intraclass_correlation(instances, &means) })
}

fn intraclass_correlation(instances: &[Vec<f64>], means: &[f64]) -> Option<f64> {
    let runs = instances[0].len();
    if runs < 2 || instances.iter().any(|other| other.len() != runs) {
        return None;
    }

    let between = runs as f64 * squares(means) / (means.len() - 1) as f64;
    let within =
        instances.iter().map(|runs| squares(runs)).sum::<f64>() / (means.len() * (runs - 1)) as f64;

    let total = between + (runs - 1) as f64 * within;
    (total > 0.0).then(|| (between - within) / total)
}

#[cfg(test)]
mod tests {
    use super::super::LeftOut;
    use super::super::tests::assert_near;
    use super::*;

    fn bits(texts: &[&str]) -> Vec<Vec<f64>> {
        texts
            .iter()
            .map(|text| text.chars().map(|bit| f64::from(u8::from(bit == '1'))).collect())
            .collect()
    }

    #[test]
    fn clusters_are_the_unit() {
        // Computed with statsmodels: OLS on a constant, cov_type="cluster", with and without the
        // small-sample factor.
        let estimate = clustered(&bits(&["110", "0010", "11"])).unwrap();
        assert_near(estimate.mean, 0.555_555_555_6, 1e-9);
        assert_near(estimate.standard_error, 0.210_601_507_5, 1e-9);
        assert_near(estimate.standard_error * (2.0_f64 / 3.0).sqrt(), 0.171_955_410_8, 1e-9);
        assert_eq!((estimate.n, estimate.groups), (9, 3));
        // Student's t with 2 degrees of freedom: 4.302652730.
        assert_near(estimate.interval.high - estimate.mean, 4.302_652_730 * 0.210_601_507_5, 1e-7);
    }

    #[test]
    fn strata_are_fixed() {
        let estimate = stratified(&bits(&["110", "0010", "11"])).unwrap();
        assert_near(estimate.standard_error, 0.157_134_840_3, 1e-9);
        assert!(matches!(
            stratified(&bits(&["110", "1"])),
            Err(LeftOut::TooFew { need: 2, have: 1, .. })
        ));
    }

    #[test]
    fn repeats_are_averaged_first() {
        // Computed with numpy; treating the twelve runs as independent would give 0.1507556723.
        let repeats = repeats(&bits(&["110", "000", "111", "010"])).unwrap();
        assert_near(repeats.estimate.standard_error, 0.215_165_741_4, 1e-9);
        assert_near(repeats.intraclass_correlation.unwrap(), 0.4375, 1e-12);
        assert_eq!(super::repeats(&bits(&["1", "0"])).unwrap().intraclass_correlation, None);
    }

    #[test]
    fn too_few_groups_have_no_standard_error() {
        assert_eq!(
            clustered(&bits(&["1101"])),
            Err(LeftOut::TooFew { what: "tasks", need: 2, have: 1 })
        );
        assert!(clustered(&[]).is_err() && stratified(&[]).is_err() && repeats(&[]).is_err());
        assert!(repeats(&bits(&["11", ""])).is_err());
        assert_eq!(clustered(&[vec![f64::NAN], vec![1.0]]), Err(LeftOut::NotFinite));
    }
}
