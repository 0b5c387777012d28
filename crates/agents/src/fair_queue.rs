//! Work of several owners that waits for few workers. Owners take turns, so that one with much or
//! slow work holds up another by one piece at most; within an owner, the kinds of its work take
//! turns.

use std::collections::VecDeque;
use std::sync::Arc;

/// Waiting work, by owner and kind.
#[derive(Debug)]
pub struct FairQueue<K, T> {
    /// Owners with work that waits or runs, in the order of their turns. There are few.
    owners: VecDeque<Owner<K, T>>,
    share_max: usize,
}

#[derive(Debug)]
struct Owner<K, T> {
    name: Arc<str>,
    running: usize,
    /// Waiting work by kind, in the order of their turns; no queue is empty.
    kinds: VecDeque<(K, VecDeque<T>)>,
}

impl<K, T> Owner<K, T> {
    fn waiting(&self) -> usize {
        self.kinds.iter().map(|(_, items)| items.len()).sum()
    }
}

impl<K: PartialEq, T> FairQueue<K, T> {
    /// An empty queue. `share_max`, at least 1, is how much work of one owner may run at once.
    pub fn new(share_max: usize) -> Self {
        Self { owners: VecDeque::new(), share_max: share_max.max(1) }
    }

    /// Number of pieces that wait.
    pub fn waiting(&self) -> usize {
        self.owners.iter().map(Owner::waiting).sum()
    }

    /// Number of pieces of one owner that wait.
    pub fn waiting_of(&self, owner: &str) -> usize {
        self.owners.iter().find(|one| *one.name == *owner).map_or(0, Owner::waiting)
    }

    /// Adds a piece of work after those of its owner and kind.
    pub fn push(&mut self, owner: &Arc<str>, kind: K, item: T) {
        let known = self.owners.iter_mut().position(|one| one.name == *owner);
        let at = known.unwrap_or_else(|| {
            let name = Arc::clone(owner);
            self.owners.push_back(Owner { name, running: 0, kinds: VecDeque::new() });
            self.owners.len() - 1
        });

        let kinds = &mut self.owners[at].kinds;
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, items)) => items.push_back(item),
            None => kinds.push_back((kind, VecDeque::from([item]))),
        }
    }

    /// The owner whose turn it is.
    fn next(&self) -> Option<usize> {
        let may_run =
            |owner: &Owner<K, T>| !owner.kinds.is_empty() && owner.running < self.share_max;
        self.owners.iter().position(may_run)
    }

    /// True if [`FairQueue::take`] would return something.
    pub fn is_ready(&self) -> bool {
        self.next().is_some()
    }

    /// The next piece of work and its owner, which counts as running until [`FairQueue::done`].
    pub fn take(&mut self) -> Option<(Arc<str>, T)> {
        let mut owner = self.next().and_then(|at| self.owners.remove(at))?;
        let (kind, mut items) = owner.kinds.pop_front()?;
        let item = items.pop_front();
        if !items.is_empty() {
            owner.kinds.push_back((kind, items));
        }

        owner.running += 1;
        let name = Arc::clone(&owner.name);
        // Its next turn comes after those of all others.
        self.owners.push_back(owner);
        item.map(|item| (name, item))
    }

    /// Ends a piece that was taken.
    pub fn done(&mut self, owner: &str) {
        if let Some(one) = self.owners.iter_mut().find(|one| *one.name == *owner) {
            one.running = one.running.saturating_sub(1);
        }
        self.forget_idle();
    }

    /// Removes the waiting pieces that `keep` does not accept.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for owner in &mut self.owners {
            owner.kinds.iter_mut().for_each(|(_, items)| items.retain(&keep));
            owner.kinds.retain(|(_, items)| !items.is_empty());
        }
        self.forget_idle();
    }

    fn forget_idle(&mut self) {
        self.owners.retain(|owner| owner.running > 0 || !owner.kinds.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(share_max: usize, items: &[(&str, u8, &'static str)]) -> FairQueue<u8, &'static str> {
        let mut queue = FairQueue::new(share_max);
        for (owner, kind, item) in items {
            queue.push(&Arc::from(*owner), *kind, *item);
        }
        queue
    }

    /// The pieces that are taken while none ends.
    fn all(queue: &mut FairQueue<u8, &'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.take()).map(|(_, item)| item).collect()
    }

    #[test]
    fn owners_take_turns_and_so_do_the_kinds_of_one() {
        let items = [
            ("ada", 1, "a1"),
            ("ada", 1, "a1 again"),
            ("ada", 2, "a2"),
            ("bob", 1, "b1"),
            ("ada", 3, "a3"),
            ("bob", 1, "b1 again"),
            ("cy", 7, "c7"),
        ];
        let mut queue = queue(usize::MAX, &items);
        assert_eq!((queue.waiting(), queue.waiting_of("ada"), queue.waiting_of("no")), (7, 4, 0));
        let expected = ["a1", "b1", "c7", "a2", "b1 again", "a3", "a1 again"];
        assert_eq!(all(&mut queue), expected);
    }

    #[test]
    fn an_owner_gets_no_more_than_its_share() {
        let mut queue = queue(2, &[("ada", 1, "1"), ("ada", 1, "2"), ("ada", 1, "3")]);
        assert_eq!(all(&mut queue), ["1", "2"]);
        assert!(!queue.is_ready() && queue.waiting() == 1);
        queue.push(&Arc::from("bob"), 1, "b");
        assert_eq!(all(&mut queue), ["b"]);
        queue.done("bob");
        assert!(!queue.is_ready(), "that was another's");
        queue.done("ada");
        assert_eq!(all(&mut queue), ["3"]);
        assert_eq!(all(&mut self::queue(0, &[("ada", 1, "1"), ("ada", 1, "2")])), ["1"]);
    }

    #[test]
    fn one_who_comes_late_has_its_turn_before_one_who_was_served() {
        let mut queue = queue(usize::MAX, &[("ada", 1, "1"), ("ada", 1, "2")]);
        assert_eq!(queue.take().map(|(_, item)| item), Some("1"));
        queue.done("ada");
        queue.push(&Arc::from("bob"), 1, "b");
        assert_eq!(queue.take().map(|(_, item)| item), Some("2"), "it was there first");
        assert_eq!(all(&mut queue), ["b"]);
    }

    #[test]
    fn nothing_is_left_of_work_that_was_removed_or_has_ended() {
        let mut queue = queue(1, &[("ada", 1, "stays"), ("ada", 2, "goes"), ("bob", 1, "goes")]);
        queue.retain(|item| *item == "stays");
        assert_eq!((queue.waiting(), queue.owners.len()), (1, 1));
        assert_eq!(all(&mut queue), ["stays"]);
        queue.done("ada");
        assert!(queue.owners.is_empty());
    }
}
