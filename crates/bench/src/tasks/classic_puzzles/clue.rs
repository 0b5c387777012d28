//! Clues of a logic grid, as the page writes them: `at C1 0`, `same A1 B2`, `left C2 A3`,
//! `next B3 C2`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value of an attribute, such as `C1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Number of the attribute, from 0 for `A`.
    pub attribute: usize,
    /// Number of the value among those of its attribute, from 0.
    pub value: usize,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter =
            u8::try_from(self.attribute).map_or('?', |place| char::from(b'A' + place % 26));
        write!(f, "{letter}{}", self.value)
    }
}

impl Item {
    fn parse(text: &str) -> Option<Self> {
        let (letter, digit) = (text.bytes().next().filter(u8::is_ascii_uppercase)?, text.get(1..)?);
        let [digit @ b'0'..=b'9'] = *digit.as_bytes() else { return None };
        Some(Self { attribute: usize::from(letter - b'A'), value: usize::from(digit - b'0') })
    }
}

/// How the houses of two items lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// In one house.
    Same,
    /// In the house just left of the other's.
    Left,
    /// In adjacent houses.
    Next,
}

impl Relation {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Same, "same"), (Self::Left, "left"), (Self::Next, "next")];

    /// The houses of the first item that fit some house of the second, as bit sets.
    pub fn fitting_first(self, second: u16) -> u16 {
        match self {
            Self::Same => second,
            Self::Left => second >> 1,
            Self::Next => second >> 1 | second << 1,
        }
    }

    /// The houses of the second item that fit some house of the first.
    pub fn fitting_second(self, first: u16) -> u16 {
        match self {
            Self::Same => first,
            Self::Left => first << 1,
            Self::Next => first >> 1 | first << 1,
        }
    }
}

/// A condition on the houses of one item or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Clue {
    /// The item is in this house.
    At(Item, usize),
    /// The houses of the two items, in this order, are in this relation.
    Pair(Relation, Item, Item),
}

impl Clue {
    /// The items that the clue is about.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        let (first, second) = match *self {
            Self::At(item, _) => (item, None),
            Self::Pair(_, first, second) => (first, Some(second)),
        };
        std::iter::once(first).chain(second)
    }

    fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split(' ').collect();
        let [word, first, second] = words[..] else { return None };
        let first = Item::parse(first)?;

        if word == "at" {
            let [digit @ b'0'..=b'9'] = *second.as_bytes() else { return None };
            return Some(Self::At(first, usize::from(digit - b'0')));
        }

        let relation = Relation::ALL.into_iter().find(|(_, name)| *name == word)?.0;
        Some(Self::Pair(relation, first, Item::parse(second)?))
    }
}

impl fmt::Display for Clue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(item, house) => write!(f, "at {item} {house}"),
            Self::Pair(relation, first, second) => {
                write!(f, "{} {first} {second}", Relation::ALL[*relation as usize].1)
            }
        }
    }
}

/// A text that is not a clue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a clue, such as \"at C1 0\", \"same A1 B2\", \"left C2 A3\" or \"next B3 C2\""
)]
pub struct NotClue(String);

impl TryFrom<String> for Clue {
    type Error = NotClue;

    fn try_from(text: String) -> Result<Self, NotClue> {
        Self::parse(&text).ok_or(NotClue(text))
    }
}

impl From<Clue> for String {
    fn from(clue: Clue) -> Self {
        clue.to_string()
    }
}
