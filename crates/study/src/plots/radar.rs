//! A radar chart of shares in per cent.

use prime_page::chart::{
    Anchor, Area, Drawing, Point, RADIUS as MARKER, Stroke, WIDTH, legend, marker, reach, width,
    wrap,
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

        // What labels of rings keep clear of.
        let mut obstacles: Vec<Area> = Vec::new();
        for ((name, slot), values) in &self.series {
            let place = |(axis, value): (usize, &Option<f64>)| {
                value.map(|value| (axis, value, at(axis, (value / 100.0).clamp(0.0, 1.0))))
            };
            let points: Vec<_> = values.iter().enumerate().filter_map(place).collect();
            let outline: Vec<_> =
                points.iter().chain(points.first()).map(|(_, _, point)| *point).collect();

            drawing.line(&outline, Stroke::new(series(*slot), 2.0));
            obstacles.extend(Area::along(&outline));
            obstacles.extend(points.iter().map(|(_, _, at)| Area::around(*at, reach(MARKER))));
            for (axis, value, point) in points {
                let said = format!("{}, {name}: {} %", self.axes[axis], fixed(value, 1));
                drawing.mark(&said, |drawing| marker(drawing, point, *slot, MARKER, false));
            }
        }

        // The outermost ring needs no label: it is where the axes end.
        for percent in [25_u32, 50, 75] {
            let share = f64::from(percent) / 100.0;
            let corners = (0..count).map(|axis| at(axis, share));
            draw_ring_label(&mut drawing, &percent.to_string(), corners, &obstacles);
        }
        drawing.svg(&self.title, (WIDTH, top + HEIGHT))
    }
}

/// Labels a ring at one of its corners where no series covers the label, if there is one.
fn draw_ring_label(
    drawing: &mut Drawing,
    text: &str,
    corners: impl Iterator<Item = Point>,
    obstacles: &[Area],
) {
    let beside = |(x, y): Point| {
        let sides = [(4.0, Anchor::Start), (-4.0, Anchor::End)];
        let places =
            sides.map(|(across, anchor)| [8.0, -8.0].map(|down| ((x + across, y + down), anchor)));
        places.into_iter().flatten()
    };
    let is_free = |(at, anchor): &(Point, Anchor)| {
        let room = Area::of_text(*at, text, *anchor);
        !obstacles.iter().any(|other| room.overlaps(other))
    };
    if let Some((at, anchor)) = corners.flat_map(beside).find(is_free) {
        drawing.text(at, text, SOFT.light, anchor);
    }
}
