//! Systems by the parameters of their models, and the laws through them (Tables 51 and 52, eq. 22,
//! 23, 50 and 51).

use super::summary::accuracy_cells;
use super::table::{Cell, Column, Table};
use crate::results::{Accuracy, Results, SystemResults, over_instances};
use crate::statistics::{
    Computed, LeftOut, Line, log2_law, mean, offset_power_law, pearson, power_law,
    standard_deviation,
};

/// Systems that differ only in size.
pub(crate) struct Series<'s, 'r> {
    /// The factors that they share.
    pub name: String,
    /// Parameters, systems and accuracies, by ascending parameters.
    pub sizes: Vec<(u64, &'s SystemResults<'r>, Accuracy)>,
}

/// Systems with known parameters, grouped by their factors.
pub(crate) fn series<'s, 'r>(results: &'s Results<'r>) -> Vec<Series<'s, 'r>> {
    let mut all: Vec<Series<'s, 'r>> = Vec::new();
    for system in &results.systems {
        let Some(parameters) = system.parameters else { continue };
        let accuracy = over_instances(&system.values(|_, _| true));
        if accuracy.n == 0 {
            continue;
        }

        let factors = system.factors.iter().map(|(name, value)| format!("{name}={value}"));
        let factors =
            factors.chain(Some(system.evidence.warning().to_owned()).filter(|it| !it.is_empty()));
        let name = factors.collect::<Vec<_>>().join(", ");
        let name = if name.is_empty() { "all systems".to_owned() } else { name };

        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.sizes.push((parameters, system, accuracy)),
            None => all.push(Series { name, sizes: vec![(parameters, system, accuracy)] }),
        }
    }

    all.iter_mut().for_each(|series| series.sizes.sort_by_key(|(parameters, ..)| *parameters));
    all
}

pub(super) fn scaling(results: &Results<'_>) -> Table {
    let mut rows = Vec::new();
    for series in series(results) {
        for (parameters, system, accuracy) in &series.sizes {
            let means: Vec<f64> =
                system.values(|_, _| true).iter().map(|task| mean(&task.values)).collect();

            let deviation = match means.len() {
                0 | 1 => Cell::LeftOut("a standard deviation needs two tasks".to_owned()),
                _ => Cell::percent(standard_deviation(&means)),
            };

            let mut row = vec![
                Cell::Text(series.name.clone()),
                Cell::Text(system.label.clone()),
                Cell::Count(*parameters),
                Cell::instances(accuracy.n, accuracy.inputs),
            ];

            row.extend(accuracy_cells(accuracy));
            row.push(deviation);
            rows.push(row);
        }
    }

    Table {
        id: "scaling".to_owned(),
        paper: "Tables 51 and 53",
        title: "Accuracy by model size".to_owned(),
        caption: "Accuracy over instances with its 95 % interval, and the standard deviation (SD) of the tasks' \
                  accuracies. A series is the systems that differ in their models only."
            .to_owned(),
        columns: vec![
            Column::text("series"),
            Column::text("system"),
            Column::number("parameters"),
            Column::number("n"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::number("SD over tasks, pp"),
        ],
        rows,
    }
}

fn law(series: &str, law: &str, fit: &Computed<Line>) -> Vec<Cell> {
    let of = |cell: fn(&Line) -> Cell| Cell::computed(fit.as_ref(), cell);
    vec![
        Cell::Text(series.to_owned()),
        Cell::Text(law.to_owned()),
        fit.as_ref().map_or(Cell::Empty, |fit| Cell::count(fit.n)),
        of(|fit| Cell::number(fit.slope, 4)),
        of(|fit| Cell::interval(fit.slope_interval, 4)),
        of(|fit| Cell::number(fit.intercept, 4)),
        of(|fit| Cell::number(fit.r_squared, 3)),
        Cell::Empty,
    ]
}

pub(super) fn scaling_laws(results: &Results<'_>) -> Table {
    let all: Vec<Series<'_, '_>> =
        series(results).into_iter().filter(|series| series.sizes.len() > 1).collect();

    let mut rows = Vec::new();

    for series in &all {
        let sizes: Vec<f64> =
            series.sizes.iter().map(|(parameters, ..)| *parameters as f64).collect();
        let accuracies: Vec<f64> =
            series.sizes.iter().map(|(.., accuracy)| accuracy.mean).collect();

        rows.push(law(&series.name, "a + b log2 N", &log2_law(&sizes, &accuracies)));
        rows.push(law(&series.name, "a N^b", &power_law(&sizes, &accuracies)));

        let offset = offset_power_law(&sizes, &accuracies);
        let of = |cell: fn(&crate::statistics::OffsetPower) -> Cell| {
            Cell::computed(offset.as_ref(), cell)
        };

        rows.push(vec![
            Cell::Text(series.name.clone()),
            Cell::Text("a N^b + c".to_owned()),
            offset.as_ref().map_or(Cell::Empty, |fit| Cell::count(fit.n)),
            of(|fit| Cell::number(fit.b, 4)),
            of(|fit| Cell::interval(fit.b_interval, 4)),
            of(|fit| Cell::number(fit.c, 4)),
            of(|fit| Cell::number(fit.r_squared, 3)),
            Cell::Empty,
        ]);

        let logs: Vec<f64> = sizes.iter().map(|size| size.ln()).collect();
        let correlation = pearson(&logs, &accuracies);
        rows.push(vec![
            Cell::Text(series.name.clone()),
            Cell::Text("Pearson's r with ln N".to_owned()),
            correlation.as_ref().map_or(Cell::Empty, |it| Cell::count(it.n)),
            Cell::computed(correlation.as_ref(), |it| Cell::number(it.r, 4)),
            Cell::computed(correlation.as_ref(), |it| Cell::interval(it.interval, 4)),
            Cell::Empty,
            Cell::Empty,
            Cell::computed(correlation.as_ref(), |it| Cell::P(it.p)),
        ]);
    }

    if let [first, others @ ..] = &all[..] {
        rows.extend(others.iter().map(|other| {
            law(
                &format!("{} → {}", first.name, other.name),
                "relative gain: a N^b",
                &relative_gain(first, other),
            )
        }));
    }

    Table {
        id: "scaling-laws".to_owned(),
        paper: "Table 52, eq. 21 to 23, 50 and 51",
        title: "Scaling laws".to_owned(),
        caption: "Accuracies (0 to 1) over the parameters N, by least squares: b is the gain by a doubling, or the \
                  exponent; the constant is a, of powers ln a, or c where there is an offset. 95 % intervals: Student's; \
                  Fisher's for r. Relative gain: (second − first)/first at the sizes that both series have. Other \
                  ranges of sizes may follow other laws."
            .to_owned(),
        columns: vec![
            Column::text("series"),
            Column::text("law"),
            Column::number("sizes"),
            Column::number("b or r"),
            Column::interval("95 %"),
            Column::number("constant"),
            Column::number("R²"),
            Column::number("p"),
        ],
        rows,
    }
}

fn relative_gain(first: &Series<'_, '_>, second: &Series<'_, '_>) -> Computed<Line> {
    let (mut sizes, mut gains) = (Vec::new(), Vec::new());
    for (parameters, _, left) in &first.sizes {
        let right = second.sizes.iter().find(|(other, ..)| other == parameters);
        let Some((.., right)) = right else { continue };
        // A gain over zero has no ratio.
        if left.mean <= 0.0 {
            return Err(LeftOut::NotPositive {
                what: "the first series' accuracy",
                value: left.mean,
            });
        }

        sizes.push(*parameters as f64);
        gains.push((right.mean - left.mean) / left.mean);
    }
    power_law(&sizes, &gains)
}
