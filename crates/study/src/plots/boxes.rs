//! Box plots with all points.

use prime_page::chart::{
    Anchor, Area, Axis, Drawing, Frame, RADIUS, Stroke, WIDTH, legend, marker, width, wrap,
};
use prime_page::number::fixed;
use prime_page::palette::{INK, PAPER, series};

use super::{Series, legend_items};
use crate::statistics::FiveNumbers;

/// A name, and the named values of each series.
#[derive(Clone, Debug)]
pub struct BoxGroup {
    pub name: String,
    pub values: Vec<Vec<(&'static str, f64)>>,
}

/// Boxes of several groups, horizontal.
#[derive(Clone, Debug)]
pub struct BoxChart {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Name of the axis, with its unit.
    pub axis: String,
    pub series: Vec<Series>,
    pub groups: Vec<BoxGroup>,
    pub range: (f64, f64),
}

const LANE: f64 = 18.0;
const GAP: f64 = 8.0;
/// Largest marker, in pixels.
const RADIUS_MAX: f64 = 7.0;

impl BoxChart {
    pub fn svg(&self) -> String {
        let mut drawing = Drawing::default();
        let top = legend(&mut drawing, &legend_items(&self.series), WIDTH);

        let third = 0.36 * WIDTH;
        let names: Vec<_> = self.groups.iter().map(|it| wrap(&it.name, third, 2)).collect();
        let longest = names.iter().flatten().map(|line| width(line)).fold(0.0, f64::max);
        let lanes = self.series.len().max(1) as f64;
        let row = (lanes * LANE).max(28.0) + GAP;

        let plot = Area {
            left: longest + 16.0,
            top: top + 6.0,
            right: WIDTH - 22.0,
            bottom: top + 6.0 + row * self.groups.len().max(1) as f64,
        };
        let axis = Axis::linear(&self.axis, self.range);
        let frame = Frame::of_rows(&mut drawing, axis, self.groups.len(), plot, WIDTH);

        for (place, (group, name)) in self.groups.iter().zip(&names).enumerate() {
            let middle = plot.top + row * (place as f64 + 0.5);
            drawing.lines_of_text((plot.left - 8.0, middle), name, INK.light, Anchor::End);

            for (lane, (values, (system, slot))) in
                group.values.iter().zip(&self.series).enumerate()
            {
                let y = middle + (lane as f64 - (lanes - 1.0) / 2.0) * LANE;
                let numbers: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
                let numbers = FiveNumbers::of(&numbers);
                // Where all are the same, a box would be a line below its points.
                let numbers = numbers.filter(|it| it.whisker_low < it.whisker_high);
                if let Some(numbers) = numbers {
                    draw_box(&mut drawing, &frame, y, *slot, &numbers);
                }
                for (at, names) in at_same_value(values) {
                    // The area grows with the number of tasks.
                    let radius = (RADIUS * (names.len() as f64).powf(0.25)).min(RADIUS_MAX);
                    let names = names.join(", ");
                    let said = format!("{names}, {system}: {} %", fixed(at, 1));
                    drawing.mark(&said, |drawing| {
                        marker(drawing, (frame.at(at, f64::NAN).0, y), *slot, radius, true);
                    });
                }
            }
        }
        drawing.svg(&self.title, (WIDTH, frame.height()))
    }
}

/// Each value once, with the names that have it.
fn at_same_value(values: &[(&'static str, f64)]) -> Vec<(f64, Vec<&'static str>)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let groups = sorted.chunk_by(|a, b| a.1 == b.1);
    groups.map(|group| (group[0].1, group.iter().map(|(name, _)| *name).collect())).collect()
}

fn draw_box(drawing: &mut Drawing, frame: &Frame, y: f64, slot: usize, numbers: &FiveNumbers) {
    let x = |value: f64| frame.at(value, f64::NAN).0;
    let stroke = Stroke::new(series(slot), 1.0);

    let whiskers = [
        (numbers.whisker_low, numbers.quartile_low),
        (numbers.quartile_high, numbers.whisker_high),
    ];
    for (from, to) in whiskers {
        drawing.line(&[(x(from), y), (x(to), y)], stroke);
    }
    // Filled in the page's colour, so that the grid does not show through.
    let corners = [(x(numbers.quartile_low), y - 6.0), (x(numbers.quartile_high), y + 6.0)];
    drawing.rectangle(corners, Some((PAPER.light, 1.0)), Some(stroke));

    let median = [(x(numbers.median), y - 6.0), (x(numbers.median), y + 6.0)];
    drawing.line(&median, Stroke::new(series(slot), 3.0));
}
