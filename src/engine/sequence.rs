//! Identities of the sequences in one context.
//!
//! llama.cpp aborts on an identity out of range, so one can only be had from [`SeqIds`].

/// A sequence of a context; below the context's number of sequences, and in use by one owner.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SeqId(u8);

impl SeqId {
    /// The number that llama.cpp knows it by.
    pub(super) fn raw(&self) -> i32 {
        i32::from(self.0)
    }
}

/// Hands out the sequences of one context. Lower ones first, so that a lightly used context stays compact.
#[derive(Debug)]
pub(super) struct SeqIds {
    free: Vec<SeqId>,
}

impl SeqIds {
    /// All sequences `0..count`; `count` is at most 256 by [`super::EngineSpec::check`].
    pub(super) fn new(count: u16) -> Self {
        let last = u8::try_from(count.saturating_sub(1)).expect("invariant: at most 256 sequences");
        Self { free: (0..=last).rev().map(SeqId).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    pub(super) fn take(&mut self) -> Option<SeqId> {
        self.free.pop()
    }

    /// Gives a sequence back; its cells must have been removed from the KV pool.
    pub(super) fn give_back(&mut self, id: SeqId) {
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_handed_out_once() {
        let mut ids = SeqIds::new(256);
        let taken: Vec<SeqId> = std::iter::from_fn(|| ids.take()).collect();
        assert_eq!(taken.iter().map(SeqId::raw).collect::<Vec<_>>(), (0..256).collect::<Vec<_>>());
        assert!(ids.is_empty());
        for id in taken {
            ids.give_back(id);
        }
        assert!(!ids.is_empty());
    }
}
