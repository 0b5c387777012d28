//! Accuracies with the interval that fits the data.

use crate::statistics::{
    Computed, Interval, LeftOut, Proportion, RESAMPLES, bca_of_means, clopper_pearson, clustered,
    mean, repeats,
};

/// Seed of all resampling in reports, so that a report can be made again to the last digit.
pub(crate) const BOOTSTRAP_SEED: u64 = 42;

/// A mean accuracy, 0 to 1.
#[derive(Clone, Debug)]
pub struct Accuracy {
    pub mean: f64,
    /// The 95 % interval, or why there is none.
    pub interval: Computed<Interval>,
    /// How the interval was computed.
    pub method: &'static str,
    /// Number of instances.
    pub n: usize,
    pub tasks: usize,
}

fn is_binary(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0 || *value == 1.0)
}

/// The interval of one task's mean.
fn of_task(values: &[f64]) -> (Computed<Interval>, &'static str) {
    if is_binary(values) {
        let right = values.iter().filter(|value| **value == 1.0).count() as u64;
        let Proportion { low, high, .. } = Proportion::new(right, values.len() as u64);
        return (Ok(Interval { low, high }), "Wilson");
    }
    // Repeated instances have shares, for which Wilson's interval is not made.
    let instances: Vec<Vec<f64>> = values.iter().map(|value| vec![*value]).collect();
    (repeats(&instances).map(|repeats| clamped(repeats.estimate.interval)), "t over instances")
}

/// An interval of a share, without values that no share can have.
pub(crate) fn clamped(interval: Interval) -> Interval {
    Interval { low: interval.low.max(0.0), high: interval.high.min(1.0) }
}

/// The interval when all instances are right or all wrong, in which case there are only bounds.
fn bounds(values: impl Iterator<Item = f64>) -> Computed<Interval> {
    let (mut right, mut of) = (0, 0);
    for value in values {
        right += u64::from(value == 1.0);
        of += 1;
    }
    clopper_pearson(right, of)
}

/// The mean over all instances. The interval is Wilson's for one task, or Student's if its
/// instances were repeated; for several tasks it is clustered by task.
pub fn over_instances(tasks: &[Vec<f64>]) -> Accuracy {
    let n: usize = tasks.iter().map(Vec::len).sum();
    let all = || tasks.iter().flatten().copied();
    let mean = all().sum::<f64>() / n.max(1) as f64;

    let (interval, method) = match tasks {
        [] => (Err(LeftOut::TooFew { what: "instances", need: 1, have: 0 }), "none"),
        [values] => of_task(values),
        // Without variation a clustered error would be 0.
        _ if all().all(|value| value == tasks[0][0]) && is_binary(&tasks[0]) => {
            (bounds(all()), "Clopper-Pearson")
        }
        _ => (clustered(tasks).map(|estimate| clamped(estimate.interval)), "clustered by task"),
    };

    Accuracy { mean, interval, method, n, tasks: tasks.len() }
}

/// The mean over tasks of each task's mean, as the paper averages, with the two-stage BCa interval.
pub fn over_tasks(tasks: &[Vec<f64>]) -> Accuracy {
    let means: Vec<f64> = tasks.iter().map(|values| mean(values)).collect();

    let all = || tasks.iter().flatten().copied();
    let (interval, method) = match tasks {
        [] | [_] => return over_instances(tasks),
        _ if all().all(|value| value == tasks[0][0]) && is_binary(&tasks[0]) => {
            (bounds(all()), "Clopper-Pearson")
        }
        _ => {
            let bca = bca_of_means(tasks, RESAMPLES, BOOTSTRAP_SEED);
            (bca.map(|bca| bca.interval), "BCa over tasks, then instances")
        }
    };

    Accuracy {
        mean: mean(&means),
        interval,
        method,
        n: tasks.iter().map(Vec::len).sum(),
        tasks: tasks.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_fits_the_data() {
        let one = over_instances(&[vec![1.0, 0.0, 1.0, 1.0]]);
        assert_eq!((one.mean, one.method, one.n, one.tasks), (0.75, "Wilson", 4, 1));

        let repeated = over_instances(&[vec![1.0, 0.5, 1.0, 0.0]]);
        assert_eq!(repeated.method, "t over instances");

        let several = over_instances(&[vec![1.0, 0.0], vec![1.0]]);
        assert_eq!(several.method, "clustered by task");

        // All right: no variance, so the exact bound: 1 − .975 = low^40.
        let all = over_tasks(&[vec![1.0; 20], vec![1.0; 20]]);
        assert_eq!(all.method, "Clopper-Pearson");
        assert!((all.interval.unwrap().low - 0.025_f64.powf(1.0 / 40.0)).abs() < 1e-9);
        assert!(over_instances(&[]).interval.is_err() && over_tasks(&[]).interval.is_err());
    }

    #[test]
    fn tasks_weigh_the_same_whatever_their_number_of_instances() {
        let tasks = [vec![1.0; 9], vec![0.0]];
        assert_eq!((over_instances(&tasks).mean, over_tasks(&tasks).mean), (0.9, 0.5));
    }
}
