//! Logic Grid: the clues in turn up to one that rules a house out; then the houses taken, then
//! those that need their only value.
// A domain is two octal digits, for the houses 0 to 2 and 3 to 5, the lowest house in the lowest
// bit; three for more houses. Clues have letters. A clue has its items with their domains, and
// between them `=` for same, `<` for left, `~` for next. Then each value's domain is copied. If it
// has one house left, the other values are checked for this house: `01..!3` is house 3, which value
// 3 still has. Then, for each digit of the domains, the digits of all values are copied, followed
// by the houses of this digit, each with the first two values that can be there.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::clue::{Clue, Item, Relation};
use prime_bench::tasks::classic_puzzles::logic_grid::{Instance, LogicGrid, State};

use crate::Lesson;

pub struct LogicGridLesson;

/// A street of the benchmark has at most six houses.
const STREET: usize = 6;

/// Houses of one digit of a domain.
const OF_DIGIT: usize = 3;

fn digits(houses: usize) -> usize {
    houses.max(STREET).div_ceil(OF_DIGIT)
}

fn digit(set: u16, place: usize) -> char {
    char::from(b'0' + u8::try_from(set >> (OF_DIGIT * place) & 7).unwrap_or(0))
}

fn octal(set: u16, houses: usize) -> String {
    (0..digits(houses)).map(|place| digit(set, place)).collect()
}

fn attribute(place: usize) -> char {
    u8::try_from(place).map_or('?', |place| char::from(b'A' + place % 26))
}

fn clue_key(place: usize) -> String {
    let letter = ('a'..='z').chain('A'..='Z').nth(place % 52).unwrap_or('?');
    "+".repeat(place / 52) + &letter.to_string()
}

fn sign(relation: Relation) -> char {
    match relation {
        Relation::Same => '=',
        Relation::Left => '<',
        Relation::Next => '~',
    }
}

impl Lesson for LogicGridLesson {
    type Task = LogicGrid;

    fn view(instance: &Instance, state: &State) -> String {
        let with_domain =
            |item: Item| format!("{item}:{}", octal(state.domains.of(item), instance.n));

        let mut view = String::new();
        for (place, clue) in instance.clues.iter().enumerate() {
            view += &clue_key(place);
            view += &match *clue {
                Clue::At(item, house) => format!("{}@{house}", with_domain(item)),
                Clue::Pair(relation, first, second) => {
                    format!("{}{}{}", with_domain(first), sign(relation), with_domain(second))
                }
            };
        }

        for (place, values) in state.domains.attributes().enumerate() {
            view += &format!(" {}", attribute(place));
            values.iter().for_each(|set| view += &octal(*set, instance.n));
        }
        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = LogicGrid::reference(instance, state)?;
        let (domains, n) = (&state.domains, instance.n);
        let octal = |set: u16| octal(set, n);
        let street = (1 << n) - 1;
        let mut line = String::new();

        // The clues, up to one that rules a house out.
        for (place, clue) in instance.clues.iter().enumerate() {
            line += &clue_key(place);
            let ruled_out = match *clue {
                Clue::At(item, house) => {
                    let others = domains.of(item) & !(1 << house);
                    (others != 0).then(|| octal(others))
                }
                Clue::Pair(relation, first, second) => {
                    let (x, y) = (domains.of(first), domains.of(second));
                    let others = x & !relation.fitting_first(y);
                    // The houses that fit an item, then those of its own that do not; the second
                    // item only if nothing of the first is ruled out.
                    let fitting = |set: u16| octal(set & street);
                    let of_first = fitting(relation.fitting_first(y));
                    if others != 0 {
                        Some(format!("{of_first}-{}", octal(others)))
                    } else {
                        let others = y & !relation.fitting_second(x);
                        let of_second = fitting(relation.fitting_second(x));
                        (others != 0).then(|| {
                            format!("{of_first}-{}{of_second}-{}", octal(0), octal(others))
                        })
                    }
                }
            };

            match ruled_out {
                Some(ruled_out) => return Some(format!("{line}!{ruled_out}")),
                None => line.push('.'),
            }
        }

        // The houses taken: a value with one house left keeps all others out of it.
        line.push(' ');
        for (place, values) in domains.attributes().enumerate() {
            line.push(attribute(place));
            for owner in 0..n {
                line += &octal(values[owner]);
                if !values[owner].is_power_of_two() {
                    line.push('-');
                    continue;
                }
                for value in (0..n).filter(|value| *value != owner) {
                    if values[value] & values[owner] != 0 {
                        return Some(format!("{line}!{value}"));
                    }
                    line.push('.');
                }
            }
        }

        // The values needed: one that alone can be in a house has no other.
        line.push(' ');
        for (place, values) in domains.attributes().enumerate() {
            line.push(attribute(place));
            for house in 0..n {
                if house % OF_DIGIT == 0 {
                    line.push(' ');
                    line.extend(values.iter().map(|set| digit(*set, house / OF_DIGIT)));
                    line.push(' ');
                }

                let mut able = (0..n).filter(|value| values[*value] & (1 << house) != 0);
                let (first, second) = (able.next(), able.next());

                let named = |value: Option<usize>| {
                    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
                };
                line += &format!("{house}{}{}", named(first), named(second));

                if (first, second) == (Some(action.item.value), None)
                    && place == action.item.attribute
                {
                    let left = values[action.item.value] & !(1 << house);
                    if left != 0 {
                        return Some(format!("{line}!{}", octal(left)));
                    }
                }
            }
        }
        None
    }
}
