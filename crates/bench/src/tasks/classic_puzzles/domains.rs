//! The houses still possible for every item of a logic grid, and the rules that eliminate some.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clue::{Clue, Item};

/// Houses are digits.
pub const HOUSES_MAX: usize = 10;

/// A domain is a bit set of houses; the domains of an attribute's n values follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    n: usize,
    sets: Vec<u16>,
}

/// The houses of a bit set, ascending.
fn houses(set: u16) -> impl Iterator<Item = usize> {
    (0..HOUSES_MAX).filter(move |house| set & (1 << house) != 0)
}

fn first_house(set: u16) -> Option<usize> {
    houses(set).next()
}

impl Domains {
    /// Every house is possible for every item.
    pub fn full(n: usize, k: usize) -> Self {
        Self { n, sets: vec![(1 << n) - 1; n * k] }
    }

    /// The houses of an item, as a bit set.
    pub fn of(&self, item: Item) -> u16 {
        self.sets[item.attribute * self.n + item.value]
    }

    /// The domains of each attribute's values.
    pub fn attributes(&self) -> impl Iterator<Item = &[u16]> {
        self.sets.chunks(self.n)
    }

    /// Returns whether the house is possible for the item.
    pub fn holds(&self, item: Item, house: usize) -> bool {
        house < self.n && self.of(item) & (1 << house) != 0
    }

    /// Makes the house impossible for the item.
    pub fn eliminate(&mut self, item: Item, house: usize) {
        self.sets[item.attribute * self.n + item.value] &= !(1 << house);
    }

    /// Returns whether some domain has more than one house.
    pub fn are_open(&self) -> bool {
        self.sets.iter().any(|set| set.count_ones() > 1)
    }

    /// Returns whether every domain has one house.
    pub fn are_decided(&self) -> bool {
        self.sets.iter().all(|set| set.is_power_of_two())
    }

    /// Returns whether no domain is empty, and every house is possible for some value of each
    /// attribute.
    pub fn are_possible(&self) -> bool {
        let street = (1 << self.n) - 1;
        self.sets.iter().all(|set| *set != 0)
            && self.attributes().all(|values| values.iter().fold(0, |all, set| all | set) == street)
    }

    /// Returns whether a client's domains are those of k attributes with n values, on a street of n
    /// houses.
    pub fn fit(&self, n: usize, k: usize) -> bool {
        self.n == n && self.sets.len() == n * k && self.are_on_street()
    }

    /// Returns whether all possible houses exist.
    pub fn are_on_street(&self) -> bool {
        self.sets.iter().all(|set| *set < 1 << self.n)
    }

    /// Returns whether every clue has houses in the domains of its items that satisfy it.
    pub fn satisfy(&self, clues: &[Clue]) -> bool {
        clues.iter().all(|clue| match *clue {
            Clue::At(item, house) => self.holds(item, house),
            Clue::Pair(relation, first, second) => {
                self.of(first) & relation.fitting_first(self.of(second)) != 0
            }
        })
    }

    /// Returns whether every house of the other domains is in these.
    pub fn contain(&self, other: &Self) -> bool {
        self.sets.iter().zip(&other.sets).all(|(set, inner)| inner & !set == 0)
    }

    /// The first elimination that follows from the clue.
    fn ruled_out(&self, clue: Clue) -> Option<(Item, usize)> {
        match clue {
            Clue::At(item, house) => Some((item, first_house(self.of(item) & !(1 << house))?)),
            Clue::Pair(relation, first, second) => {
                let (x, y) = (self.of(first), self.of(second));
                let of_first =
                    first_house(x & !relation.fitting_first(y)).map(|house| (first, house));
                of_first.or_else(|| Some((second, first_house(y & !relation.fitting_second(x))?)))
            }
        }
    }

    /// The first elimination of a value's only house from another value of its attribute.
    fn house_taken(&self) -> Option<(Item, usize)> {
        self.attributes().enumerate().find_map(|(attribute, values)| {
            values.iter().enumerate().filter(|(_, set)| set.is_power_of_two()).find_map(
                |(owner, set)| {
                    let value =
                        (0..self.n).find(|value| *value != owner && values[*value] & set != 0)?;
                    Some((Item { attribute, value }, first_house(*set)?))
                },
            )
        })
    }

    /// The first elimination of a further house from a value that alone can have some house.
    fn house_needed(&self) -> Option<(Item, usize)> {
        self.attributes().enumerate().find_map(|(attribute, values)| {
            (0..self.n).find_map(|house| {
                let mut able = (0..self.n).filter(|value| values[*value] & (1 << house) != 0);
                let value = able.next().filter(|_| able.next().is_none())?;
                Some((Item { attribute, value }, first_house(values[value] & !(1 << house))?))
            })
        })
    }

    /// The first elimination that a rule gives: clues, then houses taken, then houses that need
    /// their only value.
    pub fn first_elimination(&self, clues: &[Clue]) -> Option<(Item, usize)> {
        let by_clue = clues.iter().find_map(|clue| self.ruled_out(*clue));
        by_clue.or_else(|| self.house_taken()).or_else(|| self.house_needed())
    }

    /// Eliminates until no rule gives anything.
    pub fn propagate(&mut self, clues: &[Clue]) {
        while let Some((item, house)) = self.first_elimination(clues) {
            self.eliminate(item, house);
        }
    }

    /// The values of each attribute by house; `-` for a house that no value is certain to have.
    pub fn by_house(&self) -> Vec<String> {
        let value_in = |values: &[u16], house: usize| {
            let value = values.iter().position(|set| *set == 1 << house);
            value.map_or_else(|| "-".to_owned(), |value| value.to_string())
        };
        self.attributes()
            .map(|values| (0..self.n).map(|house| value_in(values, house)).collect())
            .collect()
    }
}

impl Serialize for Domains {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |set: &u16| houses(*set).map(|house| house.to_string()).collect::<String>();
        serializer.collect_seq(
            self.attributes().map(|values| values.iter().map(text).collect::<Vec<_>>()),
        )
    }
}

impl<'de> Deserialize<'de> for Domains {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let set = |text: &String| {
            text.bytes()
                .try_fold(0, |set, digit| digit.is_ascii_digit().then(|| set | 1 << (digit - b'0')))
        };

        let attributes: Vec<Vec<String>> = Vec::deserialize(deserializer)?;
        let n = attributes.first().map_or(0, Vec::len);
        let sets: Option<Vec<u16>> = attributes.iter().flatten().map(set).collect();

        let refuse = || serde::de::Error::custom("must be equally long lists of texts of digits");
        let sets = sets
            .filter(|_| n > 0 && attributes.iter().all(|values| values.len() == n))
            .ok_or_else(refuse)?;
        Ok(Self { n, sets })
    }
}
