//! The BCa bootstrap (Efron 1987) over tasks, then over the instances of each task (Davison and
//! Hinkley 1997, section 3.8).

use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::left_out::{at_least, finite};
use super::resample::Resampler;
use super::{CONFIDENCE, Computed, Interval, LeftOut, mean, quantile, standard_deviation};

/// Number of resamples of an interval: with fewer, its ends vary visibly with the seed.
pub const RESAMPLES: usize = 10_000;

/// A bias-corrected and accelerated interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bca {
    /// The estimate: the mean over tasks of each task's mean.
    pub mean: f64,
    /// Standard deviation of the resampled means.
    pub standard_error: f64,
    /// The 95 % interval.
    pub interval: Interval,
    /// Bias correction z0.
    pub bias: f64,
    /// Acceleration, from the jackknife over tasks.
    pub acceleration: f64,
    /// Number of tasks.
    pub groups: usize,
    /// Number of resamples.
    pub resamples: usize,
}

/// The interval of the mean over tasks of each task's mean, by two-stage resampling: tasks with
/// replacement, then instances of each drawn task with replacement. The same seed gives the same
/// interval.
///
/// # Errors
/// With fewer than two tasks, and if all values are equal. Empty tasks are left out.
pub fn bca_of_means(tasks: &[Vec<f64>], resamples: usize, seed: u64) -> Computed<Bca> {
    let tasks: Vec<&Vec<f64>> = tasks.iter().filter(|task| !task.is_empty()).collect();
    finite(tasks.iter().copied().flatten())?;

    at_least("tasks", 2, tasks.len())?;

    let means: Vec<f64> = tasks.iter().map(|task| mean(task)).collect();
    // Every resample would be the same, and z0 would be infinite.
    if tasks.iter().copied().flatten().all(|value| *value == tasks[0][0]) {
        return Err(LeftOut::NoVariation { what: "values" });
    }

    let replicates =
        two_stage_means(&tasks.into_iter().cloned().collect::<Vec<_>>(), resamples, seed);
    interval(mean(&means), replicates, &leave_one_out(&means))
}

/// Means over tasks of resampled task means, in the order in which they were drawn. Every task must
/// have values.
pub fn two_stage_means(tasks: &[Vec<f64>], resamples: usize, seed: u64) -> Vec<f64> {
    let resamplers: Vec<Resampler<'_>> = tasks.iter().map(|task| Resampler::new(task)).collect();

    let mut rng = ChaCha8Rng::seed_from_u64(seed);

    let mut one = || {
        let sum: f64 = (0..tasks.len())
            .map(|_| resamplers[rng.random_range(0..tasks.len())].draw(&mut rng))
            .sum();
        sum / tasks.len() as f64
    };
    (0..resamples).map(|_| one()).collect()
}

/// Means of all but one value.
fn leave_one_out(values: &[f64]) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    values.iter().map(|value| (sum - value) / (values.len() - 1) as f64).collect()
}

/// The interval from resampled estimates and the jackknife's.
fn interval(estimate: f64, mut replicates: Vec<f64>, jackknife: &[f64]) -> Computed<Bca> {
    let resamples = replicates.len();
    at_least("resamples", 100, resamples)?;

    let standard_error = standard_deviation(&replicates);
    replicates.sort_by(f64::total_cmp);
    // Ties with the estimate, up to rounding, count half.
    let slack = 1e-12 * estimate.abs().max(1.0);

    let below = replicates.partition_point(|value| *value < estimate - slack);
    let within = replicates.partition_point(|value| *value <= estimate + slack);
    let share = (below + within) as f64 / 2.0 / resamples as f64;
    // z0 would be infinite.
    if share <= 0.0 || share >= 1.0 {
        return Err(LeftOut::NoVariation { what: "resampled means" });
    }

    let normal = Normal::standard();
    let bias = normal.inverse_cdf(share);

    let centre = mean(jackknife);
    let (cubes, squares) = jackknife.iter().fold((0.0, 0.0), |(cubes, squares), value| {
        let difference: f64 = centre - value;
        (cubes + difference.powi(3), squares + difference.powi(2))
    });
    let acceleration = if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 };

    let end = |tail: f64| {
        let z = bias + normal.inverse_cdf(tail);
        let share = normal.cdf(bias + z / (1.0 - acceleration * z));
        quantile(&replicates, share).expect("invariant: there are resamples")
    };

    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = Interval { low: end(tail), high: end(1.0 - tail) };
    Ok(Bca {
        mean: estimate,
        standard_error,
        interval,
        bias,
        acceleration,
        groups: jackknife.len(),
        resamples,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    /// The differences of six tasks, and all 6^6 means of resamples.
    fn enumerated() -> ([f64; 6], Vec<f64>) {
        let differences = [0.08, 0.17, -0.02, 0.18, 0.16, 0.06];
        let all = (0..6_usize.pow(6)).map(|index| {
            (0..6).map(|place| differences[index / 6_usize.pow(place) % 6]).sum::<f64>() / 6.0
        });
        (differences, all.collect())
    }

    #[test]
    fn the_interval_is_bca() {
        // scipy.stats.bootstrap's formulas over all 6^6 resamples, so that no chance is involved.
        let (differences, all) = enumerated();
        let bca = interval(mean(&differences), all, &leave_one_out(&differences)).unwrap();
        assert_near(bca.bias, -0.035_466_424_5, 1e-6);
        assert_near(bca.acceleration, -0.036_287_397_6, 1e-9);
        assert_near(bca.interval.low, 0.04, 2e-9);
        assert_near(bca.interval.high, 0.155, 2e-9);
    }

    #[test]
    fn two_stages_have_the_variance_of_both() {
        // sqrt(V_between/G + V_within/(G m)), both with 1/N: .2097176232.
        let bits = |text: &str| {
            text.chars().map(|bit| f64::from(u8::from(bit == '1'))).collect::<Vec<f64>>()
        };

        let tasks = ["110", "000", "111", "010"].map(bits);

        let bca = bca_of_means(&tasks, 100_000, 7).unwrap();
        assert_near(bca.standard_error, 0.209_717_623_2, 0.002);
        assert_near(bca.mean, 0.5, 1e-12);

        assert_eq!(bca_of_means(&tasks, 1_000, 7), bca_of_means(&tasks, 1_000, 7));
        assert_ne!(bca_of_means(&tasks, 1_000, 7), bca_of_means(&tasks, 1_000, 8));
    }

    #[test]
    fn equal_values_and_single_tasks_have_no_interval() {
        assert!(bca_of_means(&[vec![1.0; 3], vec![1.0; 3]], 1_000, 1).is_err());
        assert_eq!(
            bca_of_means(&[vec![1.0, 0.0], vec![]], 1_000, 1),
            Err(LeftOut::TooFew { what: "tasks", need: 2, have: 1 })
        );
    }
}
