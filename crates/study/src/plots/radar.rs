//! A radar chart of shares in per cent.

use prime_page::chart::{
    Anchor, Drawing, RADIUS as MARKER, Stroke, WIDTH, legend, marker, width, wrap,
};
use prime_page::number::fixed;
use prime_page::palette::{INK, RULE, SOFT, series};

use super::{Series, legend_items};

/// A polygon for each series over at least three axes.
#[derive(Clone, Debug)]
pub struct Radar {
    /// Title, read out in place of the drawing.
    pub title: String,
    pub axes: Vec<String>,
    /// A series, and a value from 0 to 100 for each axis that has one.
    pub series: Vec<(Series, Vec<Option<f64>>)>,
}

const HEIGHT: f64 = 400.0;
const RADIUS: f64 = 150.0;

impl Radar {
    pub fn svg(&self) -> String {
        let mut drawing = Drawing::default();
        let items = legend_items(self.series.iter().map(|(series, _)| series));
        let top = legend(&mut drawing, &items, WIDTH);
        let count = self.axes.len();
        let at = |axis: usize, share: f64| {
            let angle = std::f64::consts::TAU * axis as f64 / count.max(1) as f64;
            let (x, y) = (WIDTH / 2.0, top + HEIGHT / 2.0);
            (x + RADIUS * share * angle.sin(), y - RADIUS * share * angle.cos())
        };

        let rule = Stroke::new(RULE.light, 1.0);
        for percent in [25_u32, 50, 75, 100] {
            let share = f64::from(percent) / 100.0;
            let ring: Vec<_> = (0..=count).map(|axis| at(axis % count.max(1), share)).collect();
            drawing.line(&ring, rule);
            // The outermost ring needs no label: it is where the axes end.
            if percent < 100 {
                let (x, y) = at(0, share);
                let text = percent.to_string();
                drawing.text((x + 4.0, y + 8.0), &text, SOFT.light, Anchor::Start);
            }
        }

        for (axis, name) in self.axes.iter().enumerate() {
            drawing.line(&[at(axis, 0.0), at(axis, 1.0)], rule);
            // Outside the outermost ring.
            let (x, y) = at(axis, 1.1);
            let anchor = match x - WIDTH / 2.0 {
                side if side > 20.0 => Anchor::Start,
                side if side < -20.0 => Anchor::End,
                _ => Anchor::Middle,
            };
            let room = if anchor == Anchor::Middle { WIDTH } else { x.min(WIDTH - x) - 4.0 };
            let lines = wrap(name, room.max(width("mmmm")), 2);
            drawing.lines_of_text((x, y), &lines, INK.light, anchor);
        }

        for ((name, slot), values) in &self.series {
            let place = |(axis, value): (usize, &Option<f64>)| {
                value.map(|value| (axis, value, at(axis, (value / 100.0).clamp(0.0, 1.0))))
            };
            let points: Vec<_> = values.iter().enumerate().filter_map(place).collect();
            let outline: Vec<_> =
                points.iter().chain(points.first()).map(|(_, _, point)| *point).collect();

            drawing.line(&outline, Stroke::new(series(*slot), 2.0));
            for (axis, value, point) in points {
                let said = format!("{}, {name}: {} %", self.axes[axis], fixed(value, 1));
                drawing.mark(&said, |drawing| marker(drawing, point, *slot, MARKER, false));
            }
        }
        drawing.svg(&self.title, (WIDTH, top + HEIGHT))
    }
}
