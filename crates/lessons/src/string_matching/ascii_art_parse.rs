//! ASCII Art Parse: the next drawn cell in the order of reading, and where an edge ends.
// Cells of objects that are found are blanked, as a parser marks them. Equal characters side by
// side are one run, with the places of its first and its last cell.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::ascii_art_parse::{AsciiArtParse, Instance, State};
use prime_bench::tasks::string_matching::drawing::{Cell, Kind};

use crate::Lesson;

pub struct AsciiArtParseLesson;

/// Runs of a line that are shown.
const RUNS: usize = 6;

/// Cells with their places along a line, as runs of equal characters without the blanks.
fn runs(cells: impl Iterator<Item = (usize, u8)>) -> String {
    let mut runs: Vec<(u8, usize, usize)> = Vec::new();

    for (place, character) in cells {
        match runs.last_mut() {
            Some((of, _, end)) if *of == character && place.abs_diff(*end) == 1 => *end = place,
            _ if character == b' ' => {}
            _ => runs.push((character, place, place)),
        }
    }

    let run = |(character, start, end): &(u8, usize, usize)| {
        format!(" {}{start:02}-{end:02}", char::from(*character))
    };
    runs.iter().take(RUNS).map(run).collect()
}

/// The rows from the start of the last object on, up to one in which something is left.
fn scanned(instance: &Instance, state: &State) -> String {
    let (row, column) = state.objects.last().map_or((0, 0), |object| (object.top, object.left + 1));
    let mut line = String::new();

    for row_now in row..instance.grid.len() {
        let from = if row_now == row { column } else { 0 };
        let left = |cell: Cell| !state.objects.iter().any(|object| object.covers(cell));
        let cells = (from..instance.grid[row_now].len()).map(|column| (row_now, column));

        let drawn =
            runs(cells.map(|cell| (cell.1, if left(cell) { instance.at(cell) } else { b' ' })));

        line += &format!(" {row_now:02}{}", if drawn.is_empty() { "." } else { &drawn });
        if !drawn.is_empty() {
            return line;
        }
    }

    line + " end"
}

impl Lesson for AsciiArtParseLesson {
    type Task = AsciiArtParse;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(open) = &state.open else { return format!("scan{}", scanned(instance, state)) };
        let (Some(direction), Some(from)) = (open.due(), open.cells.last().copied()) else {
            return "-".to_owned();
        };

        let cells = std::iter::successors(direction.next(from), |cell| direction.next(*cell));
        // Outside of the grid all is blank.
        let drawn = cells
            .map(|cell| (cell, instance.at(cell)))
            .take_while(|(_, character)| *character != b' ');

        let along = |cell: Cell| if direction.is_horizontal() { cell.1 } else { cell.0 };
        let drawn = runs(drawn.map(|(cell, character)| (along(cell), character)));

        let kind = if open.kind == Kind::Rect { "edge" } else { "line" };
        format!("{kind} {} {:02} {:02}{drawn}", direction.name(), from.0, from.1)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        AsciiArtParse::reference(instance, state).map(|_| String::new())
    }
}
