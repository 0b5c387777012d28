//! ASCII Art Parse: find the lines and rectangles of a drawing, scanning it in reading order.
//!
//! A step is one object begun, or one of its edges traced; its line names a cell.

use std::fmt;

use serde::ser::SerializeSeq;
use serde::{Deserializer, Serializer};

use super::drawing::{COLUMNS, Cell, Direction, Kind, Object, ROWS, draw_object, place};
use crate::tasks::pages::ascii_art_parse as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `ascii-art-parse`.
pub struct AsciiArtParse;

const ROWS_MAX: usize = 100;
const COLUMNS_MAX: usize = 200;
/// The most steps that a user's drawing may need: each of them compares cells with all objects
/// found so far.
const STEPS_MAX: u64 = 10_000;
/// The number of objects by which a submitted state may exceed a trace.
const OBJECTS_SPARE: usize = 1_000;
/// Places tried for an object before the instance is drawn again.
const FAILURES_MAX: usize = 1000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The drawing: 40 rows of 80 characters out of blank, `+`, `-` and `|`.
    pub grid: Vec<String>,
}

impl Instance {
    fn columns(&self) -> usize {
        self.grid.first().map_or(0, String::len)
    }

    /// The character of a cell; a blank outside of the grid.
    pub fn at(&self, (row, column): Cell) -> u8 {
        self.grid.get(row).and_then(|row| row.as_bytes().get(column)).copied().unwrap_or(b' ')
    }

    fn has(&self, (row, column): Cell) -> bool {
        row < self.grid.len() && column < self.columns()
    }

    fn ink(&self) -> usize {
        self.grid.iter().flat_map(|row| row.bytes()).filter(|c| *c != b' ').count()
    }

    /// The first cell after the last object's start that is drawn and belongs to no object found so
    /// far. Cells before that start are never looked at again, even if a wrong line has skipped
    /// them.
    pub fn next_start(&self, objects: &[Object]) -> Option<Cell> {
        let columns = self.columns();
        let first = objects.last().map_or(0, |object| object.top * columns + object.left + 1);
        let mut cells =
            (first..self.grid.len() * columns).map(|place| (place / columns, place % columns));
        cells.find(|cell| {
            self.at(*cell) != b' ' && !objects.iter().any(|object| object.covers(*cell))
        })
    }

    /// The kind of the object that starts at a drawn cell.
    fn kind(&self, start: Cell) -> Kind {
        match self.at(start) {
            b'-' => Kind::Hline,
            b'|' => Kind::Vline,
            _ => Kind::Rect,
        }
    }

    /// The end of the edge from `from`: the next corner of a rectangle, or the last cell of a line.
    fn trace(&self, kind: Kind, direction: Direction, from: Cell) -> Option<Cell> {
        let stroke = if direction.is_horizontal() { b'-' } else { b'|' };
        let mut cell = from;
        loop {
            let next = direction.next(cell);
            match next.map(|next| self.at(next)) {
                Some(c) if c == stroke => cell = next?,
                Some(b'+') if kind == Kind::Rect => return next,
                _ => return (kind != Kind::Rect).then_some(cell),
            }
        }
    }

    /// The end of the next edge of an object. The last edge of a rectangle leads back to its start,
    /// or to nothing after a wrong line.
    fn edge_end(&self, open: &Open) -> Option<Cell> {
        let direction = open.due()?;
        let end = self.trace(open.kind, direction, *open.cells.last()?)?;
        (direction != Direction::Up || end == open.cells[0]).then_some(end)
    }
}

/// The object in progress: its start, then the cells where its edges ended.
#[derive(Clone, Debug)]
pub struct Open {
    /// Kind of the object.
    pub kind: Kind,
    /// Its first cell, then the last cell of each edge traced, as (row, column).
    pub cells: Vec<Cell>,
}

impl Open {
    fn traced(&self) -> usize {
        self.cells.len() - 1
    }

    /// The direction of the next edge; `None` once all edges are traced.
    pub fn due(&self) -> Option<Direction> {
        self.kind.edges().get(self.traced()).copied()
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The complete objects, in the order found.
    pub objects: Vec<Object>,
    /// The object in progress, if there is one.
    #[serde(serialize_with = "flat", deserialize_with = "unflat")]
    pub open: Option<Open>,
    /// Number of cells of the complete objects.
    pub ink: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

/// `[kind, row, col, …]`, or `[]`.
#[expect(clippy::ref_option, reason = "serde hands over the field by reference")]
fn flat<S: Serializer>(open: &Option<Open>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut sequence = serializer.serialize_seq(None)?;
    if let Some(open) = open {
        sequence.serialize_element(open.kind.name())?;
        for (row, column) in &open.cells {
            sequence.serialize_element(row)?;
            sequence.serialize_element(column)?;
        }
    }
    sequence.end()
}

fn unflat<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Open>, D::Error> {
    let mut parts = Vec::<Part>::deserialize(deserializer)?.into_iter();
    let Some(kind) = parts.next() else { return Ok(None) };

    let mut cells = Vec::new();
    while let Some(row) = parts.next() {
        if let (Part::Place(row), Some(Part::Place(column))) = (row, parts.next()) {
            cells.push((row, column));
        } else {
            // Without cells the field is refused below.
            cells.clear();
            break;
        }
    }

    match (kind, cells.is_empty()) {
        (Part::Kind(kind), false) => Ok(Some(Open { kind, cells })),
        _ => Err(serde::de::Error::custom(
            "must be a kind, then rows and columns of cells, or empty",
        )),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Kind(Kind),
    Place(usize),
}

/// An action line; the page explains its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begins an object of this kind at this cell.
    New(Kind, Cell),
    /// The object's next edge, in this direction, ends at this cell.
    Edge(Direction, Cell),
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] =
        &["new <rect|hline|vline> <nat> <nat>", "<right|down|left|up> <nat> <nat>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let cell = (fields.nat(1)?, fields.nat(2)?);
        let word = fields.text(0)?;

        if form == 0 {
            let kind = [Kind::Rect, Kind::Hline, Kind::Vline]
                .into_iter()
                .find(|kind| kind.name() == word)?;
            return Some(Action::New(kind, cell));
        }

        let direction = Kind::Rect.edges().iter().find(|direction| direction.name() == word)?;
        Some(Action::Edge(*direction, cell))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(kind, (row, column)) => write!(f, "new {} {row} {column}", kind.name()),
            Self::Edge(direction, (row, column)) => {
                write!(f, "{} {row} {column}", direction.name())
            }
        }
    }
}

impl Task for AsciiArtParse {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let objects = page::size::OBJECTS.draw(difficulty, rng);
            let mut grid = vec![vec![b' '; COLUMNS]; ROWS];
            let placed = (0..objects)
                .all(|_| (0..FAILURES_MAX).any(|_| place(&mut grid, &draw_object(rng))));
            if placed {
                let grid =
                    grid.into_iter().map(|row| row.into_iter().map(char::from).collect()).collect();
                return Instance { grid };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let (rows, columns) = (instance.grid.len(), instance.columns());
        let range = format!(
            "is {rows} × {columns}; give up to {ROWS_MAX} rows of up to {COLUMNS_MAX} characters"
        );
        InvalidInput::unless(
            (1..=ROWS_MAX).contains(&rows) && (1..=COLUMNS_MAX).contains(&columns),
            "grid",
            range,
        )?;

        let characters = instance.grid.iter().all(|row| row.bytes().all(|c| b" +-|".contains(&c)));
        InvalidInput::unless(characters, "grid", "must consist of blanks, +, - and |")?;

        let equal = instance.grid.iter().all(|row| row.len() == columns);
        InvalidInput::unless(equal, "grid", "all rows must have the same length")?;
        InvalidInput::unless(instance.ink() > 0, "grid", "must not be blank")?;

        let few = Self::steps_max(instance) <= STEPS_MAX;
        InvalidInput::unless(
            few,
            "grid",
            format!("has too many lines and corners: give up to {STEPS_MAX} steps"),
        )?;
        // Last, because the reference relies on the checks above.
        let drawing = reference_is_clean::<Self>(instance);
        InvalidInput::unless(
            drawing,
            "grid",
            "must be a drawing of lines and rectangles that share no cells",
        )
    }

    fn start(_: &Instance) -> State {
        State { objects: Vec::new(), open: None, ink: 0, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let most = usize::try_from(Self::steps_max(instance))
            .unwrap_or(usize::MAX)
            .saturating_add(OBJECTS_SPARE);
        limits::at_most("objects", state.objects.len(), most)?;

        let corners = |object: &Object| [(object.top, object.left), (object.bottom, object.right)];
        let inside = state.objects.iter().flat_map(corners).all(|cell| instance.has(cell));
        InvalidInput::unless(inside, "objects", "must lie in the grid")?;

        let due = state.open.as_ref().is_none_or(|open| {
            open.due().is_some() && open.cells.iter().all(|cell| instance.has(*cell))
        });
        InvalidInput::unless(
            due,
            "open",
            "must have a start and fewer edges than its kind, all of them in the grid",
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let (Action::New(_, cell) | Action::Edge(_, cell)) = *action;
        if !instance.has(cell) {
            return Err(Illegal("the cell is outside the grid"));
        }

        match (*action, &mut state.open) {
            (Action::New(kind, _), None) => state.open = Some(Open { kind, cells: vec![cell] }),
            (Action::Edge(direction, _), Some(open)) if open.due() == Some(direction) => {
                open.cells.push(cell);
                if open.due().is_none() {
                    // The corner that lies opposite: where `down` ended, or the only edge.
                    let (top, left) = open.cells[0];
                    let (bottom, right) = open.cells[if open.kind == Kind::Rect { 2 } else { 1 }];
                    let object = Object { kind: open.kind, top, left, bottom, right };
                    state.ink += object.cells().count();
                    state.objects.push(object);
                    state.open = None;
                }
            }
            _ => {
                return Err(Illegal(
                    "another action is due: `new`, or the next edge of the object in progress",
                ));
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let Some(open) = &state.open else {
            let cell = instance.next_start(&state.objects)?;
            return Some(Action::New(instance.kind(cell), cell));
        };

        let (direction, end) = (open.due()?, instance.edge_end(open)?);
        Some(Action::Edge(direction, end))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let (kind, cell) = match *action {
            Action::New(kind, cell) => (Some(kind), cell),
            Action::Edge(_, cell) => (before.open.as_ref().map(|open| open.kind), cell),
        };

        let ink = instance.at(cell);
        found.require(page::INK, ink != b' ' && (kind != Some(Kind::Rect) || ink == b'+'));

        if let (Action::Edge(direction, (row, column)), Some(open)) = (*action, &before.open) {
            let straight = open.cells.last().is_some_and(|from| {
                if direction.is_horizontal() { row == from.0 } else { column == from.1 }
            });
            found.require(page::AXIS, straight);
        }

        // What makes a trace sound: by `kind` and `edge` the start of an object fixes all of it. By
        // `ink`, `once` and `all-ink` the objects share out the drawn cells. An object starts at
        // its first cell in reading order, and by `scan-order` the objects come in that order: each
        // starts at the first drawn cell that those before it leave, as in the scan.
        match (action, &before.open) {
            (Action::New(kind, start), _) => {
                found.require(page::KIND, *kind == instance.kind(*start));
            }
            (Action::Edge(_, end), open) => {
                let due = open.as_ref().and_then(|open| instance.edge_end(open));
                found.require(page::EDGE, due == Some(*end));
            }
        }

        let complete = after.objects.iter().map(|object| (object.top, object.left));
        let starts = complete.chain(after.open.iter().map(|open| open.cells[0]));
        found.require(page::SCAN_ORDER, starts.is_sorted_by(|a, b| a < b));

        let columns = instance.columns();
        let mut taken = vec![false; instance.grid.len() * columns];
        let mut cells = after.objects.iter().flat_map(Object::cells);
        let once =
            cells.all(|(row, column)| !std::mem::replace(&mut taken[row * columns + column], true));
        found.require(page::ONCE, once);

        if Self::ended(instance, after) {
            found.require(page::ALL_INK, after.ink == instance.ink());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.open.is_none() && instance.next_start(&state.objects).is_none()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each rectangle has four corners of its own, and each line begins a run of its strokes.
        let (mut corners, mut runs) = (0, 0);
        for row in 0..instance.grid.len() {
            for column in 0..instance.columns() {
                let c = instance.at((row, column));
                let begins = |before: Direction| {
                    before.next((row, column)).is_none_or(|cell| instance.at(cell) != c)
                };
                corners += u64::from(c == b'+');
                runs += u64::from(
                    c == b'-' && begins(Direction::Left) || c == b'|' && begins(Direction::Up),
                );
            }
        }

        5 * corners / 4 + 2 * runs
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let count = |kind: Kind| state.objects.iter().filter(|object| object.kind == kind).count();
        json!({
            "objects": state.objects,
            "rects": count(Kind::Rect),
            "hlines": count(Kind::Hline),
            "vlines": count(Kind::Vline),
            "ink": state.ink,
        })
    }
}
