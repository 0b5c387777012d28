//! A plot of lines over two axes.

use super::scale::Scale;
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 330.0;
/// Between the drawing's edge and the axes.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 26.0;
const BOTTOM: f64 = 50.0;
/// Of the axes' upper end; the rows of the legend come on top of it.
const TOP: f64 = 14.0;
const LEGEND_ROW: f64 = 18.0;
/// Of a letter, about; and of a sample of a line before a name.
const LETTER: f64 = 7.0;
const SAMPLE: f64 = 22.0;
/// Colours that the style sheet has.
pub const COLOURS: usize = 6;

/// An axis of a plot.
pub struct Axis {
    /// With its unit.
    pub label: &'static str,
    pub scale: Scale,
    /// What stands at a mark.
    pub mark: fn(f64) -> String,
}

/// A line.
pub struct Series {
    pub name: String,
    /// Below [`COLOURS`].
    pub colour: usize,
    pub is_dashed: bool,
    /// Every point has a dot.
    pub has_dots: bool,
    pub points: Vec<(f64, f64)>,
}

/// A plot.
pub struct Lines {
    pub title: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// What is written at the points of a line that is not dashed.
    pub value: Option<fn(f64) -> String>,
}

/// Where the items of a legend stand: row, and place in it.
fn legend(series: &[Series]) -> Vec<(usize, f64)> {
    let (mut row, mut x) = (0, LEFT);
    let mut places = Vec::with_capacity(series.len());
    for item in series {
        let width = SAMPLE + 6.0 + item.name.chars().count() as f64 * LETTER + 12.0;
        if x > LEFT && x + width > WIDTH - RIGHT + 12.0 {
            (row, x) = (row + 1, LEFT);
        }
        places.push((row, x));
        x += width;
    }
    places
}

impl Series {
    fn class(&self) -> String {
        format!("line c{}{}", self.colour % COLOURS, if self.is_dashed { " dashed" } else { "" })
    }
}

impl Lines {
    pub fn svg(&self) -> String {
        let places = legend(&self.series);
        let rows = places.last().map_or(0, |(row, _)| row + 1);
        let top = TOP + rows as f64 * LEGEND_ROW;
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM + rows as f64 * LEGEND_ROW);
        let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
        let at_x = |value| self.x.scale.place(value).map(|place| LEFT + place * (right - LEFT));
        let at_y = |value| self.y.scale.place(value).map(|place| bottom - place * (bottom - top));

        for (series, (row, x)) in self.series.iter().zip(&places) {
            let y = TOP + *row as f64 * LEGEND_ROW;
            svg.line((*x, y - 4.0), (x + SAMPLE, y - 4.0), &series.class());
            svg.text((x + SAMPLE + 6.0, y), Anchor::Start, "legend", &series.name);
        }
        for mark in self.y.scale.marks() {
            if let Some(y) = at_y(mark) {
                svg.line((LEFT, y), (right, y), "grid");
                svg.text((LEFT - 7.0, y + 4.0), Anchor::End, "mark", &(self.y.mark)(mark));
            }
        }
        for mark in self.x.scale.marks() {
            if let Some(x) = at_x(mark) {
                svg.line((x, top), (x, bottom), "grid");
                svg.text((x, bottom + 17.0), Anchor::Middle, "mark", &(self.x.mark)(mark));
            }
        }
        svg.line((LEFT, bottom), (right, bottom), "axis");
        svg.line((LEFT, top), (LEFT, bottom), "axis");
        svg.text((f64::midpoint(LEFT, right), bottom + 39.0), Anchor::Middle, "label", self.x.label);
        svg.upwards((14.0, f64::midpoint(top, bottom)), "label", self.y.label);

        for series in &self.series {
            let points = series.points.iter().filter_map(|(x, y)| Some(((at_x(*x)?, at_y(*y)?), (*x, *y))));
            let points: Vec<_> = points.collect();
            let places: Vec<_> = points.iter().map(|(place, _)| *place).collect();
            if places.len() > 1 {
                svg.polyline(&places, &series.class());
            }
            if !series.has_dots && places.len() > 1 {
                continue;
            }
            for ((x, y), value) in points {
                let title = format!("{}: {} at {}", series.name, (self.y.mark)(value.1), (self.x.mark)(value.0));
                svg.dot((x, y), &format!("dot c{}", series.colour % COLOURS), &title);
                if let Some(text) = self.value.filter(|_| !series.is_dashed) {
                    // Those near an edge would be cut off, or stand on the axis.
                    let anchor = match x {
                        _ if x > right - 20.0 => Anchor::End,
                        _ if x < LEFT + 20.0 => Anchor::Start,
                        _ => Anchor::Middle,
                    };
                    let is_first = x < LEFT + 20.0;
                    let place = if is_first || y - top < 20.0 { y + 16.0 } else { y - 8.0 };
                    svg.text((if is_first { x + 6.0 } else { x }, place), anchor, "value", &text(value.1));
                }
            }
        }
        svg.finish(self.title)
    }
}
