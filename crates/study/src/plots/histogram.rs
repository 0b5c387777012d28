//! A histogram.

use plotters::element::Rectangle;
use plotters::style::Color as _;
use prime_page::palette::{PAPER, series};

use super::canvas::{Area, Failure, axes, pixel, svg};

/// Counts of values in bins of equal width.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Labels of the axes, with units.
    pub x_axis: String,
    pub y_axis: String,
    pub values: Vec<f64>,
    pub bin_width: f64,
}

const HEIGHT: u32 = 320;
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

    pub fn svg(&self) -> String {
        svg(&self.title, &[], HEIGHT, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let bins = self.bins();
        let start = bins.first().map_or(0.0, |(start, _)| *start);
        let end = bins.last().map_or(self.bin_width, |(start, _)| start + self.bin_width);
        let highest = bins.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;

        let chart =
            axes(area, start..end, 0.0..highest * 1.05, (&self.x_axis, &self.y_axis), 50, true)?;

        for (start, count) in bins.into_iter().filter(|(_, count)| *count > 0) {
            let at = |x, y| pixel(area, &chart, (x, y));
            let corners = [at(start, count as f64), at(start + self.bin_width, 0.0)];
            area.draw(&Rectangle::new(corners, series(1).filled()))?;
            area.draw(&Rectangle::new(corners, PAPER.light.stroke_width(1)))?;
        }
        Ok(())
    }
}
