//! The names of a drawing's series, in lines that break where the drawing ends.

use super::drawing::{Anchor, Drawing, Stroke};
use super::marker::{RADIUS, marker};
use super::text::{cut, width};
use crate::palette::{INK, series};

/// A series.
#[derive(Clone, Debug)]
pub struct LegendItem {
    /// Its name.
    pub name: String,
    /// The slot of its colour and marker.
    pub slot: usize,
    /// True if its line is dashed and has no markers.
    pub is_dashed: bool,
}

const LINE: f64 = 20.0;
const MARK: f64 = 18.0;
const GAP: f64 = 18.0;

/// Draws the legend at the top of a drawing of this width, and returns the height that it takes.
pub fn legend(drawing: &mut Drawing, items: &[LegendItem], pixels: f64) -> f64 {
    if items.is_empty() {
        return 0.0;
    }
    let (mut x, mut y) = (6.0, 12.0);
    for item in items {
        let name = cut(&item.name, pixels - MARK - 12.0);
        let taken = MARK + width(&name);
        if x > 6.0 && x + taken > pixels - 2.0 {
            (x, y) = (6.0, y + LINE);
        }
        if item.is_dashed {
            let stroke = Stroke { colour: series(item.slot), width: 1.5, is_dashed: true };
            drawing.line(&[(x - 3.0, y), (x + 12.0, y)], stroke);
        } else {
            marker(drawing, (x + 4.0, y), item.slot, RADIUS, false);
        }
        drawing.text((x + MARK - 3.0, y), &name, INK.light, Anchor::Start);
        x += taken + GAP;
    }
    y + LINE
}
