//! A*: whether the expanded cell is the goal, its neighbours in turn, or the least of the open cells.
// The queue is shown with the keys that it is ordered by, f and h, each a sign that stands for a number (`A` for 0), so that two are
// compared at once. Its entries have numbers, and the cell of one is read.

use std::cmp::Ordering;

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::a_star::{AStar, Action, Instance, State};

use crate::Lesson;
use crate::numbers::{incremented, pairwise};
use crate::reads::looked_up;

pub struct Of;

/// Digits of a cell.
const CELL: usize = 3;
/// Digits of g and of the numbers of the queue's entries, which few states need more of.
const WIDTH: usize = 2;

fn name(place: usize) -> String {
    format!("{place:0WIDTH$}")
}

/// A number in signs from `A` to `~`, the highest place first. Nearly all have one.
fn signs(mut number: usize, width: usize) -> String {
    let digits: Vec<char> = ('A'..='~').collect();
    let mut signs = Vec::new();
    while signs.len() < width || number > 0 {
        signs.push(digits[number % digits.len()]);
        number /= digits.len();
    }
    signs.iter().rev().collect()
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

/// What is known of a neighbour: its g, `-` if it has none, `#` if it is a wall.
fn known(instance: &Instance, state: &State, cell: usize) -> String {
    match usize::try_from(state.g[cell]) {
        Ok(g) => format!("{g:0WIDTH$}"),
        Err(_) if instance.grid.is_free(cell) => "-".to_owned(),
        Err(_) => "#".to_owned(),
    }
}

/// An entry of the queue: f and h, and both as signs.
struct Entry {
    rank: (usize, usize),
    f: String,
    h: String,
}

/// The queue in its order. All signs have the same width.
fn queue(instance: &Instance, state: &State) -> Vec<Entry> {
    let rank = |cell: &usize| {
        let h = instance.grid.distance(*cell, instance.goal);
        (usize::try_from(state.g[*cell]).map_or(0, |g| g.saturating_add(h)), h)
    };
    let ranks: Vec<_> = state.open.iter().map(rank).collect();
    let greatest = ranks.iter().map(|(f, h)| (*f).max(*h)).max().unwrap_or(0);
    let width = signs(greatest, 1).len();
    let entry = |rank: (usize, usize)| Entry { rank, f: signs(rank.0, width), h: signs(rank.1, width) };
    ranks.into_iter().map(entry).collect()
}

impl Lesson for Of {
    type Task = AStar;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "done".to_owned();
        }
        let mut view = String::new();
        if let Some(cell) = state.expanded.last() {
            view += &format!("at {cell:0CELL$} goal {:0CELL$} g {:0WIDTH$}", instance.goal, state.g[*cell].max(0));
            for (side, other) in neighbours(instance, *cell) {
                view += &format!(" {side}{other:0CELL$}:{}", known(instance, state, other));
            }
            view.push(' ');
        }
        view += "queue ";
        for (place, entry) in queue(instance, state).iter().enumerate() {
            view += &format!("{}{}{}", name(place), entry.f, entry.h);
        }
        view.trim_end().to_owned()
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = AStar::reference(instance, state)?;
        let mut line = String::new();
        if let Some(cell) = state.expanded.last() {
            line += &pairwise(&format!("{cell:0CELL$}"), &format!("{:0CELL$}", instance.goal));
            if *cell == instance.goal {
                return Some(line);
            }
            let g = usize::try_from(state.g[*cell]).ok()?;
            line += &format!(" {} ", incremented(g, WIDTH));
            for (side, other) in neighbours(instance, *cell) {
                line.push(side);
                let opens =
                    instance.grid.is_free(other) && usize::try_from(state.g[other]).map_or(true, |known| g + 1 < known);
                line += &up_to_difference(&known(instance, state, other), &format!("{:0WIDTH$}", g + 1));
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

    const UNTAUGHT: [u32; 3] = [0, 0, 2];

    /// `02` is the third entry of the queue: its cell.
    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        cell(state, address)
    }
}

/// The characters of one text up to the first that another one of the same length does not have there.
fn up_to_difference(text: &str, other: &str) -> String {
    let same = text.bytes().zip(other.bytes()).take_while(|(x, y)| x == y).count();
    text.chars().take(same + 1).collect()
}

/// The cell of an entry of the queue.
fn cell(state: &State, address: &str) -> Option<String> {
    let place = (0..state.open.len()).find(|place| name(*place) == address)?;
    Some(format!("{:0CELL$}", state.open[place]))
}

/// Each entry with f; `<` if that is less than of all before; h if it is not greater; `!` if the entry precedes all before. Then the
/// first of all, whose cell is read.
fn least(instance: &Instance, state: &State) -> String {
    let mut line = String::new();
    let mut first: Option<((usize, usize), String)> = None;
    for (place, entry) in queue(instance, state).into_iter().enumerate() {
        line += &format!("{}{}", name(place), entry.f);
        let order = first.as_ref().map_or(Ordering::Less, |(least, _)| entry.rank.0.cmp(&least.0));
        match order {
            Ordering::Less => line.push('<'),
            Ordering::Equal => {}
            Ordering::Greater => continue,
        }
        line += &entry.h;
        if first.as_ref().is_none_or(|(least, _)| entry.rank < *least) {
            line.push('!');
            first = Some((entry.rank, name(place)));
        }
    }
    let cell = first.and_then(|(_, name)| Some(looked_up(&name, &cell(state, &name)?)));
    format!("{line} {}", cell.unwrap_or_default())
}
