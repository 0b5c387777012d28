//! Horizontal bars or points with intervals, one row for each name: bars of categories, forest
//! plots, gains.

use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};
use prime_page::palette::{INK, PAPER, SOFT, series};

use super::canvas::{Area, Failure, X_LABELS, aligned, axes, names_width, pixel, svg};
use super::marker::draw_marker;

/// A value with its interval.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
    /// True if it is drawn hollow, which means not significant.
    pub is_hollow: bool,
}

/// A row, with a value for each series that has one.
#[derive(Clone, Debug)]
pub struct IntervalRow {
    pub name: String,
    pub values: Vec<Option<Measured>>,
}

/// Rows of values with intervals.
#[derive(Clone, Debug)]
pub struct IntervalChart {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Label of the axis, with its unit.
    pub axis: String,
    /// Names of the series, for the legend.
    pub series: Vec<String>,
    pub rows: Vec<IntervalRow>,
    /// True if values are bars from zero; otherwise they are points.
    pub has_bars: bool,
    /// Smallest range of the axis, such as 0 to 100 per cent.
    pub range: (f64, f64),
}

/// Height of one series in a row, in pixels.
const LANE: u32 = 13;
const GAP: u32 = 7;

impl IntervalChart {
    pub fn svg(&self) -> String {
        let lanes = u32::try_from(self.series.len()).unwrap_or(1).max(1);
        let rows = u32::try_from(self.rows.len()).unwrap_or(u32::MAX / 1_000).max(1);
        svg(&self.title, &self.series, rows * (lanes * LANE + GAP) + X_LABELS + 8, |area| {
            self.draw(area)
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let values = || self.rows.iter().flat_map(|row| &row.values).flatten();
        // Intervals may reach further than the values.
        let reach = |start: f64, pick: fn(f64, f64) -> f64| {
            values().fold(start, |end, value| {
                let (low, high) = value.interval.unwrap_or((value.value, value.value));
                pick(pick(end, value.value), if pick(low, high) == low { low } else { high })
            })
        };

        let (low, high) = (reach(self.range.0, f64::min), reach(self.range.1, f64::max));
        let margin = if low < 0.0 { 0.02 * (high - low) } else { 0.0 };

        let left = names_width(self.rows.iter().map(|row| row.name.as_str()));
        let count = self.rows.len().max(1) as f64;
        let chart =
            axes(area, low - margin..high + 0.001, count..0.0, (&self.axis, ""), left, false)?;
        let at = |x: f64, y: f64| pixel(area, &chart, (x, y));

        if low < 0.0 {
            area.draw(&PathElement::new(
                vec![at(0.0, 0.0), at(0.0, count)],
                SOFT.light.stroke_width(1),
            ))?;
        }

        let lanes = self.series.len().max(1) as f64;
        let share = f64::from(LANE) / (f64::from(LANE) * lanes + f64::from(GAP));

        for (place, row) in self.rows.iter().enumerate() {
            let (x, y) = at(low - margin, place as f64 + 0.5);
            area.draw(&Text::new(
                row.name.clone(),
                (x - 8, y),
                aligned(INK.light, HPos::Right, VPos::Center),
            ))?;

            for (lane, value) in row.values.iter().enumerate() {
                let Some(value) = value else { continue };
                let y = place as f64 + 0.5 + (lane as f64 - (lanes - 1.0) / 2.0) * share;
                self.draw_value(area, &at, y, lane, value)?;
            }
        }
        Ok(())
    }

    fn draw_value(
        &self,
        area: &Area<'_>,
        at: &impl Fn(f64, f64) -> (i32, i32),
        y: f64,
        lane: usize,
        value: &Measured,
    ) -> Result<(), Failure> {
        let (end, line) = at(value.value, y);

        if self.has_bars {
            let (start, _) = at(0.0, y);
            let corners = [(start.min(end), line - 5), (start.max(end), line + 5)];
            let inside = if value.is_hollow { PAPER.light } else { series(lane) };
            area.draw(&Rectangle::new(corners, inside.filled()))?;
            area.draw(&Rectangle::new(corners, series(lane).stroke_width(1)))?;
        }

        if let Some((low, high)) = value.interval {
            let ((low, _), (high, _)) = (at(low, y), at(high, y));
            let colour = if self.has_bars { INK.light } else { series(lane) };
            area.draw(&PathElement::new(vec![(low, line), (high, line)], colour.stroke_width(1)))?;
            for x in [low, high] {
                area.draw(&PathElement::new(
                    vec![(x, line - 3), (x, line + 3)],
                    colour.stroke_width(1),
                ))?;
            }
        }

        if self.has_bars { Ok(()) } else { draw_marker(area, (end, line), lane, value.is_hollow) }
    }
}
