//! The tables of a report as cells of text, without layout.

use super::comparison::Comparison;
use super::number_format::{NONE, change, count, figure, optional};
use super::report::{Latency, Point, Report};

/// A table. Every row has as many cells as the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Leading columns that hold names rather than numbers.
    pub names: usize,
}

/// A column, omitted if no point has a value for it.
struct Column {
    header: &'static str,
    cell: fn(&Point) -> Option<String>,
}

/// The columns after the count of trajectories.
const COLUMNS: [Column; 14] = [
    Column { header: "steps/s", cell: |point| Some(figure(point.steps_per_second)) },
    Column { header: "due/s", cell: |point| point.rate.map(|rate| figure(rate.due)) },
    Column { header: "reached/s", cell: |point| point.rate.map(|rate| figure(rate.reached)) },
    Column { header: "behind", cell: |point| point.rate.map(|rate| count(rate.behind)) },
    Column { header: "p50 µs", cell: |point| Some(figure(point.latency.p50_us)) },
    Column { header: "p90 µs", cell: |point| Some(figure(point.latency.p90_us)) },
    Column { header: "p99 µs", cell: |point| Some(figure(point.latency.p99_us)) },
    Column { header: "p99.9 µs", cell: |point| Some(figure(point.latency.p999_us)) },
    Column { header: "max µs", cell: |point| Some(figure(point.latency.max_us)) },
    Column { header: "CPU µs/step", cell: |point| point.cpu_us_per_step.map(figure) },
    Column { header: "allocations/step", cell: |point| point.allocations_per_step.map(figure) },
    Column { header: "bytes/step", cell: |point| point.allocated_bytes_per_step.map(figure) },
    Column { header: "bytes/trajectory", cell: |point| point.bytes_per_trajectory.map(figure) },
    Column {
        header: "coordination %",
        cell: |point| point.coordination_share.map(|share| figure(share * 100.0)),
    },
];

/// One row per count of trajectories.
pub fn points(report: &Report) -> Cells {
    let mut header = vec!["trajectories".to_owned()];
    let mut rows: Vec<_> =
        report.points.iter().map(|point| vec![count(point.trajectories.into())]).collect();

    // Unlike the other columns, this one has a value for every point: it is omitted if all are 0.
    let failures = Column { header: "failures", cell: |point| Some(count(point.failures)) };
    let has_failures = report.points.iter().any(|point| point.failures > 0);

    for Column { header: name, cell } in COLUMNS.iter().chain(has_failures.then_some(&failures)) {
        let cells: Vec<_> = report.points.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            header.push((*name).to_owned());
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell.unwrap_or_else(|| NONE.to_owned()));
            }
        }
    }

    Cells { header, rows, names: 0 }
}

/// One row per stage of each point; `None` if stages were not timed.
pub fn stages(report: &Report) -> Option<Cells> {
    let percentiles = ["mean µs", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"];
    let header =
        ["stage", "of", "trajectories"].into_iter().chain(percentiles).map(str::to_owned).collect();

    let mut rows = Vec::new();
    for point in &report.points {
        for stage in &point.stages {
            let Latency { mean_us, p50_us, p90_us, p99_us, p999_us, max_us } = stage.latency;
            let of = if stage.is_work { "agents" } else { "coordination" };
            let mut row = vec![stage.name.clone(), of.to_owned(), count(point.trajectories.into())];
            row.extend([mean_us, p50_us, p90_us, p99_us, p999_us, max_us].map(figure));
            rows.push(row);
        }
    }

    (!rows.is_empty()).then_some(Cells { header, rows, names: 2 })
}

/// One row per metric of each point.
pub fn comparison(comparison: &Comparison) -> Cells {
    let header =
        ["metric", "trajectories", "baseline", "now", "change %", ""].map(str::to_owned).into();
    let rows = comparison.rows.iter().map(|row| {
        vec![
            row.metric.name().to_owned(),
            count(row.trajectories.into()),
            optional(Some(row.baseline)),
            optional(Some(row.now)),
            change(row.change_percent),
            row.change.name().to_owned(),
        ]
    });
    Cells { header, rows: rows.collect(), names: 1 }
}
