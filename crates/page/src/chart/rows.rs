//! Horizontal bars or points with intervals, one row for each name: bars of categories, forest
//! plots, gains, stages.

use super::axes::{Axis, Frame};
use super::drawing::{Anchor, Drawing, Stroke};
use super::labels::Area;
use super::legend::{LegendItem, legend};
use super::marker::{RADIUS, marker};
use super::text::{LINE_HEIGHT, width, wrap};
use crate::number::trimmed;
use crate::palette::{INK, PAPER, Rgb, SOFT, series};

/// A value with its interval.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// True if it is drawn hollow, which means not significant.
    pub is_hollow: bool,
    /// A former value, drawn as an outline around the bar.
    pub outline: Option<f64>,
    /// The colour in place of that of its slot.
    pub colour: Option<Rgb>,
    /// The address of what it was computed from.
    pub link: Option<String>,
}

/// A row, with a value for each series that has one.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name, written at the left.
    pub name: String,
    /// A value for each series.
    pub values: Vec<Option<Measured>>,
    /// The slot of its colour, where the chart has one series and each row is a system.
    pub slot: Option<usize>,
}

/// Rows of values with intervals.
#[derive(Clone, Debug)]
pub struct RowChart {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// A heading in the drawing; empty for none.
    pub heading: String,
    /// Name of the axis, with its unit.
    pub axis: String,
    /// Names and slots of the series. A legend is drawn if there are several.
    pub series: Vec<(String, usize)>,
    /// The rows, from top to bottom.
    pub rows: Vec<Row>,
    /// True if values are bars from zero; otherwise they are points.
    pub has_bars: bool,
    /// Smallest range of the axis, such as 0 to 100 per cent.
    pub range: (f64, f64),
    /// Writes the value at the end of its bar, or beside the plot if it has an interval.
    pub value: Option<fn(f64) -> String>,
    /// Width of the drawing, in pixels.
    pub width: f64,
}

/// Height of one series in a row, in pixels.
const LANE: f64 = 14.0;
const GAP: f64 = 8.0;
/// A name has at most this many lines.
const NAME_LINES: usize = 3;

impl RowChart {
    /// Ends of the axis: of the values, which intervals may exceed.
    fn ends(&self) -> (f64, f64) {
        let values = self.rows.iter().flat_map(|row| &row.values).flatten();
        let all = values.flat_map(|it| {
            let (low, high) = it.interval.unwrap_or((it.value, it.value));
            [low, high, it.value, it.outline.unwrap_or(it.value)]
        });
        let (mut low, mut high) = self.range;
        for value in all.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        // An axis must have an extent.
        let high = if high > low { high } else { low + 1.0 };
        let margin = 0.02 * (high - low);
        let is_given = |end: f64, given: f64| end == given && given != 0.0 || end == 0.0;
        let low = if is_given(low, self.range.0) { low } else { low - margin };
        (low, if is_given(high, self.range.1) { high } else { high + margin })
    }

    /// Draws the chart.
    pub fn svg(&self) -> String {
        let mut drawing = Drawing::default();
        let items: Vec<LegendItem> = match &self.series[..] {
            [] | [_] => Vec::new(),
            many => {
                let item = |(name, slot): &(String, usize)| LegendItem {
                    name: name.clone(),
                    slot: *slot,
                    is_dashed: false,
                };
                many.iter().map(item).collect()
            }
        };
        let mut top = legend(&mut drawing, &items, self.width);
        if !self.heading.is_empty() {
            drawing.text((4.0, top + 10.0), &self.heading, INK.light, Anchor::Start);
            top += 20.0;
        }

        // A third of the drawing at most.
        let third = 0.36 * self.width;
        let names: Vec<Vec<String>> =
            self.rows.iter().map(|row| wrap(&row.name, third, NAME_LINES)).collect();
        let longest = names.iter().flatten().map(|line| width(line)).fold(0.0, f64::max);
        let lanes = self.series.len().max(1) as f64;
        let lines = names.iter().map(Vec::len).max().unwrap_or(1) as f64;
        let row = (lanes * LANE + GAP).max(lines * LINE_HEIGHT + GAP);

        let right = if self.value.is_some() { 66.0 } else { 22.0 };
        let plot = Area {
            left: longest + 16.0,
            top: top + 6.0,
            right: self.width - right,
            bottom: top + 6.0 + row * self.rows.len().max(1) as f64,
        };
        let axis = Axis::linear(&self.axis, self.ends());
        let frame = Frame::of_rows(&mut drawing, axis, self.rows.len(), plot, self.width);
        if self.ends().0 < 0.0 {
            let zero = frame.at(0.0, 0.0).0;
            drawing.line(&[(zero, plot.top), (zero, plot.bottom)], Stroke::new(SOFT.light, 1.0));
        }

        for (place, (data, name)) in self.rows.iter().zip(&names).enumerate() {
            let middle = plot.top + row * (place as f64 + 0.5);
            drawing.lines_of_text((plot.left - 8.0, middle), name, INK.light, Anchor::End);
            for (lane, value) in data.values.iter().enumerate() {
                let Some(value) = value else { continue };
                let y = middle + (lane as f64 - (lanes - 1.0) / 2.0) * LANE;
                let description = self.description(data, lane, value);
                drawing.linked_mark(&description, value.link.as_deref(), |drawing| {
                    self.draw_value(drawing, &frame, y, self.slot(data, lane), value);
                });
            }
        }
        drawing.svg(&self.title, (self.width, frame.height()))
    }

    fn slot(&self, row: &Row, lane: usize) -> usize {
        row.slot.unwrap_or_else(|| self.series.get(lane).map_or(lane, |(_, slot)| *slot))
    }

    /// What a value says: its row, its series if there are several, and its interval.
    fn description(&self, row: &Row, lane: usize, value: &Measured) -> String {
        let series = match self.series.get(lane) {
            Some((name, _)) if self.series.len() > 1 => format!(", {name}"),
            _ => String::new(),
        };
        let interval = value.interval.map_or_else(String::new, |(low, high)| {
            format!(" (95 %: {} to {})", trimmed(low, 1), trimmed(high, 1))
        });
        let shown = self.value.map_or_else(|| trimmed(value.value, 1), |it| it(value.value));
        format!("{}{series}; {}: {shown}{interval}", row.name, self.axis)
    }

    fn draw_value(
        &self,
        drawing: &mut Drawing,
        frame: &Frame,
        y: f64,
        slot: usize,
        value: &Measured,
    ) {
        let colour = value.colour.unwrap_or_else(|| series(slot));
        let x = |value: f64| frame.at(value, f64::NAN).0;
        let end = x(value.value);

        if self.has_bars {
            let corners = [(x(0.0), y - 5.0), (end, y + 5.0)];
            let inside = if value.is_hollow { PAPER.light } else { colour };
            drawing.rectangle(corners, Some((inside, 1.0)), Some(Stroke::new(colour, 1.0)));
        }
        if let Some(former) = value.outline {
            let corners = [(x(0.0), y - 8.0), (x(former), y + 8.0)];
            drawing.rectangle(corners, None, Some(Stroke::new(SOFT.light, 1.0)));
        }

        if let Some((low, high)) = value.interval {
            let (low, high) = (x(low), x(high));
            let stroke = Stroke::new(if self.has_bars { INK.light } else { colour }, 1.0);
            drawing.line(&[(low, y), (high, y)], stroke);
            for x in [low, high] {
                drawing.line(&[(x, y - 3.0), (x, y + 3.0)], stroke);
            }
        }
        if !self.has_bars {
            marker(drawing, (end, y), slot, RADIUS, value.is_hollow);
        }
        if let Some(format) = self.value {
            // Beside the plot, where no interval strikes it out.
            let far = match value.interval {
                Some(_) => frame.plot.right,
                None => end.max(value.outline.map_or(end, x)),
            };
            drawing.text((far + 6.0, y), &format(value.value), INK.light, Anchor::Start);
        }
    }
}
