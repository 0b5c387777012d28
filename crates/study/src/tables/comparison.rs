//! Pairs of systems over all tasks.

use super::table::{Cell, Column, Table};
use crate::results::{PairResults, Results};
use crate::statistics::{
    ALPHA, Computed, Interval, LeftOut, d_pooled, d_z, holm, least_detectable_difference, mcnemar,
    mean, paired_clustered, paired_t, tango, wilcoxon,
};

/// The p-values of several tests, adjusted by Holm. Tests that were left out stay left out and do
/// not count.
pub(super) fn adjusted(p: &[Computed<f64>]) -> Vec<Computed<f64>> {
    let made: Vec<f64> = p.iter().filter_map(|p| p.as_ref().ok().copied()).collect();

    let mut adjusted = holm(&made).into_iter();
    p.iter()
        .map(|p| {
            p.clone().map(|_| adjusted.next().expect("invariant: one for each test that was made"))
        })
        .collect()
}

/// `yes`, or `n.s.` for a difference that is not significant.
pub(super) fn significance(p: &Computed<f64>) -> Cell {
    Cell::computed(p.as_ref(), |p| Cell::Text(if *p < ALPHA { "yes" } else { "n.s." }.to_owned()))
}

/// McNemar's test on one task's instances.
pub(super) fn mcnemar_of(pair: &PairResults, task: usize, tests: usize) -> Computed<f64> {
    pair.testable()?;
    let task = &pair.tasks[task];
    if !task.is_counted {
        return Err(LeftOut::Repeated);
    }
    mcnemar(task.only_left, task.only_right, tests)
}

/// The test of a pair: Student's on tasks, or McNemar's if there is only one task.
pub(super) fn p_value(pair: &PairResults) -> Computed<f64> {
    pair.testable()?;
    if pair.tasks.len() == 1 {
        return mcnemar_of(pair, 0, 1);
    }

    let (left, right) = pair.task_means();
    paired_t(&left, &right).map(|test| test.p)
}

/// What each right system gains over its left one (Tables 2 and 43, section 4.4).
pub(super) fn comparison(results: &Results<'_>) -> Table {
    let tests = tests(&results.pairs);
    let rows = results.pairs.iter().zip(&tests).map(|(pair, (p, adjusted))| row(pair, p, adjusted));

    Table {
        id: "comparison".to_owned(),
        paper: "Tables 2 and 43, section 4.4",
        title: "Pairs of systems on the same instances".to_owned(),
        caption: "Gain of the second system over the first, in percentage points (pp). 95 % intervals of the \
                  difference: clustered by task, or Tango's if there is one task. Test: paired t over tasks, \
                  McNemar's exact test if there is one task; p adjusted by Holm over the pairs of this table; n.s.: \
                  not significant at 5 %. d_z over tasks has the interval of the noncentral t, d pooled Bonett's. \
                  Detectable: the least difference that McNemar's test on these pairs would find with a power of 80 \
                  %, at the observed discordance."
            .to_owned(),
        columns: vec![
            Column::text("pair"),
            Column::number("tasks"),
            Column::number("pairs"),
            Column::number("dropped"),
            Column::number("gain, pp"),
            Column::interval("95 %"),
            Column::number("ratio of means"),
            Column::number("mean of ratios"),
            Column::number("p"),
            Column::number("p, Holm"),
            Column::text("significant"),
            Column::number("p, Wilcoxon"),
            Column::number("d_z"),
            Column::interval("95 %, d_z"),
            Column::number("d pooled"),
            Column::interval("95 %, d pooled"),
            Column::number("detectable, pp"),
        ],
        rows: rows.collect(),
    }
}

/// The mean gain of the right system over all pairs, −1 to 1, and its 95 % interval: clustered by
/// task, or Tango's if there is one task.
pub(crate) fn gain(pair: &PairResults) -> (f64, Computed<Interval>) {
    let lefts: Vec<Vec<f64>> = pair.tasks.iter().map(|task| task.left.clone()).collect();
    let rights: Vec<Vec<f64>> = pair.tasks.iter().map(|task| task.right.clone()).collect();
    let over = |values: &[Vec<f64>]| values.iter().flatten().sum::<f64>() / pair.n().max(1) as f64;

    let interval = match &pair.tasks[..] {
        [task] if task.is_counted => tango(task.only_right, task.only_left, task.left.len() as u64),
        _ => paired_clustered(&lefts, &rights).map(|estimate| estimate.interval),
    };
    (over(&rights) - over(&lefts), interval)
}

/// The p-value of each pair's test, and the same adjusted by Holm over all of them.
pub(crate) fn tests(pairs: &[PairResults]) -> Vec<(Computed<f64>, Computed<f64>)> {
    let p: Vec<Computed<f64>> = pairs.iter().map(p_value).collect();
    let adjusted = adjusted(&p);
    p.into_iter().zip(adjusted).collect()
}

fn row(pair: &PairResults, p: &Computed<f64>, adjusted: &Computed<f64>) -> Vec<Cell> {
    let lefts: Vec<Vec<f64>> = pair.tasks.iter().map(|task| task.left.clone()).collect();
    let rights: Vec<Vec<f64>> = pair.tasks.iter().map(|task| task.right.clone()).collect();

    let (left, right) = pair.task_means();
    let (gain, interval) = gain(pair);

    let ratios = if left.iter().all(|left| *left > 0.0) && !left.is_empty() {
        Ok(mean(&left.iter().zip(&right).map(|(left, right)| right / left).collect::<Vec<_>>()))
    } else {
        Err("a task of which the first system solves nothing has no ratio")
    };

    let discordant = lefts
        .iter()
        .flatten()
        .zip(rights.iter().flatten())
        .filter(|(left, right)| left != right)
        .count();
    let discordance = discordant as f64 / pair.n().max(1) as f64;

    let tested = |test: Computed<f64>| pair.testable().and(test);
    let [d_z, d_pooled] = [d_z(&left, &right), d_pooled(&left, &right)];

    let effect_interval = |effect: &Computed<crate::statistics::Effect>| {
        Cell::computed(effect.as_ref(), |effect| match effect.interval {
            Some(interval) => Cell::interval(interval, 2),
            None => Cell::LeftOut("the effect is too large to invert the noncentral t".to_owned()),
        })
    };

    let [d_z_interval, d_pooled_interval] = [effect_interval(&d_z), effect_interval(&d_pooled)];

    vec![
        Cell::Text(pair.title()),
        Cell::count(pair.tasks.len()),
        Cell::count(pair.n()),
        Cell::count(pair.dropped),
        Cell::number(100.0 * gain, 1),
        Cell::percent_interval(&interval),
        Cell::number(mean(&right) / mean(&left), 2),
        Cell::computed(ratios, |ratio| Cell::number(ratio, 2)),
        Cell::computed(p.as_ref(), |p| Cell::P(*p)),
        Cell::computed(adjusted.as_ref(), |p| Cell::P(*p)),
        significance(adjusted),
        Cell::computed(tested(wilcoxon(&left, &right).map(|test| test.p)), Cell::P),
        Cell::computed(d_z, |effect| Cell::number(effect.d, 2)),
        d_z_interval,
        Cell::computed(d_pooled, |effect| Cell::number(effect.d, 2)),
        d_pooled_interval,
        Cell::computed(least_detectable_difference(pair.n(), discordance, 1), |d| {
            Cell::number(100.0 * d, 1)
        }),
    ]
}
