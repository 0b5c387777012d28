//! The contents of a context's KV cache: which sequence holds which tokens, which is in use, and
//! what to evict.
//!
//! A turn continues a cached sequence, or copies a prefix from one, wherever its prompt has a
//! cached prefix. A prefix common to many turns is computed once, a retry starts where its prompt
//! ended, and after a pop the remaining history is still cached. Unused sequences stay cached until
//! their place is needed; eviction is LRU. This is bookkeeping only: the owner of the context
//! applies the [`CacheOp`]s.

mod prefix_tree;

pub(super) use prefix_tree::Token;
#[cfg(feature = "llama")]
pub(super) use prefix_tree::common_prefix;
use prefix_tree::{Match, PrefixTree};

use super::KvPool;

/// A sequence of a context. Only [`KvCache`] makes them, because llama.cpp aborts on one that is
/// out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SeqId(u8);

impl SeqId {
    /// Its `llama_seq_id`.
    pub(super) fn raw(self) -> i32 {
        i32::from(self.0)
    }
}

/// An operation on the KV pool. The order matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheOp {
    /// Remove a sequence's cells from a position on.
    Truncate { seq: SeqId, from: u32 },
    /// Give `to`, which is empty, the cells of `from` before position `end`, or all of them.
    Copy { from: SeqId, to: SeqId, end: Option<u32> },
}

/// Counters since the context was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CacheStats {
    /// Prompt tokens that were cached.
    pub(super) shared_tokens: u64,
    /// Sequences that started from a copy of another's prefix.
    pub(super) forks: u64,
    /// Cached sequences that a turn continued, truncated to the common prefix.
    pub(super) rollbacks: u64,
    /// Cached sequences that were evicted.
    pub(super) evictions: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    /// Holds what a turn left. `last_used` is in tokens computed by the context.
    Cached {
        last_used: u64,
    },
    /// In use by a turn that may compute `reserved` more tokens.
    Active {
        reserved: usize,
    },
}

/// Fewest tokens worth copying in a split pool, where a copy moves the sequence's whole part.
const COPY_TOKENS_MIN: usize = 24;

#[derive(Debug)]
pub(super) struct KvCache {
    pool: KvPool,
    /// Capacity of the whole pool, in tokens.
    cells: usize,
    /// Most active sequences; there may be more sequences, which only cache.
    active_max: usize,
    active: usize,
    states: Vec<State>,
    tree: PrefixTree,
    /// Tokens that active turns may still compute.
    reserved: usize,
    /// Tokens computed so far.
    computed: u64,
    /// In a shared pool, a cached sequence is evicted once more than this many tokens were computed
    /// since its last use.
    unused_max: u64,
    stats: CacheStats,
}

/// The sequence allocated to a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) seq: SeqId,
    /// Length of the cached prefix of its prompt; always less than the prompt's.
    pub(super) cached: usize,
}

impl KvCache {
    /// An empty pool of `cells` tokens with `sequences` (1..=256) sequences, of which at most
    /// `active_max` are active at once. In a shared pool, a cached sequence is evicted when unused
    /// while more than `unused_max` tokens were computed.
    pub(super) fn new(
        pool: KvPool,
        cells: u32,
        sequences: u16,
        active_max: u16,
        unused_max: u64,
    ) -> Self {
        let sequences = usize::from(sequences.clamp(1, 256));
        Self {
            pool,
            cells: cells as usize,
            active_max: usize::from(active_max),
            active: 0,
            states: vec![State::Empty; sequences],
            tree: PrefixTree::new(sequences),
            reserved: 0,
            computed: 0,
            unused_max,
            stats: CacheStats::default(),
        }
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Whether no further turn can get a sequence.
    pub(super) fn is_full(&self) -> bool {
        self.active == self.active_max
    }

    /// Length of the cached prefix of `prompt`, less than its length: the last token must be
    /// computed for its logits.
    pub(super) fn cached(&self, prompt: &[Token]) -> usize {
        self.tree.find(&prompt[..prompt.len().saturating_sub(1)]).length
    }

    /// Allocates a sequence to a turn, if one is free and there is room for `prompt` and
    /// `tokens_max` more. Appends the operations that must be applied first to `ops`.
    pub(super) fn allocate(
        &mut self,
        prompt: &[Token],
        tokens_max: usize,
        ops: &mut Vec<CacheOp>,
    ) -> Option<Slot> {
        if self.is_full() {
            return None;
        }

        let mut found = self.tree.find(&prompt[..prompt.len().saturating_sub(1)]);
        let source = self.source(&found);

        // In a split pool a copy moves a whole part, which a few tokens are not worth.
        let is_copied = self.pool == KvPool::Split && source.is_some_and(|seq| self.is_active(seq));
        if is_copied && found.length < COPY_TOKENS_MIN {
            found = Match::default();
        }

        let source = source.filter(|_| found.length > 0);
        let is_cached = source.is_some_and(|seq| !self.is_active(seq));

        let whole = prompt.len() + tokens_max;
        let wanted = whole - found.length;
        let fits = self.fits(wanted, |seq| Some(seq) == source);

        // A cached source is continued instead of copied if that loses little, or if there is no
        // room for both.
        let continues = is_cached
            && (!fits || source.is_some_and(|seq| self.is_worth_continuing(seq, found.length)));
        // The rest of a sequence that is continued is evictable, too.
        let has_room = if continues { self.fits(whole, |_| false) } else { fits };

        if !has_room {
            return None;
        }

        let seq = match source {
            Some(source) if continues => source,
            _ => self.vacate(source, ops)?,
        };

        match source {
            Some(source) if source == seq => {
                self.truncate(source, found.length, ops);
                self.stats.rollbacks += 1;
            }
            Some(source) => self.fork(source, seq, found.length, ops),
            None => self.truncate(seq, 0, ops),
        }

        // Only now that the prefix is shared may its source be evicted as well.
        self.make_room(wanted, seq, source, ops);

        self.states[usize::from(seq.0)] = State::Active { reserved: wanted };
        self.reserved += wanted;
        self.active += 1;
        self.stats.shared_tokens += found.length as u64;

        Some(Slot { seq, cached: found.length })
    }

    fn is_active(&self, seq: SeqId) -> bool {
        matches!(self.states[usize::from(seq.0)], State::Active { .. })
    }

    /// The sequence to take a prefix from: preferably a cached one that holds little else.
    fn source(&self, found: &Match) -> Option<SeqId> {
        found.holders.iter().min_by_key(|seq| (self.is_active(*seq), self.tree.length(*seq)))
    }

    /// Whether little is lost when a turn continues a cached sequence after its first `length`
    /// tokens, instead of copying them. In a split pool a copy is expensive, so there it always is.
    fn is_worth_continuing(&self, seq: SeqId, length: usize) -> bool {
        self.pool == KvPool::Split || self.tree.length(seq) - length <= length / 8
    }

    /// Whether there is room for `wanted` more tokens after evicting all cached sequences except
    /// those that `is_needed`. The parts of a split pool are as long as a turn can be.
    fn fits(&self, wanted: usize, is_needed: impl Fn(SeqId) -> bool) -> bool {
        // A closure, because it visits every node and only matters in a pool that is short of room.
        let evictable =
            || self.tree.tokens_held_only_by_others(|seq| self.is_active(seq) || is_needed(seq));

        let taken = self.reserved + self.tree.tokens() + wanted;
        self.pool == KvPool::Split || taken <= self.cells || taken - evictable() <= self.cells
    }

    /// A sequence that is not in use; emptied, unless it is `source`.
    fn vacate(&mut self, source: Option<SeqId>, ops: &mut Vec<CacheOp>) -> Option<SeqId> {
        let empty = self.sequences().find(|(_, state)| *state == State::Empty);
        if let Some((empty, _)) = empty {
            return Some(empty);
        }

        let oldest = self.least_recently_used(source, None)?;
        if Some(oldest) != source {
            self.evict(oldest, ops);
        }
        Some(oldest)
    }

    fn sequences(&self) -> impl Iterator<Item = (SeqId, State)> {
        (0..=u8::MAX).map(SeqId).zip(self.states.iter().copied())
    }

    /// The cached sequence to evict next, except `except`. `source`, whose prefix is wanted now,
    /// comes last.
    fn least_recently_used(&self, source: Option<SeqId>, except: Option<SeqId>) -> Option<SeqId> {
        let cached = self.sequences().filter_map(|(seq, state)| match state {
            State::Cached { last_used } if Some(seq) != except => {
                Some((Some(seq) == source, last_used, seq))
            }
            _ => None,
        });
        cached.min().map(|(.., seq)| seq)
    }

    /// Evicts cached sequences until a shared pool has room for `wanted` more tokens.
    fn make_room(
        &mut self,
        wanted: usize,
        seq: SeqId,
        source: Option<SeqId>,
        ops: &mut Vec<CacheOp>,
    ) {
        while self.pool == KvPool::Shared
            && self.reserved + self.tree.tokens() + wanted > self.cells
        {
            let Some(oldest) = self.least_recently_used(source, Some(seq)) else { break };
            self.evict(oldest, ops);
        }
    }

    /// Evicts, before a decode of `ahead` tokens, the sequences that will have been unused for too
    /// long after it.
    ///
    /// In a shared pool every token attends over all cells up to the last one in use, including
    /// cached ones. After a certain number of tokens this has cost as much as recomputing the
    /// cached cells, however many there are. Eviction comes before the decode, so that the decode
    /// reuses the freed cells instead of those above them.
    pub(super) fn evict_unused(&mut self, ahead: usize, ops: &mut Vec<CacheOp>) {
        if self.pool == KvPool::Split {
            return;
        }
        let computed = self.computed + ahead as u64;
        let is_unused = |state| match state {
            State::Cached { last_used } => computed - last_used > self.unused_max,
            State::Empty | State::Active { .. } => false,
        };

        let unused: Vec<SeqId> =
            self.sequences().filter(|(_, state)| is_unused(*state)).map(|(seq, _)| seq).collect();

        for seq in unused {
            self.evict(seq, ops);
        }
    }

    fn evict(&mut self, seq: SeqId, ops: &mut Vec<CacheOp>) {
        self.truncate(seq, 0, ops);
        self.states[usize::from(seq.0)] = State::Empty;
        self.stats.evictions += 1;
    }

    fn truncate(&mut self, seq: SeqId, length: usize, ops: &mut Vec<CacheOp>) {
        if self.tree.length(seq) > length {
            self.tree.truncate(seq, length);
            ops.push(CacheOp::Truncate { seq, from: position(length) });
        }
    }

    fn fork(&mut self, from: SeqId, to: SeqId, length: usize, ops: &mut Vec<CacheOp>) {
        self.truncate(to, 0, ops);
        match self.pool {
            KvPool::Shared => ops.push(CacheOp::Copy { from, to, end: Some(position(length)) }),
            // A part can only be copied as a whole.
            KvPool::Split => {
                ops.push(CacheOp::Copy { from, to, end: None });
                if self.tree.length(from) > length {
                    ops.push(CacheOp::Truncate { seq: to, from: position(length) });
                }
            }
        }
        self.tree.share(from, to, length);
        self.stats.forks += 1;
    }

    /// Records that `tokens` were decoded into an active sequence.
    pub(super) fn computed(&mut self, seq: SeqId, tokens: &[Token]) {
        self.tree.extend(seq, tokens);
        self.computed += tokens.len() as u64;
        if let State::Active { reserved } = &mut self.states[usize::from(seq.0)] {
            let spent = tokens.len().min(*reserved);
            *reserved -= spent;
            self.reserved -= spent;
        }
    }

    /// Releases a turn's sequence. Its tokens stay cached if they are sound and no other sequence
    /// holds them as well.
    pub(super) fn release(&mut self, seq: SeqId, is_sound: bool, ops: &mut Vec<CacheOp>) {
        let state = &mut self.states[usize::from(seq.0)];
        if let State::Active { reserved } = *state {
            self.reserved -= reserved;
            self.active -= 1;
        }
        *state = State::Cached { last_used: self.computed };

        let is_redundant = self.pool == KvPool::Shared && self.tree.is_covered(seq);
        if !is_sound || is_redundant || self.tree.length(seq) == 0 {
            self.truncate(seq, 0, ops);
            self.states[usize::from(seq.0)] = State::Empty;
        }
    }
}

fn position(length: usize) -> u32 {
    u32::try_from(length)
        .expect("invariant: a sequence is no longer than the pool, which is counted by a u32")
}

#[cfg(test)]
mod tests;
