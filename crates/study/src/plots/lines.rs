//! Lines over a numeric axis with a marker at each point.

use plotters::element::PathElement;
use plotters::style::Color as _;
use prime_page::palette::series;

use super::canvas::{Area, Failure, axes, pixel, svg};
use super::marker::draw_marker;

/// A point with its interval.
#[derive(Clone, Copy, Debug)]
pub struct LinePoint {
    pub x: f64,
    pub y: f64,
    pub interval: Option<(f64, f64)>,
}

/// A line for each series.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Labels of the axes, with units.
    pub x_axis: String,
    pub y_axis: String,
    /// Names and points, from left to right.
    pub series: Vec<(String, Vec<LinePoint>)>,
    /// Smallest range of y.
    pub y_range: (f64, f64),
    /// True to leave out markers and intervals, for many points.
    pub is_dense: bool,
}

const HEIGHT: u32 = 360;
const Y_LABELS: u32 = 60;

impl LineChart {
    pub fn svg(&self) -> String {
        let names: Vec<String> = self.series.iter().map(|(name, _)| name.clone()).collect();
        svg(&self.title, &names, HEIGHT, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let reach = |pick: fn(f64, f64) -> f64| points().map(|point| point.x).reduce(pick);
        let (left, right) = (reach(f64::min).unwrap_or(0.0), reach(f64::max).unwrap_or(1.0));
        // A single point gets room on both sides.
        let margin = if right > left { 0.03 * (right - left) } else { 1.0 };

        let high = points().map(|point| point.y).fold(self.y_range.1, f64::max);
        let low = points().map(|point| point.y).fold(self.y_range.0, f64::min);
        let high = if high > low { high } else { low + 1.0 };

        let x = left - margin..right + margin;
        let chart = axes(
            area,
            x,
            low..high + 0.02 * (high - low),
            (&self.x_axis, &self.y_axis),
            Y_LABELS,
            true,
        )?;

        let at = |x: f64, y: f64| pixel(area, &chart, (x, y.clamp(low, high)));

        for (index, (_, points)) in self.series.iter().enumerate() {
            let line: Vec<_> = points.iter().map(|point| at(point.x, point.y)).collect();
            area.draw(&PathElement::new(
                line,
                series(index).stroke_width(if self.is_dense { 1 } else { 2 }),
            ))?;

            for point in points.iter().filter(|_| !self.is_dense) {
                if let Some((low, high)) = point.interval {
                    let line = vec![at(point.x, low), at(point.x, high)];
                    area.draw(&PathElement::new(line, series(index).stroke_width(1)))?;
                }
                draw_marker(area, at(point.x, point.y), index, false)?;
            }
        }
        Ok(())
    }
}
