//! Heat maps: a grid of shares in per cent, each written into its cell.

use prime_page::chart::{Anchor, Drawing, FONT_SIZE, Stroke, WIDTH, cut, width, wrap};
use prime_page::number::fixed;
use prime_page::palette::{INK, RULE, SOFT, series};

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

const ROW: f64 = 32.0;
const CELL_MAX: f64 = 90.0;
/// Longest name of a column that is turned.
const TURNED: f64 = 180.0;
/// Opacity of 100 %, at which the number in the cell stays readable.
const OPACITY_MAX: f64 = 0.55;

impl HeatMap {
    pub fn svg(&self) -> String {
        let mut drawing = Drawing::default();
        let names: Vec<_> = self.rows.iter().map(|(name, _)| wrap(name, 0.3 * WIDTH, 2)).collect();
        let longest = names.iter().flatten().map(|line| width(line)).fold(0.0, f64::max);
        let left = longest + 16.0;
        let columns = self.columns.len().max(1) as f64;
        let cell = ((WIDTH - left - 6.0) / columns).min(CELL_MAX);

        let axis = cut(&self.axis, WIDTH - left);
        drawing.text((left, 10.0), &axis, INK.light, Anchor::Start);

        // Names that do not fit above their column stand on end.
        let widest = self.columns.iter().map(|name| width(name)).fold(0.0, f64::max);
        let is_turned = widest > cell - 6.0;
        let head = if is_turned { widest.min(TURNED) + 32.0 } else { 48.0 };
        for (place, name) in self.columns.iter().enumerate() {
            let x = left + (place as f64 + 0.5) * cell;
            if is_turned {
                let name = cut(name, TURNED);
                drawing.turned_text((x, head - 6.0), &name, SOFT.light, Anchor::Start, -90);
            } else {
                drawing.text((x, head - 12.0), name, SOFT.light, Anchor::Middle);
            }
        }

        for (row, ((name, values), lines)) in self.rows.iter().zip(&names).enumerate() {
            let top = head + row as f64 * ROW;
            let middle = top + ROW / 2.0;
            drawing.lines_of_text((left - 8.0, middle), lines, INK.light, Anchor::End);

            for (column, (value, asked)) in values.iter().zip(&self.columns).enumerate() {
                let x = left + column as f64 * cell;
                let corners = [(x, top), (x + cell, top + ROW)];
                let rule = Stroke::new(RULE.light, 1.0);
                let Some(value) = value else {
                    drawing.rectangle(corners, None, Some(rule));
                    continue;
                };
                let share = (value / 100.0).clamp(0.0, 1.0);
                let said = format!("{name}, {}: {asked}: {} %", self.axis, fixed(*value, 1));
                drawing.mark(&said, |drawing| {
                    let fill = (series(1), OPACITY_MAX * share);
                    drawing.rectangle(corners, Some(fill), Some(rule));
                    let at = (x + cell / 2.0, middle);
                    let text = fixed(*value, 0);
                    if width(&text) < cell {
                        drawing.text(at, &text, INK.light, Anchor::Middle);
                    }
                });
            }
        }
        let height = head + ROW * self.rows.len().max(1) as f64 + FONT_SIZE;
        drawing.svg(&self.title, (WIDTH, height))
    }
}
