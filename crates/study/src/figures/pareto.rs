//! Accuracy against latency (Figure 6).

use prime_page::chart::{Axis, Scale};
use prime_page::number::{count, figure, fixed};

use super::{Drawn, Figure, Panel, not_drawn};
use crate::plots::{Point, Scatter};
use crate::results::{Results, over_instances};
use crate::tables::mean_ms;

/// Times that differ by this factor stand on a logarithmic axis.
const LOG_FROM: f64 = 20.0;

/// The Pareto frontier, from left to right: the points for which no other one is faster and at
/// least as accurate, or as fast and more accurate.
fn frontier(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let is_beaten = |(x, y): (f64, f64)| {
        points.iter().any(|(other_x, other_y)| {
            *other_x <= x && *other_y >= y && (*other_x < x || *other_y > y)
        })
    };

    let mut best: Vec<_> = points.iter().copied().filter(|point| !is_beaten(*point)).collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    best
}

/// The unit of these times and its size in milliseconds, so that ticks have few digits.
fn unit(longest_ms: f64) -> (&'static str, f64) {
    match longest_ms {
        ms if ms >= 600_000.0 => ("min", 60_000.0),
        ms if ms >= 2_000.0 => ("s", 1_000.0),
        _ => ("ms", 1.0),
    }
}

/// Whole tens around the accuracies and their intervals, so that points stand apart.
fn tens(points: &[Point]) -> (f64, f64) {
    let ends = |point: &Point| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [low, high, point.y]
    };
    let all = || points.iter().flat_map(ends);
    let low = (all().fold(100.0, f64::min) / 10.0).floor() * 10.0;
    let high = (all().fold(0.0, f64::max) / 10.0).ceil() * 10.0;
    (low, if high > low { high } else { low + 10.0 })
}

pub(super) fn pareto(results: &Results<'_>) -> Vec<Drawn> {
    let means = || results.systems.iter().filter_map(mean_ms);
    let (unit, size) = unit(means().fold(0.0, f64::max));

    let point = |system: &crate::results::SystemResults<'_>| {
        let accuracy = over_instances(&system.values(|_, _| true));
        let interval =
            accuracy.interval.ok().map(|interval| (100.0 * interval.low, 100.0 * interval.high));
        let (x, y) = (mean_ms(system)? / size, 100.0 * accuracy.mean);
        let (shown, time, n) = (fixed(y, 1), figure(x), count(accuracy.n as u64));
        Some(Point {
            x,
            y,
            slot: system.slot,
            label: system.label.clone(),
            description: format!("{}: {shown} % of {n} instances, {time} {unit}", system.label),
            count: 1,
            interval,
            link: results.runs_of(system, None),
        })
    };

    let points: Vec<Point> = results.systems.iter().filter_map(point).collect();
    // One point makes no comparison.
    if points.len() < 2 {
        return Vec::new();
    }

    let title = "Accuracy against latency".to_owned();
    if points.iter().all(|point| (point.x, point.y) == (points[0].x, points[0].y)) {
        let reason = "all systems have the same accuracy and the same time";
        return vec![not_drawn(&title, reason)];
    }

    let x_name = format!("mean wall time of a run, {unit}");
    let fastest = points.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let slowest = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let x = if fastest > 0.0 && slowest / fastest >= LOG_FROM {
        let name = format!("{x_name} (logarithmic)");
        let range = (fastest / 1.3, slowest * 1.3);
        Axis { name, scale: Scale::Log, range, format: None }
    } else {
        Axis::linear(&x_name, (0.0, if slowest > 0.0 { 1.15 * slowest } else { 1.0 }))
    };

    let line = frontier(&points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>());
    let systems = results.systems.iter().filter(|system| mean_ms(system).is_some());
    let chart = Scatter {
        title: title.clone(),
        axes: (x, Axis::linear("accuracy, %", tens(&points))),
        // Where points are near, names beside them do not fit.
        series: systems.map(|system| (system.label.clone(), system.slot)).collect(),
        points,
        has_diagonal: false,
        line,
    };

    vec![Ok(Figure {
        id: "pareto".to_owned(),
        paper: "Figure 6",
        title,
        caption: "A point a system, over all its instances, with the 95 % interval of its accuracy. The line joins \
                  the systems that no other one beats in both (the Pareto front); it is no fit. Systems are \
                  comparable only where they were asked the same."
            .to_owned(),
        panels: Panel::only(chart.svg()),
        table: super::rows_of("pareto").to_owned(),
    })]
}

#[cfg(test)]
mod tests {
    use super::frontier;

    #[test]
    fn only_systems_that_nothing_beats_are_on_the_front() {
        let points = [(1.0, 20.0), (2.0, 50.0), (3.0, 40.0), (4.0, 90.0), (2.0, 45.0), (5.0, 90.0)];
        assert_eq!(frontier(&points), [(1.0, 20.0), (2.0, 50.0), (4.0, 90.0)]);
        assert!(frontier(&[]).is_empty());
    }
}
