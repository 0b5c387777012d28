//! Points over two axes.

use plotters::element::{PathElement, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};
use prime_page::palette::{INK, SOFT};

use super::canvas::{Area, Failure, aligned, axes, pixel, svg};
use super::marker::draw_marker;

/// A point of one series.
#[derive(Clone, Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Index of its series.
    pub series: usize,
    /// Text drawn beside it, if not empty.
    pub label: String,
    /// Interval of y.
    pub interval: Option<(f64, f64)>,
}

/// A scatter plot.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Labels of the axes, with units.
    pub x_axis: String,
    pub y_axis: String,
    /// Names of the series for the legend; may be empty.
    pub series: Vec<String>,
    pub points: Vec<Point>,
    pub x_range: (f64, f64),
    pub y_range: (f64, f64),
    /// True to draw y = x.
    pub has_diagonal: bool,
    /// A line through these points, such as a frontier.
    pub line: Vec<(f64, f64)>,
}

const HEIGHT: u32 = 420;
const Y_LABELS: u32 = 60;

impl Scatter {
    pub fn svg(&self) -> String {
        svg(&self.title, &self.series, HEIGHT, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let ((left, right), (low, high)) = (self.x_range, self.y_range);
        let chart =
            axes(area, left..right, low..high, (&self.x_axis, &self.y_axis), Y_LABELS, true)?;
        let at = |x: f64, y: f64| pixel(area, &chart, (x.clamp(left, right), y.clamp(low, high)));

        if self.has_diagonal {
            let ends = (left.max(low), right.min(high));
            let diagonal = vec![at(ends.0, ends.0), at(ends.1, ends.1)];
            area.draw(&PathElement::new(diagonal, SOFT.light.stroke_width(1)))?;
        }

        if self.line.len() > 1 {
            let line = self.line.iter().map(|(x, y)| at(*x, *y)).collect::<Vec<_>>();
            area.draw(&PathElement::new(line, SOFT.light.stroke_width(2)))?;
        }

        for point in &self.points {
            let (x, y) = at(point.x, point.y);
            if let Some((low, high)) = point.interval {
                let line = vec![at(point.x, low), at(point.x, high)];
                area.draw(&PathElement::new(line, INK.light.stroke_width(1)))?;
            }

            draw_marker(area, (x, y), point.series, false)?;
            if !point.label.is_empty() {
                let style = aligned(INK.light, HPos::Left, VPos::Bottom);
                area.draw(&Text::new(point.label.clone(), (x + 7, y - 3), style))?;
            }
        }
        Ok(())
    }
}
