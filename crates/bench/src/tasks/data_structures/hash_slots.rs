//! The slots of a hash table with open addressing and tombstones.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tasks::action_macros::words;

/// A slot of the table; written as the key, -1 for empty or -2 for a tombstone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Never used.
    Empty,
    /// Held a key that was deleted.
    Tombstone,
    /// This key.
    Key(usize),
}

impl Serialize for Slot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.serialize_i64(-1),
            Self::Tombstone => serializer.serialize_i64(-2),
            Self::Key(key) => serializer.serialize_u64(*key as u64),
        }
    }
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            -1 => Ok(Self::Empty),
            -2 => Ok(Self::Tombstone),
            key => usize::try_from(key).map(Self::Key).map_err(|_| {
                serde::de::Error::custom(format!(
                    "{key} is not a key; -1 means an empty slot, -2 a tombstone"
                ))
            }),
        }
    }
}

words!(
    /// The content of a probed slot, as seen by the key that is sought.
    pub enum Content {
        /// The key that is sought.
        Hit = "hit",
        /// Never used: the search ends.
        Empty = "empty",
        /// A tombstone, which the search passes.
        Tomb = "tomb",
        /// Another key, which the search passes.
        Other = "other",
    }
);

/// The slots of the table, from 0.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slots(pub Vec<Slot>);

impl Slots {
    /// This many empty slots.
    pub fn empty(count: usize) -> Self {
        Self(vec![Slot::Empty; count])
    }

    /// The content of a slot, as seen by this key.
    pub fn content(&self, slot: usize, key: usize) -> Content {
        match self.0[slot] {
            Slot::Empty => Content::Empty,
            Slot::Tombstone => Content::Tomb,
            Slot::Key(stored) if stored == key => Content::Hit,
            Slot::Key(_) => Content::Other,
        }
    }

    /// The stored keys, by slot.
    pub fn keys(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|slot| if let Slot::Key(key) = slot { Some(*key) } else { None })
    }

    /// Number of tombstones.
    pub fn tombstones(&self) -> usize {
        self.0.iter().filter(|slot| **slot == Slot::Tombstone).count()
    }

    /// Returns whether every stored key is found by probing from its home on.
    pub fn is_reachable(&self, home: impl Fn(usize) -> usize) -> bool {
        let slots = self.0.len();
        // Length of the run of non-empty slots just before the current one. Probing wraps around,
        // so the run at the end of the table leads to slot 0.
        let mut run = self.0.iter().rev().take_while(|slot| **slot != Slot::Empty).count();

        self.0.iter().enumerate().all(|(place, slot)| {
            let reached = match slot {
                // Probing passes the slots from the key's home to here: none of them may be empty.
                Slot::Key(key) => (place + slots - home(*key)) % slots <= run,
                _ => true,
            };
            run = if *slot == Slot::Empty { 0 } else { run + 1 };
            reached
        })
    }

    /// Returns whether no key is stored twice.
    pub fn is_distinct(&self) -> bool {
        let mut keys: Vec<_> = self.keys().collect();
        keys.sort_unstable();
        keys.is_sorted_by(|a, b| a < b)
    }
}
