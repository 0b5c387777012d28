//! Places for names near their points, so that no text covers a marker or another text.

use super::drawing::{Anchor, Drawing, Point, Stroke};
use super::text::{FONT_SIZE, width};
use crate::palette::{INK, SOFT};

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
        squares(points, 1.0)
    }

    /// True if they share more than an edge.
    pub fn overlaps(&self, other: &Self) -> bool {
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

/// Squares of this half width along a line, a step apart.
fn squares(points: &[Point], half: f64) -> Vec<Area> {
    let steps = |pair: &[Point]| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let far = (x1 - x0).abs().max((y1 - y0).abs());
        let count = (far / STEP).ceil().clamp(1.0, f64::from(STEPS_MAX));
        let share = move |step: u32| f64::from(step) / count;
        (0..=STEPS_MAX)
            .map(share)
            .take_while(|share| *share <= 1.0)
            .map(|share| Area::around((x0 + share * (x1 - x0), y0 + share * (y1 - y0)), half))
            .collect::<Vec<_>>()
    };
    points.windows(2).flat_map(steps).collect()
}

/// A point that a name may stand beside.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its place.
    pub at: Point,
    /// How far its marker extends, in pixels.
    pub reach: f64,
    /// The name; empty for none.
    pub name: String,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The place of its middle height.
    pub at: Point,
    /// Which part of it is there.
    pub anchor: Anchor,
    /// The line from the point's marker to the name, if it stands apart.
    pub leader: Option<[Point; 2]>,
}

impl Placed {
    /// Draws the name, and the line that leads to it.
    pub fn draw(&self, drawing: &mut Drawing, name: &str) {
        if let Some(leader) = self.leader {
            drawing.line(&leader, Stroke::new(SOFT.light, 1.0));
        }
        drawing.text(self.at, name, INK.light, self.anchor);
    }
}

/// How far from its point a name may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Beside its marker only.
    Beside,
    /// Apart, with a line that leads to it, where there is no room beside the marker.
    Apart,
}

/// Lengths of leader lines that are tried, in pixels, and in how many directions.
const LEADERS: [f64; 6] = [14.0, 24.0, 38.0, 56.0, 80.0, 110.0];
const DIRECTIONS: u32 = 16;
/// Room between a marker or the end of a leader line and the name.
const GAP: f64 = 4.0;

/// The places beside a marker, the best first.
fn beside(Named { at: (x, y), reach, .. }: &Named) -> Vec<Placed> {
    let (side, height) = (reach + GAP, reach + FONT_SIZE * 0.6);
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
    candidates.map(|(at, anchor)| Placed { at, anchor, leader: None }).to_vec()
}

/// The places at the ends of leader lines, the shortest first.
fn apart(Named { at: (x, y), reach, .. }: &Named) -> Vec<Placed> {
    let place = |length: f64, direction: u32| {
        let angle = std::f64::consts::TAU * f64::from(direction) / f64::from(DIRECTIONS);
        let (across, down) = (angle.cos(), angle.sin());
        let along = |far: f64| (x + far * across, y + far * down);
        let (from, to) = (along(reach + 1.0), along(reach + length));

        // A steep line ends at the name's middle, any other one at its nearer end.
        let (at, anchor) = if across.abs() < 0.2 {
            ((to.0, to.1 + down.signum() * FONT_SIZE * 0.7), Anchor::Middle)
        } else if across > 0.0 {
            ((to.0 + GAP, to.1), Anchor::Start)
        } else {
            ((to.0 - GAP, to.1), Anchor::End)
        };
        Placed { at, anchor, leader: Some([from, to]) }
    };
    LEADERS
        .into_iter()
        .flat_map(|length| (0..DIRECTIONS).map(move |direction| place(length, direction)))
        .collect()
}

/// What names keep clear of.
struct Room<'a> {
    points: &'a [Named],
    markers: Vec<Area>,
    obstacles: &'a [Area],
    bounds: Area,
}

/// Where a name may stand.
type Candidates = fn(&Named) -> Vec<Placed>;

/// A place for each name, within `bounds` and clear of `obstacles`, of all markers, of other names
/// and of the lines that lead to them; `None` where there is none.
///
/// A leader line keeps clear of markers, names and other leader lines, but may cross an obstacle.
pub fn place(
    points: &[Named],
    distance: Distance,
    obstacles: &[Area],
    bounds: Area,
) -> Vec<Option<Placed>> {
    let markers = points.iter().map(|point| Area::around(point.at, point.reach)).collect();
    let room = Room { points, markers, obstacles, bounds };
    let in_order: Vec<usize> = (0..points.len()).collect();
    if distance == Distance::Beside {
        return room.fill(&in_order, &[beside]);
    }

    // Names near the middle of a crowd wall in what is placed after them, or are walled in: the
    // order that leaves fewest names out is kept, the simplest of equals.
    let inwards = room.inwards();
    let outwards: Vec<usize> = inwards.iter().rev().copied().collect();
    let attempts: [(&[usize], &[Candidates]); 6] = [
        (&in_order, &[beside, apart]),
        (&outwards, &[beside, apart]),
        (&inwards, &[beside, apart]),
        (&outwards, &[beside_or_apart]),
        (&inwards, &[beside_or_apart]),
        (&outwards, &[apart]),
    ];
    let wanted = points.iter().filter(|point| !point.name.is_empty()).count();
    let mut best: Vec<Option<Placed>> = vec![None; points.len()];
    for (order, rounds) in attempts {
        let placed = room.fill(order, rounds);
        let count = |places: &[Option<Placed>]| places.iter().flatten().count();
        if count(&placed) > count(&best) {
            best = placed;
        }
        if count(&best) == wanted {
            break;
        }
    }
    best
}

fn beside_or_apart(point: &Named) -> Vec<Placed> {
    [beside(point), apart(point)].concat()
}

impl Room<'_> {
    /// The points, the one farthest from the middle of all first.
    fn inwards(&self) -> Vec<usize> {
        let count = self.points.len().max(1) as f64;
        let sum = |of: fn(&Named) -> f64| self.points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (sum(|point| point.at.0), sum(|point| point.at.1));
        let away = |index: &usize| {
            let at = self.points[*index].at;
            (at.0 - x).hypot(at.1 - y)
        };

        let mut order: Vec<usize> = (0..self.points.len()).collect();
        order.sort_by(|a, b| away(b).total_cmp(&away(a)));
        order
    }

    /// Gives each name in this order the first candidate that is free; the names that are left
    /// over have the next round's candidates.
    fn fill(&self, order: &[usize], rounds: &[Candidates]) -> Vec<Option<Placed>> {
        // What names and leader lines have taken.
        let mut taken: Vec<Area> = Vec::new();
        let mut places: Vec<Option<Placed>> = vec![None; self.points.len()];

        for candidates in rounds {
            for &index in order {
                let point = &self.points[index];
                if point.name.is_empty() || places[index].is_some() {
                    continue;
                }
                let is_free = |placed: &Placed| self.is_free(index, placed, &taken);
                let Some(placed) = candidates(point).into_iter().find(is_free) else { continue };

                taken.push(Area::of_text(placed.at, &point.name, placed.anchor));
                taken.extend(leader_areas(&placed));
                places[index] = Some(placed);
            }
        }
        places
    }

    fn is_free(&self, index: usize, placed: &Placed, taken: &[Area]) -> bool {
        let own = self.markers[index];
        let text = Area::of_text(placed.at, &self.points[index].name, placed.anchor);
        let is_clear = |area: &Area| {
            area.is_within(&self.bounds) && !taken.iter().any(|other| area.overlaps(other))
        };
        // Markers at the same place cannot be left without touching them.
        let strikes =
            |area: &Area| self.markers.iter().any(|it| !it.overlaps(&own) && area.overlaps(it));

        is_clear(&text)
            && !self.obstacles.iter().chain(&self.markers).any(|other| text.overlaps(other))
            && leader_areas(placed).iter().all(|area| is_clear(area) && !strikes(area))
    }
}

/// Squares that cover a leader line without gaps, so that none crosses another.
fn leader_areas(placed: &Placed) -> Vec<Area> {
    placed.leader.map_or_else(Vec::new, |leader| squares(&leader, STEP / 2.0))
}
