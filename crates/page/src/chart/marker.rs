//! Markers. Series differ in shape as well as in colour; a hollow marker means not significant.

use super::drawing::{Drawing, Point, Stroke};
use crate::palette::{PAPER, series};

/// Half the size of a marker, in pixels.
pub const RADIUS: f64 = 4.0;

/// How far a marker of this radius extends from its place: its longest corner and its outline.
pub const fn reach(radius: f64) -> f64 {
    radius + 2.5
}

/// Draws the marker of a slot around a place.
pub fn marker(drawing: &mut Drawing, (x, y): Point, slot: usize, radius: f64, is_hollow: bool) {
    let colour = series(slot);
    let inside = if is_hollow { PAPER.light } else { colour };
    let stroke = Stroke::new(colour, 2.0);

    let r = radius;
    let corners = match slot % 5 {
        1 => [(-r, -r), (r, -r), (r, r), (-r, r)].to_vec(),
        2 => [(0.0, -r - 1.0), (r + 1.0, r), (-r - 1.0, r)].to_vec(),
        3 => [(0.0, -r - 1.5), (r + 1.5, 0.0), (0.0, r + 1.5), (-r - 1.5, 0.0)].to_vec(),
        4 => [(0.0, r + 1.0), (r + 1.0, -r), (-r - 1.0, -r)].to_vec(),
        _ => return drawing.circle((x, y), r, inside, stroke),
    };
    let corners: Vec<Point> = corners.into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    drawing.polygon(&corners, inside, Some(stroke));
}
