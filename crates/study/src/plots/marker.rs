//! Markers. Series differ in shape as well as in colour; a hollow marker means not significant.

use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::Color as _;
use prime_page::palette::{PAPER, series};

use super::canvas::{Area, Failure};

/// Half the size of a marker, in pixels.
const RADIUS: i32 = 4;

/// Draws the marker of a series around a pixel of the area.
pub(super) fn draw_marker(
    area: &Area<'_>,
    (x, y): (i32, i32),
    index: usize,
    is_hollow: bool,
) -> Result<(), Failure> {
    let colour = series(index);
    let inside = if is_hollow { PAPER.light } else { colour };

    let r = RADIUS;
    let corners = match index % 4 {
        1 => vec![(-r, -r), (r, -r), (r, r), (-r, r)],
        2 => vec![(0, -r - 1), (r + 1, r), (-r - 1, r)],
        3 => vec![(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
        _ => {
            area.draw(&Circle::new((x, y), r, inside.filled()))?;
            return area.draw(&Circle::new((x, y), r, colour.stroke_width(2)));
        }
    };

    let mut corners: Vec<_> = corners.into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    area.draw(&Polygon::new(corners.clone(), inside.filled()))?;

    corners.push(corners[0]);
    area.draw(&PathElement::new(corners, colour.stroke_width(2)))
}
