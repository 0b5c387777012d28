//! Accuracy against latency (Figure 6).

use super::Figure;
use crate::plots::{Point, Scatter};
use crate::results::{Results, over_instances};
use crate::tables::mean_ms;

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

pub(super) fn pareto(results: &Results<'_>) -> Vec<Figure> {
    let point = |(index, system): (usize, &crate::results::SystemResults<'_>)| {
        let accuracy = over_instances(&system.values(|_, _| true));
        let interval =
            accuracy.interval.ok().map(|interval| (100.0 * interval.low, 100.0 * interval.high));

        let x = mean_ms(system)?;
        Some(Point {
            x,
            y: 100.0 * accuracy.mean,
            series: index,
            label: system.label.clone(),
            interval,
        })
    };

    let points: Vec<Point> = results.systems.iter().enumerate().filter_map(point).collect();
    // One point makes no comparison.
    if points.len() < 2 {
        return Vec::new();
    }

    let right = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let line = frontier(&points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>());
    let title = "Accuracy against latency".to_owned();

    let chart = Scatter {
        title: title.clone(),
        x_axis: "mean wall time of a run, ms".to_owned(),
        y_axis: "accuracy, %".to_owned(),
        series: Vec::new(),
        // Room for the labels at the right.
        x_range: (0.0, if right > 0.0 { 1.3 * right } else { 1.0 }),
        y_range: (0.0, 101.0),
        points,
        has_diagonal: false,
        line,
    };

    vec![Figure {
        id: "pareto".to_owned(),
        paper: "Figure 6",
        title,
        caption: "A point a system, over all its instances, with the 95 % interval of its accuracy. The line joins \
                  the systems that no other one beats in both (the Pareto front); it is no fit. Systems are \
                  comparable only where they were asked the same."
            .to_owned(),
        svg: chart.svg(),
        table: super::rows_of("pareto").to_owned(),
    }]
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
