//! A round-robin queue over groups: many items in one group delay another group's next item by one
//! turn, not by all of them.
//!
//! Adding, taking and removing an item takes logarithmic time in the queue's length, whichever item
//! is removed.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// What to do with a group's first item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Remove it and return it.
    Take,
    /// Leave it and its group where they are, and offer the next group's item.
    Skip,
    /// Leave it, and let no other item overtake it.
    Stop,
}

/// Items by group. Within a group, items leave in the order of their keys, which callers assign in
/// ascending order.
#[derive(Debug)]
pub(super) struct FairQueue<K, T> {
    groups: HashMap<u64, Group<K, T>>,
    /// The groups with items, by position; the lowest is next.
    round: BTreeMap<u64, u64>,
    group_of: HashMap<K, u64>,
    position_next: u64,
}

#[derive(Debug)]
struct Group<K, T> {
    position: u64,
    items: BTreeMap<K, T>,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self {
            groups: HashMap::new(),
            round: BTreeMap::new(),
            group_of: HashMap::new(),
            position_next: 0,
        }
    }
}

impl<K: Copy + Ord + Hash, T> FairQueue<K, T> {
    pub(super) fn is_empty(&self) -> bool {
        self.group_of.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.group_of.len()
    }

    /// Adds an item; a group without items joins at the end of the round.
    pub(super) fn push(&mut self, group: u64, key: K, item: T) {
        let entry = self.groups.entry(group).or_insert_with(|| {
            let position = self.position_next;
            self.position_next += 1;
            self.round.insert(position, group);
            Group { position, items: BTreeMap::new() }
        });
        entry.items.insert(key, item);
        self.group_of.insert(key, group);
    }

    /// Takes the first item for which `decide` says so, and moves its group to the end of the
    /// round.
    pub(super) fn take(&mut self, mut decide: impl FnMut(&T) -> Decision) -> Option<T> {
        let mut taken = None;
        for group in self.round.values() {
            let (key, item) = self.groups.get(group)?.items.first_key_value()?;
            match decide(item) {
                Decision::Skip => {}
                Decision::Stop => return None,
                Decision::Take => {
                    taken = Some((*group, *key));
                    break;
                }
            }
        }

        let (group, key) = taken?;
        let item = self.remove(key)?;

        // A group that has become empty is gone.
        if let Some(entry) = self.groups.get_mut(&group) {
            self.round.remove(&entry.position);
            entry.position = self.position_next;
            self.position_next += 1;
            self.round.insert(entry.position, group);
        }
        Some(item)
    }

    /// Takes the next item.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.take(|_| Decision::Take)
    }

    /// Removes the item with this key. The other items of its group keep their turn.
    pub(super) fn remove(&mut self, key: K) -> Option<T> {
        let group = self.group_of.remove(&key)?;
        let entry = self.groups.get_mut(&group)?;
        let item = entry.items.remove(&key);
        if entry.items.is_empty() {
            self.round.remove(&entry.position);
            self.groups.remove(&group);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::hash::Hasher;

    use super::*;

    /// Items are their own keys.
    fn queue(items: &[(u64, u32)]) -> FairQueue<u32, u32> {
        let mut queue = FairQueue::default();
        items.iter().for_each(|(group, item)| queue.push(*group, *item, *item));
        queue
    }

    fn rest(queue: &mut FairQueue<u32, u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn groups_take_turns_and_keep_their_own_order() {
        let mut queue = queue(&[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (3, 31)]);
        assert_eq!(queue.len(), 6);
        assert_eq!((queue.pop(), queue.pop()), (Some(10), Some(20)));
        queue.push(2, 21, 21);
        assert_eq!(rest(&mut queue), [30, 11, 21, 31, 12]);
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn a_skipped_item_keeps_its_place() {
        let mut queue = queue(&[(1, 10), (2, 20), (3, 30), (2, 21)]);
        let mut skip = |wanted: u32| {
            queue.take(|item| if *item == wanted { Decision::Take } else { Decision::Skip })
        };
        assert_eq!((skip(21), skip(20)), (None, Some(20)));
        assert_eq!(
            queue.take(|item| if *item == 30 { Decision::Take } else { Decision::Stop }),
            None
        );

        assert_eq!(rest(&mut queue), [10, 30, 21]);
    }

    #[test]
    fn removed_items_leave_no_empty_group() {
        let mut queue = queue(&[(1, 10), (2, 20), (2, 21), (3, 30)]);
        assert_eq!(
            (queue.remove(10), queue.remove(21), queue.remove(99)),
            (Some(10), Some(21), None)
        );

        assert_eq!((queue.len(), queue.groups.len(), queue.round.len()), (2, 2, 2));
        assert_eq!(rest(&mut queue), [20, 30]);
    }

    #[test]
    fn a_group_that_was_emptied_joins_at_the_end() {
        let mut queue = queue(&[(1, 10), (2, 20)]);
        queue.remove(10);
        queue.push(1, 11, 11);
        assert_eq!(rest(&mut queue), [20, 11]);
    }

    thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    /// A key that counts how often it is compared.
    #[derive(Debug, Clone, Copy)]
    struct Counted(u64);

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Counted {}

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    #[test]
    fn the_work_of_cancelling_all_grows_with_their_number_and_not_its_square() {
        const ITEMS: u64 = 10_000;
        // One group of many items, and many groups of one.
        for groups in [1, ITEMS] {
            let mut queue = FairQueue::default();
            (0..ITEMS).for_each(|item| queue.push(item % groups, Counted(item), item));
            COMPARISONS.set(0);
            for item in (0..ITEMS).rev() {
                assert_eq!(queue.remove(Counted(item)), Some(item));
            }
            assert!(queue.is_empty());
            let each = COMPARISONS.get() / ITEMS;
            assert!(each <= 64, "{each} comparisons for each of {ITEMS} items in {groups} groups");
        }
    }
}
