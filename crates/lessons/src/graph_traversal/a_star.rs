//! A*: the neighbours of the expanded cell in turn, or the least of the open cells.
// The queue is shown with the keys that it is ordered by, f and h. Its entries have letters, and the cell of one is read.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::a_star::{AStar, Action, Instance, State};

use crate::Lesson;
use crate::numbers::incremented;
use crate::reads::looked_up;

pub struct Of;

/// Digits of g, f and cells; h has two.
const WIDTH: usize = 3;

fn name(place: usize) -> String {
    let letter = ('A'..='Z').chain('a'..='z').nth(place % 52).unwrap_or('~');
    "+".repeat(place / 52) + &letter.to_string()
}

/// The cells above, left, right and below of the one expanded last that lie in the grid, with their sides.
fn neighbours(instance: &Instance, cell: usize) -> Vec<(char, usize)> {
    let n = instance.n;
    let beside: Vec<_> = instance.grid.neighbours(cell).collect();
    let side = |other: usize| match other {
        other if other + n == cell => 'u',
        other if other + 1 == cell => 'l',
        other if other == cell + 1 => 'r',
        _ => 'd',
    };
    beside.into_iter().map(|other| (side(other), other)).collect()
}

/// f and h, the order of the queue.
fn priority(instance: &Instance, state: &State, cell: usize) -> (usize, usize) {
    let h = instance.grid.distance(cell, instance.goal);
    (usize::try_from(state.g[cell]).map_or(0, |g| g.saturating_add(h)), h)
}

impl Lesson for Of {
    type Task = AStar;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "done".to_owned();
        }
        let mut view = String::new();
        if let Some(cell) = state.expanded.last() {
            view += &format!("at {cell:03} goal {:03} g {:03}", instance.goal, state.g[*cell].max(0));
            for (side, other) in neighbours(instance, *cell) {
                let known = match usize::try_from(state.g[other]) {
                    Ok(g) => format!("{g:0WIDTH$}"),
                    Err(_) if instance.grid.is_free(other) => "-".to_owned(),
                    Err(_) => "#".to_owned(),
                };
                view += &format!(" {side}{other:03}:{known}");
            }
            view.push(' ');
        }
        view += "queue";
        for (place, cell) in state.open.iter().enumerate() {
            let (f, h) = priority(instance, state, *cell);
            let separator = if place == 0 { " " } else { "" };
            view += &format!("{separator}{}{f:03}{h:02}", name(place));
        }
        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = AStar::reference(instance, state)?;
        let mut line = String::new();
        if let Some(cell) = state.expanded.last() {
            if *cell == instance.goal {
                return Some(format!("{cell:03}/{:03}=", instance.goal));
            }
            let g = usize::try_from(state.g[*cell]).ok()?;
            line += &format!("{} ", incremented(g, WIDTH));
            for (side, other) in neighbours(instance, *cell) {
                line.push(side);
                let opens =
                    instance.grid.is_free(other) && usize::try_from(state.g[other]).map_or(true, |known| g + 1 < known);
                if opens {
                    return Some(line + "<");
                }
                line.push('.');
            }
            line.push(' ');
        }
        matches!(action, Action::Expand(_)).then(|| line + &least(instance, state))
    }

    /// The cell that is expanded.
    const READS_MAX: usize = 1;

    const UNTAUGHT: [u32; 3] = [0, 1, 3];

    /// `C` is the third entry of the queue: its cell.
    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        entry(state, address)
    }
}

/// The cell of an entry of the queue.
fn entry(state: &State, address: &str) -> Option<String> {
    let place = (0..state.open.len()).find(|place| name(*place) == address)?;
    Some(format!("{:0WIDTH$}", state.open[place]))
}

/// Each entry with `l`, f and h if it precedes those before, else with `g`; then the first of all, whose cell is read.
fn least(instance: &Instance, state: &State) -> String {
    let mut line = String::new();
    let mut first: Option<((usize, usize), String)> = None;
    for (place, cell) in state.open.iter().enumerate() {
        let priority = priority(instance, state, *cell);
        line += &name(place);
        if first.as_ref().is_none_or(|(least, _)| priority < *least) {
            line += &format!("l{:03}{:02}", priority.0, priority.1);
            first = Some((priority, name(place)));
        } else {
            line.push('g');
        }
    }
    let cell = first.and_then(|(_, name)| Some(looked_up(&name, &entry(state, &name)?)));
    format!("{line} {}", cell.unwrap_or_default())
}
