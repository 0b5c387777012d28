//! A radar chart of shares in per cent.

use plotters::element::{PathElement, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, VPos};
use prime_page::palette::{INK, RULE, SOFT, series};

use super::canvas::{Area, Failure, WIDTH, aligned, svg};
use super::marker::draw_marker;

/// A polygon for each series over at least three axes.
#[derive(Clone, Debug)]
pub struct Radar {
    /// Title, read out in place of the drawing.
    pub title: String,
    pub axes: Vec<String>,
    /// A name, and a value from 0 to 100 for each axis that has one.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

const HEIGHT: u32 = 460;
const RADIUS: f64 = 175.0;

/// The pixel at a share of the radius along an axis.
#[expect(clippy::cast_possible_truncation, reason = "pixels of the drawing")]
fn at(axis: usize, axes: usize, share: f64) -> (i32, i32) {
    let angle = std::f64::consts::TAU * axis as f64 / axes as f64;
    let (x, y) = (f64::from(WIDTH) / 2.0, f64::from(HEIGHT) / 2.0);
    let reach = RADIUS * share;
    ((x + reach * angle.sin()).round() as i32, (y - reach * angle.cos()).round() as i32)
}

impl Radar {
    pub fn svg(&self) -> String {
        let names: Vec<String> = self.series.iter().map(|(name, _)| name.clone()).collect();
        svg(&self.title, &names, HEIGHT, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        let count = self.axes.len();
        let ring = |share: f64| {
            (0..=count).map(|axis| at(axis % count.max(1), count, share)).collect::<Vec<_>>()
        };

        for percent in [25_u32, 50, 75, 100] {
            let share = f64::from(percent) / 100.0;
            area.draw(&PathElement::new(ring(share), RULE.light.stroke_width(1)))?;
            let (x, y) = at(0, count, share);
            let style = aligned(SOFT.light, HPos::Left, VPos::Bottom);
            area.draw(&Text::new(percent.to_string(), (x + 3, y), style))?;
        }

        for (axis, name) in self.axes.iter().enumerate() {
            area.draw(&PathElement::new(
                vec![at(axis, count, 0.0), at(axis, count, 1.0)],
                RULE.light.stroke_width(1),
            ))?;
            // Outside the outermost ring.
            let (x, y) = at(axis, count, 1.08);
            let middle = (WIDTH / 2).cast_signed();

            let horizontal = match x - middle {
                -20..=20 => HPos::Center,
                21.. => HPos::Left,
                _ => HPos::Right,
            };

            area.draw(&Text::new(
                name.clone(),
                (x, y),
                aligned(INK.light, horizontal, VPos::Center),
            ))?;
        }

        for (index, (_, values)) in self.series.iter().enumerate() {
            let point = |(axis, value): (usize, &Option<f64>)| {
                value.map(|value| at(axis, count, (value / 100.0).clamp(0.0, 1.0)))
            };
            let points: Vec<_> = values.iter().enumerate().filter_map(point).collect();
            let outline = points.iter().chain(points.first()).copied().collect::<Vec<_>>();

            area.draw(&PathElement::new(outline, series(index).stroke_width(2)))?;
            for point in points {
                draw_marker(area, point, index, false)?;
            }
        }
        Ok(())
    }
}
