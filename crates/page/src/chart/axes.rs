//! A frame of two axes with ticks, a grid and names.

use super::drawing::{Anchor, Drawing, Point, Stroke};
use super::labels::Area;
use super::text::{FONT_SIZE, cut, width};
use crate::palette::{INK, RULE, SOFT};
use crate::ticks::{Tick, linear, log};

/// How an axis places its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; values are positive.
    Log,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, with the unit.
    pub name: String,
    /// How it places its values.
    pub scale: Scale,
    /// Its ends.
    pub range: (f64, f64),
    /// Replaces the labels of ticks, for axes that are not in the unit of their values.
    pub format: Option<fn(f64) -> String>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(name: &str, range: (f64, f64)) -> Self {
        Self { name: name.to_owned(), scale: Scale::Linear, range, format: None }
    }

    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value / low).ln() / (high / low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
    }

    /// At most about this many ticks.
    fn ticks(&self, max: usize) -> Vec<Tick> {
        let (low, high) = self.range;
        let mut ticks = match self.scale {
            Scale::Linear => linear(low, high, max),
            Scale::Log => log(low, high, max),
        };
        if let Some(format) = self.format {
            for tick in &mut ticks {
                tick.label = format(tick.value);
            }
        }
        ticks
    }
}

/// Gap between two labels of an axis, in pixels.
const GAP: f64 = 12.0;
/// Height of the tick labels and the name below the x axis.
pub(super) const BELOW: f64 = 46.0;
/// Height of the name above the y axis.
const ABOVE: f64 = 22.0;
/// Room at the right, for half of the last label.
const RIGHT: f64 = 22.0;

/// A frame, drawn, in which values have places.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where values are drawn.
    pub plot: Area,
    x: Axis,
    y: Axis,
}

impl Frame {
    /// Draws axes with labels in a drawing of this width, the plot `height` pixels high, from `top`
    /// on.
    pub fn new(
        drawing: &mut Drawing,
        (x, y): (Axis, Axis),
        (pixels, top, height): (f64, f64, f64),
    ) -> Self {
        let y_ticks = y.ticks(if height < 200.0 { 4 } else { 6 });
        let widest = y_ticks.iter().map(|tick| width(&tick.label)).fold(0.0, f64::max);

        let top = top + if y.name.is_empty() { 8.0 } else { ABOVE };
        let left = widest + 16.0;
        let plot = Area { left, top, right: pixels - RIGHT, bottom: top + height };
        let frame = Self { plot, x, y };

        // Above the axis and horizontal, where it has the drawing's whole width.
        let name = cut(&frame.y.name, pixels - 8.0);
        drawing.text((4.0, top - 14.0), &name, INK.light, Anchor::Start);
        for tick in y_ticks {
            let at = frame.at(f64::NAN, tick.value).1;
            let ends = [(plot.left, at), (plot.right, at)];
            drawing.line(&ends, Stroke::new(RULE.light, 1.0));
            drawing.text((plot.left - 8.0, at), &tick.label, SOFT.light, Anchor::End);
        }
        frame.x_axis(drawing, pixels);
        frame
    }

    /// Draws an x axis below rows that have names instead of a y axis.
    pub fn of_rows(drawing: &mut Drawing, x: Axis, rows: usize, plot: Area, pixels: f64) -> Self {
        let frame = Self { plot, x, y: Axis::linear("", (rows.max(1) as f64, 0.0)) };
        frame.x_axis(drawing, pixels);
        frame
    }

    /// Draws ticks, grid and name of the x axis, with as many labels as fit.
    fn x_axis(&self, drawing: &mut Drawing, pixels: f64) {
        let Area { left, top, right, bottom } = self.plot;
        let place = |tick: &Tick| {
            let half = width(&tick.label) / 2.0;
            let at = self.at(tick.value, f64::NAN).0;
            (at, at.clamp(half + 1.0, (pixels - half - 1.0).max(half + 1.0)), half)
        };
        let fits = |ticks: &[Tick]| {
            ticks.windows(2).all(|pair| {
                let ((_, a, a_half), (_, b, b_half)) = (place(&pair[0]), place(&pair[1]));
                a + a_half + GAP <= b - b_half
            })
        };
        let ticks = (1..=8).rev().map(|max| self.x.ticks(max)).find(|ticks| fits(ticks));

        for tick in ticks.unwrap_or_default() {
            let (at, middle, _) = place(&tick);
            drawing.line(&[(at, top), (at, bottom)], Stroke::new(RULE.light, 1.0));
            drawing.text((middle, bottom + 13.0), &tick.label, SOFT.light, Anchor::Middle);
        }
        drawing.line(&[(left, bottom), (right, bottom)], Stroke::new(SOFT.light, 1.0));

        let name = cut(&self.x.name, pixels - 8.0);
        let half = width(&name) / 2.0;
        let middle =
            f64::midpoint(left, right).clamp(half + 2.0, (pixels - half - 2.0).max(half + 2.0));
        drawing.text((middle, bottom + 17.0 + FONT_SIZE * 1.3), &name, INK.light, Anchor::Middle);
    }

    /// The place of a value; beyond the axes at their ends.
    pub fn at(&self, x: f64, y: f64) -> Point {
        let Area { left, top, right, bottom } = self.plot;
        (left + self.x.share(x) * (right - left), bottom - self.y.share(y) * (bottom - top))
    }

    /// The height of a drawing that ends with this frame.
    pub fn height(&self) -> f64 {
        self.plot.bottom + BELOW
    }
}
