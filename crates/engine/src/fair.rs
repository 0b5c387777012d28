//! A queue that goes round its groups: one of many items delays another group's by one place, not by all.

use std::collections::{HashMap, VecDeque};

/// What to do with the next item of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It leaves the queue.
    Take,
    /// It stays, and so does its group's turn; look at the next group.
    Later,
    /// It stays, and nobody else may go before it.
    Stop,
}

/// Items by group; each group's in the order in which they came.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    groups: HashMap<u64, VecDeque<T>>,
    /// The groups that have items, the next one first.
    round: VecDeque<u64>,
    length: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { groups: HashMap::new(), round: VecDeque::new(), length: 0 }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Adds an item at the end of its group.
    pub(super) fn push(&mut self, group: u64, item: T) {
        let items = self.groups.entry(group).or_default();
        if items.is_empty() {
            self.round.push_back(group);
        }
        items.push_back(item);
        self.length += 1;
    }

    /// Takes the first item that `look` takes, and gives its group the last place of the round.
    pub(super) fn take(&mut self, mut look: impl FnMut(&T) -> Look) -> Option<T> {
        for place in 0..self.round.len() {
            let group = self.round[place];
            let items = self.groups.get_mut(&group)?;
            match look(items.front()?) {
                Look::Later => {}
                Look::Stop => return None,
                Look::Take => {
                    let item = items.pop_front();
                    let is_done = items.is_empty();
                    self.round.remove(place);
                    if is_done {
                        self.groups.remove(&group);
                    } else {
                        self.round.push_back(group);
                    }
                    self.length -= 1;
                    return item;
                }
            }
        }
        None
    }

    /// Takes the next item.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.take(|_| Look::Take)
    }

    /// Removes every item for which `is_gone` says so.
    pub(super) fn remove(&mut self, is_gone: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        self.groups.retain(|_, items| {
            let (gone, left): (VecDeque<T>, VecDeque<T>) = std::mem::take(items).into_iter().partition(&is_gone);
            removed.extend(gone);
            *items = left;
            !items.is_empty()
        });
        self.round.retain(|group| self.groups.contains_key(group));
        self.length -= removed.len();
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[(u64, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::default();
        items.iter().for_each(|(group, item)| queue.push(*group, *item));
        queue
    }

    fn rest(queue: &mut FairQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn groups_take_turns_and_keep_their_own_order() {
        let mut queue = queue(&[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (3, 31)]);
        assert_eq!(queue.len(), 6);
        assert_eq!((queue.pop(), queue.pop()), (Some(10), Some(20)));
        queue.push(2, 21);
        assert_eq!(rest(&mut queue), [30, 11, 21, 31, 12]);
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn an_item_that_waits_keeps_its_place() {
        let mut queue = queue(&[(1, 10), (2, 20), (3, 30), (2, 21)]);
        let mut skip = |wanted: u32| queue.take(|item| if *item == wanted { Look::Take } else { Look::Later });
        assert_eq!((skip(21), skip(20)), (None, Some(20)));
        assert_eq!(queue.take(|item| if *item == 30 { Look::Take } else { Look::Stop }), None);
        assert_eq!(rest(&mut queue), [10, 30, 21]);
    }

    #[test]
    fn removed_items_leave_no_empty_group() {
        let mut queue = queue(&[(1, 10), (2, 20), (2, 21), (3, 30)]);
        let mut removed = queue.remove(|item| [10, 21].contains(item));
        removed.sort_unstable();
        assert_eq!((removed, queue.len()), (vec![10, 21], 2));
        assert_eq!(rest(&mut queue), [20, 30]);
    }
}
