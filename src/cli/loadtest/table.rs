//! A report as text.

use comfy_table::{Cell, CellAlignment, Table, presets};

use crate::loadtest::report::{Latency, Point, Report};

fn percentiles(latency: &Latency) -> [f64; 5] {
    [latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.max_us]
}

fn row(table: &mut Table, head: String, figures: impl Iterator<Item = String>) {
    let cells = figures.map(|figure| Cell::new(figure).set_alignment(CellAlignment::Right));
    table.add_row(std::iter::once(Cell::new(head)).chain(cells));
}

fn legs(point: &Point) -> Option<String> {
    if point.legs.is_empty() {
        return None;
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let head = format!("part of a step, {} trajectories", point.trajectories);
    table.set_header([head.as_str(), "mean µs", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"]);
    for leg in &point.legs {
        let figures = std::iter::once(leg.latency.mean_us).chain(percentiles(&leg.latency));
        row(&mut table, leg.name.clone(), figures.map(|figure| format!("{figure:.2}")));
    }
    Some(table.to_string())
}

/// The figures, then what must be known of them.
pub fn text(report: &Report) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "trajectories",
        "steps/s",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "CPU µs/step",
        "allocations/step",
        "bytes/step",
        "bytes/trajectory",
    ]);
    let or_none = |figure: Option<f64>, digits: usize| {
        figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.digits$}"))
    };
    for point in &report.points {
        let latency = percentiles(&point.latency).map(|figure| format!("{figure:.2}"));
        let spent = [
            or_none(point.cpu_us_per_step, 2),
            or_none(point.allocations_per_step, 2),
            or_none(point.allocated_bytes_per_step, 0),
            or_none(point.bytes_per_trajectory, 0),
        ];
        let figures = std::iter::once(format!("{:.0}", point.steps_per_second)).chain(latency).chain(spent);
        row(&mut table, point.trajectories.to_string(), figures);
    }
    let from = match report.load.rate {
        Some(_) => "latency is from the moment at which a step was due to its decision",
        None => "latency is from one decision of a trajectory to its next",
    };
    let parts = std::iter::once(table.to_string()).chain(report.points.iter().filter_map(legs));
    let parts = parts.chain(std::iter::once(from.to_owned())).chain(report.remarks.iter().cloned());
    parts.collect::<Vec<_>>().join("\n") + "\n"
}
