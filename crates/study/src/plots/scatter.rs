//! Points over two axes, with their names: beside them, or at the end of a line where others are
//! near.

use prime_page::chart::{
    Area, Axis, Distance, Drawing, Frame, Named, RADIUS, Stroke, WIDTH, legend, marker, place,
    reach,
};
use prime_page::palette::{SOFT, series};

use super::{Series, legend_items};

/// A point of one series.
#[derive(Clone, Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Slot of its colour and marker.
    pub slot: usize,
    /// Its name, drawn where there is room, if not empty.
    pub label: String,
    /// Everything that it stands for, shown on hover.
    pub description: String,
    /// Number of values at this place, by which its area grows.
    pub count: usize,
    /// Interval of y.
    pub interval: Option<(f64, f64)>,
    /// The address of what it was computed from.
    pub link: Option<String>,
}

/// A scatter plot.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// The axes, with their ranges.
    pub axes: (Axis, Axis),
    /// Names of the series for the legend; may be empty.
    pub series: Vec<Series>,
    pub points: Vec<Point>,
    /// True to draw y = x.
    pub has_diagonal: bool,
    /// A line through these points, such as a frontier.
    pub line: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 340.0;
/// Largest marker, in pixels.
const RADIUS_MAX: f64 = 13.0;

fn radius(point: &Point) -> f64 {
    (RADIUS * (point.count.max(1) as f64).powf(0.35)).min(RADIUS_MAX)
}

impl Scatter {
    pub fn svg(&self) -> String {
        let mut drawing = Drawing::default();
        let top = legend(&mut drawing, &legend_items(&self.series), WIDTH);
        let (x, y) = &self.axes;
        let frame = Frame::new(&mut drawing, (x.clone(), y.clone()), (WIDTH, top, HEIGHT));

        if self.has_diagonal {
            let ends = (x.range.0.max(y.range.0), x.range.1.min(y.range.1));
            let diagonal = [frame.at(ends.0, ends.0), frame.at(ends.1, ends.1)];
            drawing.line(&diagonal, Stroke::new(SOFT.light, 1.0));
        }
        let line: Vec<_> = self.line.iter().map(|(x, y)| frame.at(*x, *y)).collect();
        drawing.line(&line, Stroke::new(SOFT.light, 1.5));

        for point in &self.points {
            drawing.linked_mark(&point.description, point.link.as_deref(), |drawing| {
                if let Some((low, high)) = point.interval {
                    let ends = [frame.at(point.x, low), frame.at(point.x, high)];
                    drawing.line(&ends, Stroke::new(series(point.slot), 1.0));
                }
                let at = frame.at(point.x, point.y);
                marker(drawing, at, point.slot, radius(point), false);
            });
        }
        self.draw_names(&mut drawing, &frame);
        drawing.svg(&self.title, (WIDTH, frame.height()))
    }

    fn draw_names(&self, drawing: &mut Drawing, frame: &Frame) {
        let named = |point: &Point| Named {
            at: frame.at(point.x, point.y),
            reach: reach(radius(point)),
            name: point.label.clone(),
        };
        let points: Vec<_> = self.points.iter().map(named).collect();

        // Names keep clear of intervals and of the line, too.
        let interval = |point: &Point| {
            let (low, high) = point.interval?;
            let ((left, bottom), (_, top)) = (frame.at(point.x, low), frame.at(point.x, high));
            Some(Area { left: left - 2.0, top, right: left + 2.0, bottom })
        };
        let line: Vec<_> = self.line.iter().map(|(x, y)| frame.at(*x, *y)).collect();
        let obstacles: Vec<_> =
            self.points.iter().filter_map(interval).chain(Area::along(&line)).collect();

        let bounds = Area { right: WIDTH - 2.0, ..frame.plot };
        for (point, placed) in
            points.iter().zip(place(&points, Distance::Apart, &obstacles, bounds))
        {
            if let Some(placed) = placed {
                placed.draw(drawing, &point.name);
            }
        }
    }
}
