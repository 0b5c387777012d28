//! Accuracies, each with the interval that suits its data.

use crate::statistics::{
    Computed, Interval, LeftOut, Proportion, RESAMPLES, bca_of_means, clopper_pearson, clustered,
    mean, repeats,
};

use super::system::TaskValues;

/// Seed of all resampling in reports, so that a report can be made again to the last digit.
pub(crate) const BOOTSTRAP_SEED: u64 = 42;

/// A mean accuracy, 0 to 1.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// The mean, 0 to 1.
    pub mean: f64,
    /// The 95 % interval, or why it is left out.
    pub interval: Computed<Interval>,
    /// How the interval was computed.
    pub method: &'static str,
    /// Number of instances.
    pub n: usize,
    /// Number of different inputs among the instances.
    pub inputs: usize,
    /// Number of tasks.
    pub tasks: usize,
}

fn is_binary(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0 || *value == 1.0)
}

/// The interval of one task's mean: as wide as with one observation for each different input.
fn of_task(task: &TaskValues) -> (Computed<Interval>, &'static str) {
    let TaskValues { values, inputs } = task;
    if is_binary(values) {
        let right = values.iter().filter(|value| **value == 1.0).count() as u64;
        let of = values.len() as u64;
        let Proportion { low, high, .. } = Proportion::over_inputs(right, of, *inputs as u64);
        return (Ok(Interval { low, high }), "Wilson");
    }

    // Repeated instances have shares, for which Wilson's interval is not defined.
    let instances: Vec<Vec<f64>> = values.iter().map(|value| vec![*value]).collect();
    let interval = repeats(&instances)
        .and_then(|repeats| repeats.estimate.of_fewer(*inputs))
        .map(|estimate| clamped(estimate.interval));
    (interval, "t over instances")
}

/// An interval of a share, cut to the range 0 to 1.
pub(crate) fn clamped(interval: Interval) -> Interval {
    Interval { low: interval.low.max(0.0), high: interval.high.min(1.0) }
}

/// The interval when all instances are right or all are wrong: it has one bound.
fn bounds(tasks: &[TaskValues]) -> Computed<Interval> {
    let inputs = inputs_of(tasks);
    let is_right = tasks.iter().flat_map(|task| &task.values).all(|value| *value == 1.0);
    clopper_pearson(if is_right { inputs as u64 } else { 0 }, inputs as u64)
}

fn inputs_of(tasks: &[TaskValues]) -> usize {
    tasks.iter().map(|task| task.inputs).sum()
}

/// True if all instances are right, or all are wrong.
fn are_all_the_same(tasks: &[TaskValues]) -> bool {
    let mut all = tasks.iter().flat_map(|task| &task.values);
    all.next().is_some_and(|first| is_binary(&[*first]) && all.all(|value| value == first))
}

fn values(tasks: &[TaskValues]) -> Vec<Vec<f64>> {
    tasks.iter().map(|task| task.values.clone()).collect()
}

/// The mean over all instances. The interval is Wilson's for one task, or Student's if its
/// instances were repeated, both for as many observations as there are different inputs; for
/// several tasks it is clustered by task, and an input repeats only within its task.
pub fn over_instances(tasks: &[TaskValues]) -> Accuracy {
    let n: usize = tasks.iter().map(|task| task.values.len()).sum();
    let sum: f64 = tasks.iter().flat_map(|task| &task.values).sum();

    let (interval, method) = match tasks {
        [] => (Err(LeftOut::TooFew { what: "instances", need: 1, have: 0 }), "none"),
        [task] => of_task(task),
        // Without variation a clustered error would be 0.
        _ if are_all_the_same(tasks) => (bounds(tasks), "Clopper-Pearson"),
        _ => {
            let estimate = clustered(&values(tasks));
            (estimate.map(|estimate| clamped(estimate.interval)), "clustered by task")
        }
    };

    Accuracy {
        mean: sum / n.max(1) as f64,
        interval,
        method,
        n,
        inputs: inputs_of(tasks),
        tasks: tasks.len(),
    }
}

/// The mean over tasks of each task's mean, as the paper averages, with the two-stage BCa interval.
pub fn over_tasks(tasks: &[TaskValues]) -> Accuracy {
    let means: Vec<f64> = tasks.iter().map(|task| mean(&task.values)).collect();

    let (interval, method) = match tasks {
        [] | [_] => return over_instances(tasks),
        _ if are_all_the_same(tasks) => (bounds(tasks), "Clopper-Pearson"),
        _ => {
            let bca = bca_of_means(&values(tasks), RESAMPLES, BOOTSTRAP_SEED);
            (bca.map(|bca| bca.interval), "BCa over tasks, then instances")
        }
    };

    Accuracy {
        mean: mean(&means),
        interval,
        method,
        n: tasks.iter().map(|task| task.values.len()).sum(),
        inputs: inputs_of(tasks),
        tasks: tasks.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks<const N: usize>(tasks: [Vec<f64>; N]) -> [TaskValues; N] {
        tasks.map(TaskValues::from)
    }

    #[test]
    fn an_interval_counts_inputs_and_a_mean_instances() {
        // Half of 600 instances with 8 inputs: Wilson's interval of 4 of 8, .2152 to .7848.
        let few = TaskValues { values: [[1.0; 300], [0.0; 300]].concat(), inputs: 8 };
        let one = over_instances(&[few]);
        assert_eq!((one.mean, one.n, one.inputs, one.method), (0.5, 600, 8, "Wilson"));
        let interval = one.interval.expect("an interval");
        assert!((interval.low - 0.2152).abs() < 5e-5 && (interval.high - 0.7848).abs() < 5e-5);

        // All right: 1 - .975 = low^3, whatever the number of instances.
        let all = |inputs| TaskValues { values: vec![1.0; 200], inputs };
        let two = over_tasks(&[all(1), all(2)]).interval.expect("an interval");
        assert!((two.low - 0.025_f64.powf(1.0 / 3.0)).abs() < 1e-9, "{two:?}");
    }

    #[test]
    fn shares_of_repeated_inputs_have_the_interval_of_fewer_observations() {
        // Values .5, 1, .5, 1 of two inputs: the deviation is .2887, the error of two observations
        // .2041, and Student's quantile with one degree of freedom 12.706: wider than all shares.
        let shares = |inputs| TaskValues { values: vec![0.5, 1.0, 0.5, 1.0], inputs };
        let two = over_instances(&[shares(2)]).interval.expect("an interval");
        assert_eq!((two.low, two.high), (0.0, 1.0));
        // Four observations: .75 - 3.1824 * .2887 / 2 = .2906.
        let four = over_instances(&[shares(4)]).interval.expect("an interval");
        assert!((four.low - 0.2906).abs() < 5e-4, "{four:?}");

        assert!(over_instances(&[shares(1)]).interval.is_err());
    }

    #[test]
    fn the_interval_fits_the_data() {
        let one = over_instances(&tasks([vec![1.0, 0.0, 1.0, 1.0]]));
        assert_eq!((one.mean, one.method, one.n, one.tasks), (0.75, "Wilson", 4, 1));

        let repeated = over_instances(&tasks([vec![1.0, 0.5, 1.0, 0.0]]));
        assert_eq!(repeated.method, "t over instances");

        let several = over_instances(&tasks([vec![1.0, 0.0], vec![1.0]]));
        assert_eq!(several.method, "clustered by task");

        // All right: no variance, so the exact bound: 1 − .975 = low^40.
        let all = over_tasks(&tasks([vec![1.0; 20], vec![1.0; 20]]));
        assert_eq!(all.method, "Clopper-Pearson");
        assert!((all.interval.unwrap().low - 0.025_f64.powf(1.0 / 40.0)).abs() < 1e-9);
        assert!(over_instances(&[]).interval.is_err() && over_tasks(&[]).interval.is_err());
    }

    #[test]
    fn tasks_weigh_the_same_whatever_their_number_of_instances() {
        let tasks = tasks([vec![1.0; 9], vec![0.0]]);
        assert_eq!((over_instances(&tasks).mean, over_tasks(&tasks).mean), (0.9, 0.5));
    }
}
