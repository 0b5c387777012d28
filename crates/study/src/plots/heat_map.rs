//! Heat maps: a grid of shares in per cent, each written into its cell.

use plotters::element::{Rectangle, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};
use prime_page::palette::{INK, RULE, SOFT, series};

use super::canvas::{Area, Failure, WIDTH, aligned, names_width, svg};

/// Rows of cells under named columns.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Title, read out in place of the drawing.
    pub title: String,
    /// Meaning of the columns.
    pub axis: String,
    pub columns: Vec<String>,
    /// A name, and a value from 0 to 100 for each column that has one.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

const ROW: i32 = 26;
const CELL_MAX: i32 = 90;
const HEAD: i32 = 48;
/// Width of a letter in a column's name. Longer names are cut, so that they do not run into each
/// other.
const LETTER: i32 = 8;
/// Opacity of 100 %, at which the number in the cell stays readable.
const OPACITY_MAX: f64 = 0.55;

fn length(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX / 1_000).max(1)
}

/// The start of a name, as far as it fits.
fn cut(name: &str, pixels: i32) -> String {
    let letters = usize::try_from(pixels / LETTER).unwrap_or_default().max(2);
    if name.chars().count() <= letters {
        name.to_owned()
    } else {
        name.chars().take(letters - 1).chain(['…']).collect()
    }
}

impl HeatMap {
    pub fn svg(&self) -> String {
        let height = HEAD + ROW * length(self.rows.len()) + 10;
        svg(&self.title, &[], height.unsigned_abs(), |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let left = names_width(self.rows.iter().map(|(name, _)| name.as_str())).cast_signed();
        let cell = ((WIDTH.cast_signed() - left - 10) / length(self.columns.len())).min(CELL_MAX);
        let middle = left + cell * length(self.columns.len()) / 2;

        area.draw(&Text::new(
            self.axis.clone(),
            (middle, 10),
            aligned(INK.light, HPos::Center, VPos::Center),
        ))?;

        for (column, name) in (0..).zip(&self.columns) {
            let at = (left + column * cell + cell / 2, HEAD - 12);
            area.draw(&Text::new(
                cut(name, cell),
                at,
                aligned(SOFT.light, HPos::Center, VPos::Center),
            ))?;
        }

        for (row, (name, values)) in (0..).zip(&self.rows) {
            let top = HEAD + row * ROW;
            let style = aligned(INK.light, HPos::Right, VPos::Center);
            area.draw(&Text::new(cut(name, left - 10), (left - 8, top + ROW / 2), style))?;

            for (column, value) in (0..).zip(values) {
                let corners =
                    [(left + column * cell, top), (left + (column + 1) * cell, top + ROW)];

                if let Some(value) = value {
                    let share = (value / 100.0).clamp(0.0, 1.0);
                    area.draw(&Rectangle::new(
                        corners,
                        series(1).mix(OPACITY_MAX * share).filled(),
                    ))?;
                    let at = (corners[0].0 + cell / 2, top + ROW / 2);
                    let style = aligned(INK.light, HPos::Center, VPos::Center);
                    area.draw(&Text::new(format!("{value:.0}"), at, style))?;
                }
                // After the filling, which would cover the line.
                area.draw(&Rectangle::new(corners, RULE.light.stroke_width(1)))?;
            }
        }
        Ok(())
    }
}
