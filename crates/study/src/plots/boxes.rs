//! Box plots with all points.

use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};
use prime_page::palette::{INK, PAPER, series};

use super::canvas::{Area, Failure, X_LABELS, aligned, axes, names_width, pixel, svg};
use super::marker::draw_marker;
use crate::statistics::FiveNumbers;

/// A name, and the values of each series.
#[derive(Clone, Debug)]
pub struct BoxGroup {
    pub name: String,
    pub values: Vec<Vec<f64>>,
}

/// Boxes of several groups, horizontal.
#[derive(Clone, Debug)]
pub struct BoxChart {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Label of the axis, with its unit.
    pub axis: String,
    pub series: Vec<String>,
    pub groups: Vec<BoxGroup>,
    pub range: (f64, f64),
}

const LANE: u32 = 18;
const GAP: u32 = 8;

impl BoxChart {
    pub fn svg(&self) -> String {
        let lanes = u32::try_from(self.series.len()).unwrap_or(1).max(1);
        let groups = u32::try_from(self.groups.len()).unwrap_or(u32::MAX / 1_000).max(1);
        svg(&self.title, &self.series, groups * (lanes * LANE + GAP) + X_LABELS + 8, |area| {
            self.draw(area)
        })
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let left = names_width(self.groups.iter().map(|group| group.name.as_str()));
        let count = self.groups.len().max(1) as f64;

        let (low, high) = self.range;
        let chart = axes(area, low..high, count..0.0, (&self.axis, ""), left, false)?;

        let at = |x: f64, y: f64| pixel(area, &chart, (x.clamp(low, high), y));

        let lanes = self.series.len().max(1) as f64;
        let share = f64::from(LANE) / (f64::from(LANE) * lanes + f64::from(GAP));

        for (place, group) in self.groups.iter().enumerate() {
            let (x, y) = at(low, place as f64 + 0.5);
            area.draw(&Text::new(
                group.name.clone(),
                (x - 8, y),
                aligned(INK.light, HPos::Right, VPos::Center),
            ))?;

            for (lane, values) in group.values.iter().enumerate() {
                let y = place as f64 + 0.5 + (lane as f64 - (lanes - 1.0) / 2.0) * share;
                if let Some(numbers) = FiveNumbers::of(values) {
                    draw_box(area, &at, y, lane, &numbers)?;
                }
                for value in values {
                    draw_marker(area, at(*value, y), lane, true)?;
                }
            }
        }
        Ok(())
    }
}

fn draw_box(
    area: &Area<'_>,
    at: &impl Fn(f64, f64) -> (i32, i32),
    y: f64,
    lane: usize,
    numbers: &FiveNumbers,
) -> Result<(), Failure> {
    let (_, line) = at(numbers.median, y);
    let x = |value: f64| at(value, y).0;
    let style = series(lane).stroke_width(1);

    let whiskers = [
        (numbers.whisker_low, numbers.quartile_low),
        (numbers.quartile_high, numbers.whisker_high),
    ];
    for (from, to) in whiskers {
        area.draw(&PathElement::new(vec![(x(from), line), (x(to), line)], style))?;
    }
    // Filled in the page's colour, so that the grid does not show through.
    let corners = [(x(numbers.quartile_low), line - 6), (x(numbers.quartile_high), line + 6)];
    area.draw(&Rectangle::new(corners, PAPER.light.filled()))?;
    area.draw(&Rectangle::new(corners, style))?;

    let median = vec![(x(numbers.median), line - 6), (x(numbers.median), line + 6)];
    area.draw(&PathElement::new(median, series(lane).stroke_width(3)))
}
