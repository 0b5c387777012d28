//! Accuracies by the size of instances (Figures 5, 8 and 10).

use std::collections::BTreeSet;

use prime_page::chart::{Axis, Line, LineChart, LinePoint};

use super::{Drawn, Figure, Panel, SYSTEMS_MAX, not_drawn, rows_of, same_everywhere};
use crate::plots::{HeatMap, Radar};
use crate::results::{Accuracy, Results};
use crate::tables::{BySize, by_size, consistency};

/// Groups by task; each group is a figure.
fn tasks<'a, 's, 'r>(all: &'a [BySize<'s, 'r>]) -> Vec<&'a [BySize<'s, 'r>]> {
    all.chunk_by(|a, b| a.task == b.task).collect()
}

pub(super) fn points(accuracy: &Accuracy, x: f64) -> LinePoint {
    let interval = accuracy
        .interval
        .as_ref()
        .ok()
        .map(|interval| (100.0 * interval.low, 100.0 * interval.high));
    LinePoint { x, y: 100.0 * accuracy.mean, interval }
}

/// Why a figure of these systems' sizes would show nothing.
fn same_at_all_sizes(systems: &[BySize<'_, '_>]) -> Option<String> {
    let sizes = || systems.iter().flat_map(|it| &it.sizes);
    same_everywhere(sizes().map(|(_, accuracy)| 100.0 * accuracy.mean))
}

pub(super) fn lines(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |systems: &[BySize<'_, '_>]| {
        let task = systems[0].task;
        let title = format!("Accuracy by size: {task}");

        let series = systems.iter().take(SYSTEMS_MAX).map(|it| {
            let points = it.sizes.iter().map(|(size, accuracy)| points(accuracy, *size as f64));
            Line {
                name: it.system.label.clone(),
                slot: it.system.slot,
                is_dashed: false,
                has_markers: true,
                points: points.collect(),
            }
        });
        if let Some(reason) = same_at_all_sizes(systems) {
            return not_drawn(&title, &reason);
        }

        let chart = LineChart {
            title: title.clone(),
            x: Axis::linear("size", (0.0, 0.0)),
            y: Axis::linear("accuracy, %", (0.0, 100.0)),
            series: series.collect(),
            value: None,
        };

        Ok(Figure {
            id: format!("sizes-{task}"),
            paper: "Figure 5",
            title,
            caption: "Accuracy over the instances of each size, with Wilson's 95 % interval."
                .to_owned(),
            panels: Panel::only(chart.svg()),
            table: rows_of("sizes").to_owned(),
        })
    };
    tasks(&by_size(results)).into_iter().map(figure).collect()
}

pub(super) fn heat_maps(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |systems: &[BySize<'_, '_>]| {
        let task = systems[0].task;
        let title = format!("Heat map of sizes: {task}");
        let sizes: BTreeSet<u64> =
            systems.iter().flat_map(|it| it.sizes.iter().map(|(size, _)| *size)).collect();

        let value = |it: &BySize<'_, '_>, size: u64| {
            it.sizes
                .iter()
                .find(|(other, _)| *other == size)
                .map(|(_, accuracy)| 100.0 * accuracy.mean)
        };

        let row = |it: &BySize<'_, '_>| {
            (it.system.label.clone(), sizes.iter().map(|size| value(it, *size)).collect::<Vec<_>>())
        };

        if let Some(reason) = same_at_all_sizes(systems) {
            return not_drawn(&title, &reason);
        }
        let chart = HeatMap {
            title: title.clone(),
            axis: "size".to_owned(),
            columns: sizes.iter().map(u64::to_string).collect(),
            rows: systems.iter().map(row).collect(),
        };

        Ok(Figure {
            id: format!("heat-map-{task}"),
            paper: "Figure 10",
            title,
            caption: "Accuracy in per cent of each system at each size; darker is more accurate. Intervals are in the \
                      table."
                .to_owned(),
            panels: Panel::only(chart.svg()),
            table: rows_of("heat-map").to_owned(),
        })
    };
    tasks(&by_size(results)).into_iter().map(figure).collect()
}

/// Overall accuracy, accuracy at the smallest, a middle and the largest size, and how even it is.
pub(super) fn profiles(results: &Results<'_>) -> Vec<Drawn> {
    let figure = |systems: &[BySize<'_, '_>]| {
        let task = systems[0].task;
        // The axes are the sizes of the system that was asked the most sizes.
        let widest = systems.iter().map(|it| &it.sizes).max_by_key(|sizes| sizes.len())?;

        let [(first, _), .., (last, _)] = &widest[..] else { return None };
        let middle = widest[widest.len() / 2].0;
        let axes = [*first, middle, *last];

        let series = |it: &BySize<'_, '_>| {
            let n: usize = it.sizes.iter().map(|(_, accuracy)| accuracy.n).sum();
            let right: f64 =
                it.sizes.iter().map(|(_, accuracy)| accuracy.mean * accuracy.n as f64).sum();

            let at = |size: u64| {
                it.sizes.iter().find(|(other, _)| *other == size).map(|(_, it)| 100.0 * it.mean)
            };

            let mut values = vec![Some(100.0 * right / n as f64)];
            values.extend(axes.map(at));
            values.push(consistency(&it.sizes).map(|share| 100.0 * share));
            ((it.system.label.clone(), it.system.slot), values)
        };

        let title = format!("Profile: {task}");
        if let Some(reason) = same_at_all_sizes(systems) {
            return Some(not_drawn(&title, &reason));
        }
        let chart = Radar {
            title: title.clone(),
            axes: [
                vec!["accuracy".to_owned()],
                axes.map(|size| format!("size {size}")).into(),
                vec!["consistency".to_owned()],
            ]
            .concat(),
            series: systems.iter().take(SYSTEMS_MAX).map(series).collect(),
        };

        Some(Ok(Figure {
            id: format!("profile-{task}"),
            paper: "Figure 8",
            title,
            caption: "Accuracy in per cent over all sizes and at three of them, and consistency: 1 − SD/mean of the \
                      sizes' accuracies, in per cent."
                .to_owned(),
            panels: Panel::only(chart.svg()),
            table: rows_of("profile").to_owned(),
        }))
    };
    tasks(&by_size(results)).into_iter().filter_map(figure).collect()
}
