//! A histogram.

use prime_page::chart::{Axis, Drawing, Frame, Stroke, WIDTH};
use prime_page::number::{count, trimmed};
use prime_page::palette::{PAPER, series};

/// Counts of values in bins of equal width.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Names of the axes, with units.
    pub x_axis: String,
    pub y_axis: String,
    pub values: Vec<f64>,
    pub bin_width: f64,
    /// Slot of the bars' colour.
    pub slot: usize,
}

const HEIGHT: f64 = 240.0;
/// Maximum number of bins: no useful chart has more.
const BINS_MAX: i64 = 400;

impl Histogram {
    /// Start of each bin and its count. A value on an edge belongs to the bin above.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "casts of floats saturate, and bins are limited"
    )]
    pub fn bins(&self) -> Vec<(f64, usize)> {
        // The slack keeps 15.000000000000002 and 14.999999999999998 in one bin.
        let bin = |value: &f64| (value / self.bin_width + 1e-9).floor() as i64;

        let Some(first) = self.values.iter().map(bin).min() else { return Vec::new() };
        let last = self.values.iter().map(bin).max().unwrap_or(first).min(first + BINS_MAX);

        let count = |wanted: i64| self.values.iter().filter(|value| bin(value) == wanted).count();
        (first..=last).map(|index| (index as f64 * self.bin_width, count(index))).collect()
    }

    /// The number of bins that hold a value.
    pub fn filled_bins(&self) -> usize {
        self.bins().iter().filter(|(_, count)| *count > 0).count()
    }

    pub fn svg(&self) -> String {
        let bins = self.bins();
        let start = bins.first().map_or(0.0, |(start, _)| *start);
        let end = bins.last().map_or(self.bin_width, |(start, _)| start + self.bin_width);
        let highest = bins.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;

        let mut drawing = Drawing::default();
        let y = Axis::linear(&self.y_axis, (0.0, highest * 1.05));
        let axes = (Axis::linear(&self.x_axis, (start, end)), y);
        let frame = Frame::new(&mut drawing, axes, (WIDTH, 0.0, HEIGHT));

        for (start, filled) in bins.into_iter().filter(|(_, count)| *count > 0) {
            let end = start + self.bin_width;
            let corners = [frame.at(start, filled as f64), frame.at(end, 0.0)];
            let said = format!(
                "{} to {}: {} {}",
                trimmed(start, 2),
                trimmed(end, 2),
                count(filled as u64),
                self.y_axis
            );
            drawing.mark(&said, |drawing| {
                let edge = Stroke::new(PAPER.light, 1.0);
                drawing.rectangle(corners, Some((series(self.slot), 1.0)), Some(edge));
            });
        }
        drawing.svg(&self.title, (WIDTH, frame.height()))
    }
}
