//! Places for names beside their points, so that no two texts overlap.

use super::drawing::{Anchor, Point};
use super::text::{FONT_SIZE, width};

/// Distance between two squares along a line, and most of them, for a line of any length.
const STEP: f64 = 4.0;
const STEPS_MAX: u32 = 200;

/// A rectangle: left, top, right and bottom, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Area {
    /// The square around a place.
    pub fn around((x, y): Point, half: f64) -> Self {
        Self { left: x - half, top: y - half, right: x + half, bottom: y + half }
    }

    /// The room of a line of text whose middle height is at a place.
    pub fn of_text((x, y): Point, text: &str, anchor: Anchor) -> Self {
        let wide = width(text);
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - wide / 2.0,
            Anchor::End => x - wide,
        };
        let half = FONT_SIZE * 0.55;
        Self { left, top: y - half, right: left + wide, bottom: y + half }
    }

    /// Squares along a line, of which names keep clear.
    pub fn along(points: &[Point]) -> Vec<Self> {
        let steps = |pair: &[Point]| {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let far = (x1 - x0).abs().max((y1 - y0).abs());
            let count = (far / STEP).ceil().clamp(1.0, f64::from(STEPS_MAX));
            let share = move |step: u32| f64::from(step) / count;
            (0..=STEPS_MAX)
                .map(share)
                .take_while(|share| *share <= 1.0)
                .map(|share| Self::around((x0 + share * (x1 - x0), y0 + share * (y1 - y0)), 1.0))
                .collect::<Vec<_>>()
        };
        points.windows(2).flat_map(steps).collect()
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_within(&self, other: &Self) -> bool {
        self.left >= other.left
            && self.right <= other.right
            && self.top >= other.top
            && self.bottom <= other.bottom
    }
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The place of its middle height.
    pub at: Point,
    /// Which part of it is there.
    pub anchor: Anchor,
}

/// A place for each name beside its point, within `bounds` and clear of `obstacles`, of all points
/// and of other names; `None` where there is none.
pub fn place(
    points: &[(Point, String)],
    reach: f64,
    obstacles: &[Area],
    bounds: Area,
) -> Vec<Option<Placed>> {
    let mut taken: Vec<Area> = obstacles.to_vec();
    taken.extend(points.iter().map(|(at, _)| Area::around(*at, reach)));

    let mut place = |((x, y), text): &(Point, String)| {
        if text.is_empty() {
            return None;
        }
        let (side, height) = (reach + 4.0, reach + FONT_SIZE * 0.6);
        let candidates = [
            ((x + side, *y), Anchor::Start),
            ((*x, y - height), Anchor::Middle),
            ((*x, y + height), Anchor::Middle),
            ((x - side, *y), Anchor::End),
            ((x + side, y - height), Anchor::Start),
            ((x + side, y + height), Anchor::Start),
            ((x - side, y - height), Anchor::End),
            ((x - side, y + height), Anchor::End),
        ];
        let free = candidates.into_iter().find_map(|(at, anchor)| {
            let room = Area::of_text(at, text, anchor);
            let is_free =
                room.is_within(&bounds) && !taken.iter().any(|other| room.overlaps(other));
            is_free.then_some((Placed { at, anchor }, room))
        })?;
        taken.push(free.1);
        Some(free.0)
    };
    points.iter().map(&mut place).collect()
}
