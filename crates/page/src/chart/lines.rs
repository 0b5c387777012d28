//! Lines over a numeric axis with a marker at each point.

use super::WIDTH;
use super::axes::{Axis, Frame, Scale};
use super::drawing::{Drawing, Stroke};
use super::labels::{Area, Distance, Named, place};
use super::legend::{LegendItem, legend};
use super::marker::{RADIUS, marker, reach};
use crate::number::trimmed;
use crate::palette::series;

/// A point with its interval.
#[derive(Clone, Copy, Debug)]
pub struct LinePoint {
    /// The value on the x axis.
    pub x: f64,
    /// The value on the y axis.
    pub y: f64,
    /// An interval of y.
    pub interval: Option<(f64, f64)>,
}

/// A series.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The slot of its colour and marker.
    pub slot: usize,
    /// True for a dashed line, without markers.
    pub is_dashed: bool,
    /// True to mark each point; a single point is always marked.
    pub has_markers: bool,
    /// Its points, from left to right.
    pub points: Vec<LinePoint>,
}

/// A line for each series.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// The x axis; its range is widened to the points.
    pub x: Axis,
    /// The y axis; its range is widened to the points and their intervals.
    pub y: Axis,
    /// The series.
    pub series: Vec<Line>,
    /// Writes the value at each point of lines that are not dashed.
    pub value: Option<fn(f64) -> String>,
}

const HEIGHT: f64 = 280.0;
/// Values beyond this are not drawn.
const VALUE_MAX: f64 = 1e15;

/// The range, widened to values. A single value of a logarithmic axis stands in the middle of two
/// decades; one of a linear axis gets room on both sides.
fn widened(axis: &Axis, values: impl Iterator<Item = f64>, margin: f64) -> (f64, f64) {
    let (mut low, mut high) = axis.range;
    let is_empty = low >= high;
    if is_empty {
        (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
    }
    for value in values {
        (low, high) = (low.min(value), high.max(value));
    }
    if !(low.is_finite() && high.is_finite()) {
        return (1.0, 10.0);
    }
    match axis.scale {
        Scale::Log if low == high => (low / 10.0, high * 10.0),
        Scale::Log => ((low / 1.15).max(f64::MIN_POSITIVE), high * 1.15),
        Scale::Linear if low == high => (low - 1.0, high + 1.0),
        Scale::Linear => {
            // An end that the caller gave stays where nothing goes beyond it.
            let room = margin * (high - low);
            let has_low = !is_empty && low == axis.range.0;
            let has_high = !is_empty && high == axis.range.1;
            (if has_low { low } else { low - room }, if has_high { high } else { high + room })
        }
    }
}

impl LineChart {
    fn is_drawable(&self, point: &LinePoint) -> bool {
        let fits = |axis: &Axis, value: f64| match axis.scale {
            Scale::Log => (f64::MIN_POSITIVE..=VALUE_MAX).contains(&value),
            Scale::Linear => value.abs() <= VALUE_MAX,
        };
        fits(&self.x, point.x) && fits(&self.y, point.y)
    }

    /// Draws the chart.
    pub fn svg(&self) -> String {
        let series: Vec<(&Line, Vec<LinePoint>)> = self
            .series
            .iter()
            .map(|line| {
                let points = line.points.iter().filter(|point| self.is_drawable(point));
                (line, points.copied().collect())
            })
            .collect();

        let points = || series.iter().flat_map(|(_, points)| points);
        let ends = |point: &LinePoint| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            let is_log = self.y.scale == Scale::Log;
            [point.y, low, high].into_iter().filter(move |y| y.is_finite() && (!is_log || *y > 0.0))
        };
        let x_range = widened(&self.x, points().map(|point| point.x), 0.04);
        let y_range = widened(&self.y, points().flat_map(ends), 0.06);

        let mut drawing = Drawing::default();
        let item = |line: &Line| LegendItem {
            name: line.name.clone(),
            slot: line.slot,
            is_dashed: line.is_dashed,
        };
        // One line needs no legend: the heading names it.
        let items: Vec<_> =
            if series.len() > 1 { self.series.iter().map(item).collect() } else { Vec::new() };
        let top = legend(&mut drawing, &items, WIDTH);

        let (x, y) = (self.x.clone(), self.y.clone());
        let axes = (Axis { range: x_range, ..x }, Axis { range: y_range, ..y });
        let frame = Frame::new(&mut drawing, axes, (WIDTH, top, HEIGHT));

        for (line, points) in &series {
            self.draw_line(&mut drawing, &frame, line, points);
        }
        if let Some(format) = self.value {
            write_values(&mut drawing, &frame, &series, format);
        }
        drawing.svg(&self.title, (WIDTH, frame.height()))
    }

    fn draw_line(&self, drawing: &mut Drawing, frame: &Frame, line: &Line, points: &[LinePoint]) {
        let colour = series(line.slot);
        let at: Vec<_> = points.iter().map(|point| frame.at(point.x, point.y)).collect();
        let width = if line.is_dashed || !line.has_markers { 1.5 } else { 2.0 };
        drawing.line(&at, Stroke { colour, width, is_dashed: line.is_dashed });

        if !line.has_markers && points.len() != 1 {
            return;
        }
        for point in points {
            drawing.mark(&self.description(line, point), |drawing| {
                if let Some((low, high)) = point.interval {
                    let ends = [frame.at(point.x, low), frame.at(point.x, high)];
                    drawing.line(&ends, Stroke::new(colour, 1.0));
                }
                marker(drawing, frame.at(point.x, point.y), line.slot, RADIUS, false);
            });
        }
    }

    /// What a point says: its series, and its values with the names of their axes.
    fn description(&self, line: &Line, point: &LinePoint) -> String {
        let value = |axis: &Axis, value: f64| {
            axis.format.map_or_else(|| trimmed(value, 4), |format| format(value))
        };
        let interval = point.interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", trimmed(low, 1), trimmed(high, 1))
        });
        let decimals = if point.y.abs() >= 1.0 { 1 } else { 4 };
        format!(
            "{}; {}: {}; {}: {}{interval}",
            line.name,
            self.x.name,
            value(&self.x, point.x),
            self.y.name,
            trimmed(point.y, decimals),
        )
    }
}

/// Writes values beside their points, where there is room.
fn write_values(
    drawing: &mut Drawing,
    frame: &Frame,
    lines: &[(&Line, Vec<LinePoint>)],
    format: fn(f64) -> String,
) {
    let mut obstacles = Vec::new();
    for (_, points) in lines {
        let at: Vec<_> = points.iter().map(|point| frame.at(point.x, point.y)).collect();
        obstacles.extend(Area::along(&at));
        for (point, (low, high)) in points.iter().filter_map(|it| Some((it, it.interval?))) {
            obstacles.extend(Area::along(&[frame.at(point.x, low), frame.at(point.x, high)]));
        }
    }
    let points = lines.iter().filter(|(line, _)| !line.is_dashed).flat_map(|(_, points)| points);
    let values: Vec<_> = points
        .map(|point| {
            let at = frame.at(point.x, point.y);
            Named { at, reach: reach(RADIUS), name: format(point.y) }
        })
        .collect();
    let bounds = Area { right: WIDTH - 2.0, ..frame.plot };
    let places = place(&values, Distance::Beside, &obstacles, bounds);
    for (value, placed) in values.iter().zip(places) {
        if let Some(placed) = placed {
            placed.draw(drawing, &value.name);
        }
    }
}
