//! The contents of a context's KV cache: which sequence holds which tokens, which is in use, and
//! what to evict.
//!
//! A turn continues a cached sequence, or copies a prefix from one, wherever its prompt has a
//! cached prefix. A prefix common to many turns is computed once, a retry starts where its prompt
//! ended, and after a pop the remaining history is still cached. Unused sequences stay cached until
//! their place is needed; eviction is LRU. Turns of different *spaces* share nothing, as if each
//! space were alone. This is bookkeeping only: the owner of the context applies the [`CacheOp`]s.

mod checkpoints;
mod prefix_tree;

pub(super) use checkpoints::CheckpointId;
use checkpoints::Checkpoints;
pub(super) use prefix_tree::Token;
#[cfg(feature = "llama")]
pub(super) use prefix_tree::common_prefix;
use prefix_tree::{Holders, PrefixTree};

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
    /// Give `seq` a saved state of its recurrent layers; what it holds beyond is truncated next.
    Restore { seq: SeqId, checkpoint: CheckpointId },
}

/// How the sequences of a model can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rollback {
    /// To any length.
    Any,
    /// To lengths whose states are saved, in at most `bytes_max` bytes: a recurrent layer keeps
    /// only the state after the last token.
    Saved {
        /// 0 saves nothing: then sequences are only continued where they end.
        bytes_max: u64,
    },
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
    /// Size of the saved states now, in bytes.
    pub(super) saved_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    /// Holds the tokens that a turn left. `last_used` is in tokens computed by the context.
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

/// Fewest tokens beyond a saved state that are worth another one.
const SAVED_TOKENS_MIN: usize = 16;

/// The bookkeeping of a context's KV pool; `S` is a saved state.
#[derive(Debug)]
pub(super) struct KvCache<S> {
    pool: KvPool,
    /// The saved states of a model that cannot be rolled back to any length.
    checkpoints: Option<Checkpoints<S>>,
    /// Capacity of the whole pool, in tokens.
    cells: usize,
    /// Most active sequences; there may be more sequences, which only cache.
    active_max: usize,
    active: usize,
    states: Vec<State>,
    /// The space of each sequence that holds something.
    spaces: Vec<u64>,
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
    /// Where the prompt leaves what other sequences hold, if the state there is worth saving.
    pub(super) branch: Option<usize>,
}

/// Where a turn can start.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    /// Length of the prefix.
    length: usize,
    /// The sequences that hold it.
    holders: Holders,
    /// Its state, if those sequences are beyond it and cannot be rolled back.
    checkpoint: Option<CheckpointId>,
    /// Length of the longest prefix that a sequence holds, with or without its state.
    held: usize,
}

impl<S> KvCache<S> {
    /// An empty pool of `cells` tokens with `sequences` (1..=256) sequences, of which at most
    /// `active_max` are active at once. In a shared pool, a cached sequence is evicted when unused
    /// while more than `unused_max` tokens were computed.
    pub(super) fn new(
        pool: KvPool,
        rollback: Rollback,
        cells: u32,
        sequences: u16,
        active_max: u16,
        unused_max: u64,
    ) -> Self {
        let sequences = usize::from(sequences.clamp(1, 256));
        Self {
            pool,
            checkpoints: match rollback {
                Rollback::Any => None,
                Rollback::Saved { bytes_max } => Some(Checkpoints::new(bytes_max)),
            },
            cells: cells as usize,
            active_max: usize::from(active_max),
            active: 0,
            states: vec![State::Empty; sequences],
            spaces: vec![0; sequences],
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

    /// Returns whether no further turn can get a sequence.
    pub(super) fn is_full(&self) -> bool {
        self.active == self.active_max
    }

    /// Length of the prefix of `prompt` that is cached in a space, less than its length: the last
    /// token must be computed for its logits.
    pub(super) fn cached(
        &self,
        space: u64,
        prompt: &[Token],
        is_whole: impl Fn(SeqId, usize) -> bool,
    ) -> usize {
        self.find(space, prompt, is_whole).length
    }

    /// Returns whether states are saved.
    pub(super) fn saves_states(&self) -> bool {
        self.checkpoints.as_ref().is_some_and(Checkpoints::is_enabled)
    }

    /// Returns whether a state of `bytes` of a sequence with these tokens is to be saved.
    pub(super) fn wants_state(&mut self, seq: SeqId, tokens: &[Token], bytes: u64) -> bool {
        let space = self.space(seq);
        self.checkpoints
            .as_mut()
            .is_some_and(|saved| saved.has_room_for(bytes) && !saved.has(space, tokens))
    }

    /// Saves the state of a sequence with these tokens, which takes `bytes`.
    pub(super) fn save(&mut self, seq: SeqId, tokens: &[Token], bytes: u64, state: S) {
        let space = self.space(seq);
        if let Some(saved) = &mut self.checkpoints {
            saved.save(space, tokens, bytes, state);
            self.stats.saved_bytes = saved.bytes();
        }
    }

    /// A saved state.
    pub(super) fn state(&self, id: CheckpointId) -> Option<&S> {
        self.checkpoints.as_ref()?.state(id)
    }

    /// The longest prefix of `prompt`, without its last token, that a turn can start from.
    fn find(&self, space: u64, prompt: &[Token], is_whole: impl Fn(SeqId, usize) -> bool) -> Start {
        let tokens = &prompt[..prompt.len().saturating_sub(1)];
        let is_here = |seq| self.space(seq) == space;
        let found = self.tree.find(tokens, is_here);
        let held = found.length;

        let Some(saved) = &self.checkpoints else {
            let holders = found.holders.filtered(|seq| is_whole(seq, held));
            let length = if holders.is_empty() { 0 } else { held };
            return Start { length, holders, checkpoint: None, held };
        };

        // A sequence that ends within the prompt is in the state that the next token needs.
        let ends = self.sequences().map(|(seq, _)| (seq, self.tree.length(seq)));
        let live = ends
            .filter(|(seq, length)| *length > 0 && is_here(*seq))
            .filter(|(seq, _)| self.tree.is_prefix(*seq, tokens))
            .max_by_key(|(_, length)| *length);
        let saved = saved.longest(space, &tokens[..held]);

        match (live, saved) {
            (Some((seq, length)), saved) if saved.is_none_or(|(_, other)| other <= length) => {
                Start { length, holders: Holders::of(seq), checkpoint: None, held }
            }
            (_, Some((id, length))) => {
                Start { length, holders: found.holders, checkpoint: Some(id), held }
            }
            (..) => Start { held, ..Start::default() },
        }
    }

    /// Allocates a sequence to a turn, if one is free and there is room for `prompt` and
    /// `tokens_max` more. Appends the operations that must be applied first to `ops`.
    ///
    /// `is_whole` says whether a sequence still has all cells that the token after this many needs:
    /// the cells of layers with a sliding window are reused once no next token needs them.
    pub(super) fn allocate(
        &mut self,
        space: u64,
        prompt: &[Token],
        tokens_max: usize,
        is_whole: impl Fn(SeqId, usize) -> bool,
        ops: &mut Vec<CacheOp>,
    ) -> Option<Slot> {
        if self.is_full() {
            return None;
        }

        let mut found = self.find(space, prompt, is_whole);
        let held = found.held;
        let source = self.source(&found);

        // In a split pool a copy moves a whole part, which a few tokens are not worth.
        let is_copied = self.pool == KvPool::Split && source.is_some_and(|seq| self.is_active(seq));
        if is_copied && found.length < COPY_TOKENS_MIN {
            found = Start::default();
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
        // The rest of a sequence that is continued is evictable too.
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
                self.restore(source, &found, ops);
                self.truncate(source, found.length, ops);
                self.stats.rollbacks += 1;
            }
            Some(source) => self.fork(source, seq, &found, ops),
            None => self.truncate(seq, 0, ops),
        }

        // Only now that the prefix is shared may its source be evicted as well.
        self.make_room(wanted, seq, source, ops);

        self.states[usize::from(seq.0)] = State::Active { reserved: wanted };
        self.spaces[usize::from(seq.0)] = space;
        self.reserved += wanted;
        self.active += 1;
        self.stats.shared_tokens += found.length as u64;

        let is_worth_saving = self.saves_states() && held >= found.length + SAVED_TOKENS_MIN;
        Some(Slot { seq, cached: found.length, branch: is_worth_saving.then_some(held) })
    }

    fn restore(&mut self, seq: SeqId, start: &Start, ops: &mut Vec<CacheOp>) {
        if let (Some(checkpoint), Some(saved)) = (start.checkpoint, &mut self.checkpoints) {
            saved.touch(checkpoint);
            ops.push(CacheOp::Restore { seq, checkpoint });
        }
    }

    fn space(&self, seq: SeqId) -> u64 {
        self.spaces[usize::from(seq.0)]
    }

    fn is_active(&self, seq: SeqId) -> bool {
        matches!(self.states[usize::from(seq.0)], State::Active { .. })
    }

    /// The sequence to take a prefix from: preferably a cached one that holds little else.
    fn source(&self, found: &Start) -> Option<SeqId> {
        found.holders.iter().min_by_key(|seq| (self.is_active(*seq), self.tree.length(*seq)))
    }

    /// Returns whether little is lost when a turn continues a cached sequence after its first
    /// `length` tokens, instead of copying them. In a split pool a copy is expensive, so there it
    /// always is.
    fn is_worth_continuing(&self, seq: SeqId, length: usize) -> bool {
        self.pool == KvPool::Split || self.tree.length(seq) - length <= length / 8
    }

    /// Returns whether there is room for `wanted` more tokens after evicting all cached sequences
    /// except those that `is_needed`. The parts of a split pool are as long as a turn can be.
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

    /// Before a decode of `ahead` tokens, evicts the sequences that will have been unused for too
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

    fn fork(&mut self, from: SeqId, to: SeqId, start: &Start, ops: &mut Vec<CacheOp>) {
        let length = start.length;
        let is_shorter = self.tree.length(from) > length;
        self.truncate(to, 0, ops);

        // A part can only be copied as a whole.
        let end = (self.pool == KvPool::Shared && is_shorter).then(|| position(length));
        ops.push(CacheOp::Copy { from, to, end });
        self.restore(to, start, ops);
        if self.pool == KvPool::Split && is_shorter {
            ops.push(CacheOp::Truncate { seq: to, from: position(length) });
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
mod saved_tests;
#[cfg(test)]
mod tests;
