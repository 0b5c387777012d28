//! Submitted action lines: up to millions, in a single allocation.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// A list of lines in one string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionList {
    text: String,
    /// The end of each line in `text`.
    ends: Vec<usize>,
}

impl ActionList {
    /// Appends a line.
    pub fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.ends.push(self.text.len());
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The line at a place, from 0.
    pub fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start..end])
    }

    /// The lines in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|place| self.get(place))
    }
}

impl<'l> FromIterator<&'l str> for ActionList {
    fn from_iter<I: IntoIterator<Item = &'l str>>(lines: I) -> Self {
        let mut list = Self::default();
        lines.into_iter().for_each(|line| list.push(line));
        list
    }
}

/// Deserialises one line straight into the list, without a separate string.
struct Line<'l>(&'l mut ActionList);

impl<'de> serde::de::DeserializeSeed<'de> for Line<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Line<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, line: &str) -> Result<(), E> {
        self.0.push(line);
        Ok(())
    }
}

struct Lines;

impl<'de> Visitor<'de> for Lines {
    type Value = ActionList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of lines")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<ActionList, A::Error> {
        let mut list = ActionList::default();
        while lines.next_element_seed(Line(&mut list))?.is_some() {}
        Ok(list)
    }
}

impl<'de> Deserialize<'de> for ActionList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Lines)
    }
}
