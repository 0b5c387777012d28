//! Thompson's construction: the states and edges that each node of a regular expression adds.

use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::regex::{ALPHABET, Node, Quantifier};

/// An edge; without a letter it is an epsilon edge.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub from: u16,
    pub letter: Option<u8>,
    pub to: u16,
}

impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(3)?;
        tuple.serialize_element(&self.from)?;
        tuple.serialize_element(
            &self.letter.map_or(String::new(), |letter| char::from(letter).to_string()),
        )?;
        tuple.serialize_element(&self.to)?;
        tuple.end()
    }
}

impl<'de> Deserialize<'de> for Edge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (from, letter, to): (u16, String, u16) = Deserialize::deserialize(deserializer)?;
        let letter = match *letter.as_bytes() {
            [] => None,
            [letter] if ALPHABET.contains(&letter) => Some(letter),
            _ => {
                return Err(serde::de::Error::custom(format!(
                    "{letter:?} is neither a letter a to d nor empty"
                )));
            }
        };
        Ok(Self { from, letter, to })
    }
}

/// Start and end of a part of the automaton.
pub type Fragment = (u16, u16);

/// New states and new edges of a node.
pub fn growth(node: Node) -> (usize, usize) {
    match node {
        Node::Letter(_) => (2, 1),
        Node::Concatenation => (0, 1),
        Node::Alternation | Node::Quantified(Quantifier::Star) => (2, 4),
        Node::Quantified(_) => (2, 3),
    }
}

/// The epsilon edges of an operator with operands A and B, in the page's order.
pub fn epsilon_edges(node: Node, [a, b]: [Fragment; 2], s: u16, t: u16) -> Vec<(u16, u16)> {
    match node {
        Node::Letter(_) => Vec::new(),
        Node::Concatenation => vec![(a.1, b.0)],
        Node::Alternation => vec![(s, a.0), (s, b.0), (a.1, t), (b.1, t)],
        Node::Quantified(Quantifier::Star) => vec![(s, a.0), (s, t), (a.1, a.0), (a.1, t)],
        Node::Quantified(Quantifier::Plus) => vec![(s, a.0), (a.1, a.0), (a.1, t)],
        Node::Quantified(Quantifier::Optional) => vec![(s, a.0), (s, t), (a.1, t)],
    }
}
