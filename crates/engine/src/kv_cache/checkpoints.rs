//! Saved states of prefixes, for models whose sequences cannot be rolled back token by token.
//!
//! A recurrent layer keeps one state per sequence, which each token overwrites. A turn that
//! diverges from a sequence therefore starts from a state that was saved at or before the
//! divergence. The oldest states are dropped once all together exceed their limit.

use super::Token;

/// Most states that are kept, however small they are: each lookup compares with all of them.
const STATES_MAX: usize = 1024;

/// The number of a saved state. It is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointId(u64);

#[derive(Debug)]
struct Checkpoint<S> {
    id: CheckpointId,
    space: u64,
    /// The prefix after which the state was saved.
    tokens: Box<[Token]>,
    state: S,
    bytes: u64,
    /// The value of the clock when it was saved or last used.
    used: u64,
}

/// The saved states of a context.
#[derive(Debug)]
pub(super) struct Checkpoints<S> {
    all: Vec<Checkpoint<S>>,
    bytes: u64,
    bytes_max: u64,
    next: u64,
    clock: u64,
}

impl<S> Checkpoints<S> {
    /// None yet, and together at most `bytes_max` bytes; 0 saves nothing.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { all: Vec::new(), bytes: 0, bytes_max, next: 0, clock: 0 }
    }

    /// Returns whether states are saved at all.
    pub(super) fn is_enabled(&self) -> bool {
        self.bytes_max > 0
    }

    /// Size of all states in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The state of the longest prefix of `tokens` in a space, and the prefix's length.
    pub(super) fn longest(&self, space: u64, tokens: &[Token]) -> Option<(CheckpointId, usize)> {
        let here = self.all.iter().filter(|saved| saved.space == space);
        let prefixes = here.filter(|saved| tokens.starts_with(&saved.tokens));
        prefixes.map(|saved| (saved.id, saved.tokens.len())).max_by_key(|(_, length)| *length)
    }

    pub(super) fn state(&self, id: CheckpointId) -> Option<&S> {
        self.all.iter().find(|saved| saved.id == id).map(|saved| &saved.state)
    }

    /// Makes a state the last one to be dropped.
    pub(super) fn touch(&mut self, id: CheckpointId) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(saved) = self.all.iter_mut().find(|saved| saved.id == id) {
            saved.used = clock;
        }
    }

    /// Returns whether the state after `tokens` is saved in a space; then it counts as used.
    pub(super) fn has(&mut self, space: u64, tokens: &[Token]) -> bool {
        let is_it = |saved: &&Checkpoint<S>| saved.space == space && *saved.tokens == *tokens;
        let saved = self.all.iter().find(is_it).map(|saved| saved.id);
        saved.inspect(|id| self.touch(*id)).is_some()
    }

    /// Returns whether a state of this size can be saved.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.bytes_max
    }

    /// Saves the state after `tokens` in a space, and drops those least recently used that leave no
    /// room for it. A state that alone exceeds the limit is not saved.
    pub(super) fn save(&mut self, space: u64, tokens: &[Token], bytes: u64, state: S) {
        if !self.has_room_for(bytes) {
            return;
        }

        while self.bytes + bytes > self.bytes_max || self.all.len() == STATES_MAX {
            let oldest = (0..self.all.len()).min_by_key(|at| self.all[*at].used);
            let Some(oldest) = oldest else { break };
            self.bytes -= self.all.swap_remove(oldest).bytes;
        }

        self.clock += 1;
        self.bytes += bytes;
        self.all.push(Checkpoint {
            id: CheckpointId(self.next),
            space,
            tokens: tokens.into(),
            state,
            bytes,
            used: self.clock,
        });
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_saved_prefix_is_found() {
        let mut saved = Checkpoints::new(100);
        saved.save(0, &[1, 2], 10, "two");
        saved.save(0, &[1, 2, 3, 4], 10, "four");
        saved.save(0, &[1, 9], 10, "other");

        let found = |tokens: &[Token]| {
            let (id, length) = saved.longest(0, tokens)?;
            Some((length, *saved.state(id)?))
        };
        assert_eq!(found(&[1, 2, 3, 4, 5]), Some((4, "four")));
        assert_eq!(found(&[1, 2, 3]), Some((2, "two")));
        assert_eq!(found(&[1]), None);
    }

    #[test]
    fn the_least_recently_used_is_dropped_at_the_limit() {
        let mut saved = Checkpoints::new(30);
        for first in 1..=3 {
            saved.save(0, &[first], 10, first);
        }
        assert!(saved.has(0, &[1]), "and now it is the last one to be dropped");

        saved.save(0, &[4], 20, 4);
        assert_eq!(saved.bytes(), 30);
        assert_eq!([1, 2, 3, 4].map(|first| saved.has(0, &[first])), [true, false, false, true]);
    }

    #[test]
    fn a_state_above_the_limit_is_not_saved() {
        let mut saved = Checkpoints::new(30);
        saved.save(0, &[1], 10, 1);
        saved.save(0, &[2], 31, 2);
        assert_eq!([1, 2].map(|first| saved.has(0, &[first])), [true, false]);

        let mut off = Checkpoints::new(0);
        off.save(0, &[1], 1, 1);
        assert!(!off.is_enabled() && !off.has(0, &[1]));
    }
}
