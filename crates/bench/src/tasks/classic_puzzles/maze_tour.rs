//! Moves and bumps of a depth-first search in a maze without cycles, in closed form: the position
//! of the search determines which branches it has finished, and each of them costs a known number
//! of moves and bumps.

use std::ops::Add;

/// The counts of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub moves: u64,
    pub bumps: u64,
}

impl Tally {
    const MOVE: Self = Self { moves: 1, bumps: 0 };
    const BUMP: Self = Self { moves: 0, bumps: 1 };
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { moves: self.moves + other.moves, bumps: self.bumps + other.bumps }
    }
}

/// The tallies, by cell, of a search from `start` that is at the cell and has tried its first 0 to
/// 4 sides, not counting the side that leads back. `behind` gives the cells on the other side of
/// the four sides of a cell, in the order of trying; `None` for a wall.
pub fn tallies(
    cells: usize,
    start: usize,
    behind: impl Fn(usize) -> [Option<usize>; 4],
) -> Vec<[Tally; 5]> {
    // Every cell with the one that it is entered from, which comes before it in the list.
    let mut order = vec![(start, None)];
    let mut place = 0;
    while let Some(&(cell, from)) = order.get(place) {
        let ahead = behind(cell).into_iter().flatten().filter(|next| Some(*next) != from);
        order.extend(ahead.map(|next| (next, Some(cell))));
        place += 1;
    }

    // The cost of entering a cell, searching everything beyond it, and leaving it again.
    let mut branch = vec![Tally::default(); cells];
    // Children come before their parents.
    for &(cell, from) in order.iter().rev() {
        let sides = behind(cell).into_iter().filter(|side| side.is_none() || *side != from);
        let searched = sides.map(|side| side.map_or(Tally::BUMP, |next| branch[next]));
        branch[cell] = searched.fold(Tally::MOVE + Tally::MOVE, Add::add);
    }

    let mut tallies = vec![[Tally::default(); 5]; cells];
    for &(cell, from) in &order {
        for (side, next) in behind(cell).into_iter().enumerate() {
            let tally = tallies[cell][side];
            tallies[cell][side + 1] = match next {
                None => tally + Tally::BUMP,
                // The way back is not counted.
                Some(next) if Some(next) == from => tally,
                Some(next) => {
                    tallies[next][0] = tally + Tally::MOVE;
                    tally + branch[next]
                }
            };
        }
    }
    tallies
}
