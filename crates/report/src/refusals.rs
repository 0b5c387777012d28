//! How many lines of a run each constraint refused.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of a constraint's name, and most names that are counted: a program or a model may
/// invent one for each line.
const NAME_BYTES_MAX: usize = 128;
const NAMES_MAX: usize = 1_000;

/// Counts of refused lines by the name of the constraint. Names are cut to 128 bytes; after a
/// thousand names, new ones are not counted.
#[derive(Clone, Debug, Default)]
pub struct Refusals(BTreeMap<String, u64>);

impl Refusals {
    /// Counts a line that these constraints refused, once for each.
    pub fn count<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let cut = |name: &'n str| &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        for name in names.into_iter().map(cut).collect::<BTreeSet<_>>() {
            if let Some(lines) = self.0.get_mut(name) {
                *lines += 1;
            } else if self.0.len() < NAMES_MAX {
                self.0.insert(name.to_owned(), 1);
            }
        }
    }

    /// All counts by name.
    pub fn by_name(&self) -> &BTreeMap<String, u64> {
        &self.0
    }

    /// The constraints that refused most lines, at most `limit`, the one with most first.
    pub fn most(&self, limit: usize) -> Vec<(String, u64)> {
        let mut all: Vec<_> = self.0.clone().into_iter().collect();
        all.sort_by_key(|(_, lines)| Reverse(*lines));
        all.truncate(limit);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_once_for_each_constraint_and_names_have_limits() {
        let mut refusals = Refusals::default();
        refusals.count(["order", "range", "order"]);
        refusals.count(["range"]);
        refusals.count([]);
        let expected = [("range", 2), ("order", 1)];
        assert_eq!(refusals.most(9), expected.map(|(name, lines)| (name.to_owned(), lines)));
        assert_eq!(refusals.most(1).len(), 1);

        // A cut falls between characters: 63 of two bytes after the first.
        refusals.count([format!("x{}", "é".repeat(100)).as_str()]);
        assert!(refusals.by_name().contains_key(&format!("x{}", "é".repeat(63))));

        for number in 0..2_000 {
            refusals.count([number.to_string().as_str()]);
        }
        refusals.count(["range"]);
        assert_eq!((refusals.by_name().len(), refusals.by_name()["range"]), (1_000, 3));
    }
}
