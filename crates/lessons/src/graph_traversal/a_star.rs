//! A*: checks the expanded cell for the goal, takes its neighbours in turn, or finds the least open
//! cell.
// The queue is shown with the key that it is ordered by, f and h, of one width. Each entry has a
// sign, and the cell of one is read.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::graph_traversal::a_star::{AStar, Action, Instance, State};

use crate::Lesson;
use crate::numbers::{compared, incremented, pairwise};
use crate::reads::looked_up;

pub struct AStarLesson;

/// Digits of a cell.
const CELL: usize = 3;
/// Digits of g; few states need more.
const WIDTH: usize = 3;
/// Characters with a meaning in comparisons or before neighbours, which cannot name entries.
const MARKS: &str = "lg=urd?";

/// The sign of an entry: capitals first. All entries beyond the signs are `~`.
fn name(place: usize) -> char {
    let letters = ('A'..='Z')
        .chain('a'..='z')
        .chain('!'..='/')
        .chain(':'..='@')
        .chain('['..='`')
        .chain('{'..='}');
    letters.filter(|sign| !MARKS.contains(*sign)).nth(place).unwrap_or('~')
}

/// A number as its tens in base 62, then its units: `A4` is 104, and two characters reach 619.
fn digits(number: usize, width: usize) -> String {
    let signs: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    let mut digits = vec![signs[number % 10]];

    let mut tens = number / 10;
    while digits.len() < width || tens > 0 {
        digits.push(signs[tens % signs.len()]);
        tens /= signs.len();
    }

    digits.iter().rev().collect()
}

/// The cells above, left, right and below of the one expanded last that lie in the grid, with their
/// sides.
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

/// The known distance of a neighbour: its g, `-` if it has none, `#` if it is a wall.
fn known(instance: &Instance, state: &State, cell: usize) -> String {
    match usize::try_from(state.g[cell]) {
        Ok(g) => format!("{g:0WIDTH$}"),
        Err(_) if instance.grid.is_free(cell) => "-".to_owned(),
        Err(_) => "#".to_owned(),
    }
}

/// The keys of the queue's entries, f and h, in its order. All numbers have the same width.
fn queue(instance: &Instance, state: &State) -> Vec<String> {
    let rank = |cell: &usize| {
        let h = instance.grid.distance(*cell, instance.goal);
        (usize::try_from(state.g[*cell]).map_or(0, |g| g.saturating_add(h)), h)
    };

    let ranks: Vec<_> = state.open.iter().map(rank).collect();
    let greatest = ranks.iter().map(|(f, h)| (*f).max(*h)).max().unwrap_or(0);
    let width = digits(greatest, 2).len();
    ranks.into_iter().map(|(f, h)| digits(f, width) + &digits(h, width)).collect()
}

impl Lesson for AStarLesson {
    type Task = AStar;

    fn view(instance: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "done".to_owned();
        }

        let mut view = String::new();

        if let Some(cell) = state.expanded.last() {
            view += &format!(
                "at {cell:0CELL$} goal {:0CELL$} g {:0WIDTH$}",
                instance.goal,
                state.g[*cell].max(0)
            );
            for (side, other) in neighbours(instance, *cell) {
                view += &format!(" {side}{other:0CELL$}:{}", known(instance, state, other));
            }
            view.push(' ');
        }

        view += "queue ";
        for (place, key) in queue(instance, state).iter().enumerate() {
            view += &format!("{}{key}", name(place));
        }

        view.trim_end().to_owned()
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = AStar::reference(instance, state)?;
        let mut line = String::new();

        // The cell expanded last: it is the goal, or its first neighbour that can be improved
        // follows.
        if let Some(cell) = state.expanded.last() {
            line += &pairwise(&format!("{cell:0CELL$}"), &format!("{:0CELL$}", instance.goal));
            if *cell == instance.goal {
                return Some(line);
            }

            let g = usize::try_from(state.g[*cell]).ok()?;
            line += &format!(" {} ", incremented(g, WIDTH));

            for (side, other) in neighbours(instance, *cell) {
                line.push(side);

                let known = known(instance, state, other);
                match usize::try_from(state.g[other]) {
                    Ok(before) => line += &compared(before, g + 1, WIDTH),
                    Err(_) => line += &known,
                }

                if instance.grid.is_free(other)
                    && usize::try_from(state.g[other]).map_or(true, |before| g + 1 < before)
                {
                    // What the action needs stands side by side.
                    return Some(line + &format!("! {other:0CELL$} {:0WIDTH$}", g + 1));
                }
                line.push('.');
            }
            line.push(' ');
        }

        // Entries beyond the signs cannot be told apart, so such steps are not taught.
        let all_have_names = state.open.len().checked_sub(1).is_none_or(|last| name(last) != '~');
        (matches!(action, Action::Expand(_)) && all_have_names)
            .then(|| line + &least(instance, state))
    }

    /// The cell that is expanded.
    const READS_MAX: usize = 1;

    const UNTAUGHT: [u32; 3] = [0, 0, 1];

    /// `C` is the third entry of the queue: its cell.
    fn read(_: &Instance, state: &State, address: &str) -> Option<String> {
        cell(state, address)
    }
}

/// The cell of an entry of the queue.
fn cell(state: &State, address: &str) -> Option<String> {
    let place = (0..state.open.len()).find(|place| name(*place).to_string() == address)?;
    Some(format!("{:0CELL$}", state.open[place]))
}

/// Each entry with its key up to the first digit in which it differs from the least key so far, and
/// that one's digit; `g` if the key is greater, `=` if it is the same. If it is less: `l`, the
/// whole key, and the name again. Then the least of all, whose cell is read.
fn least(instance: &Instance, state: &State) -> String {
    let mut line = String::new();
    let mut least: Option<(String, char)> = None;

    for (place, key) in queue(instance, state).into_iter().enumerate() {
        let name = name(place);

        line.push(name);
        let is_less = match &least {
            None => true,
            Some((other, _)) => {
                let difference = key
                    .chars()
                    .zip(other.chars())
                    .enumerate()
                    .find(|(_, (ours, theirs))| ours != theirs);
                match difference {
                    None => line += &format!("{key}="),
                    Some((place, (ours, theirs))) => {
                        line += &format!("{}{theirs}", &key[..=place]);
                        if ours > theirs {
                            line.push('g');
                        }
                    }
                }
                key < *other
            }
        };

        if is_less {
            line += &format!("l{key}{name}");
            least = Some((key, name));
        }
    }

    let cell = least
        .and_then(|(_, name)| Some(looked_up(&name.to_string(), &cell(state, &name.to_string())?)));
    format!("{line} {}", cell.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_names_of_their_own_and_numbers_keep_their_order() {
        let names: std::collections::BTreeSet<char> = (0..76).map(name).collect();
        assert_eq!((names.len(), name(76)), (76, '~'));

        let numbers: Vec<_> = [0, 9, 10, 99, 100, 619].map(|number| digits(number, 2)).into();
        assert_eq!(numbers, ["00", "09", "10", "99", "A0", "z9"]);
        assert!((0..619).all(|number| digits(number, 2) < digits(number + 1, 2)));
    }
}
