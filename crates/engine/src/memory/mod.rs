//! What a context's KV pool holds, who may use which sequence, and what is kept for turns to come.
//!
//! A turn takes over a sequence, or shares the beginning of one, wherever a prompt begins like something that was computed
//! before: a head that many turns have in common is computed once, a step that is tried again begins where its prompt
//! ended, and a pop goes back to what is left of the history. What nobody uses is kept until its place is needed, the
//! longest unused first. This is bookkeeping only: the owner of the context carries out the [`Change`]s.

mod prefixes;

pub(super) use prefixes::Token;
#[cfg(feature = "llama")]
pub(super) use prefixes::common;
use prefixes::{Found, Prefixes};

use super::KvPool;

/// A sequence of a context. Can only be had from [`Memory::new`], because llama.cpp aborts on one that is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Seq(u8);

impl Seq {
    /// The number that llama.cpp knows it by.
    pub(super) fn raw(self) -> i32 {
        i32::from(self.0)
    }
}

/// What must be done to the KV pool, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Remove what a sequence holds from a position on.
    Cut { seq: Seq, from: u32 },
    /// Let `to`, which holds nothing, hold what `from` holds before position `end`; all of it if there is none.
    Copy { from: Seq, to: Seq, end: Option<u32> },
}

/// What was spared and what was thrown away, since the context was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spared {
    /// Tokens of prompts that were there already.
    pub(super) shared_tokens: u64,
    /// Sequences whose beginning came from another one.
    pub(super) forks: u64,
    /// Kept sequences that a turn went on with, after the tokens that differ were removed.
    pub(super) rollbacks: u64,
    /// Kept sequences that were given up for others.
    pub(super) evictions: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Holds nothing.
    Empty,
    /// Holds what a turn left, and was last used when so many tokens had been computed.
    Kept { used: u64 },
    /// A turn has it, and may still compute so many tokens.
    Live { promised: usize },
}

/// Copying a sequence of a split pool moves all of its part: not worth it for fewer tokens.
const COPIED_MIN: usize = 24;

/// The bookkeeping of one context.
#[derive(Debug)]
pub(super) struct Memory {
    pool: KvPool,
    /// Tokens that the whole pool holds.
    cells: usize,
    /// Most turns that have a sequence at the same time; there may be more sequences, for what is kept.
    live_max: usize,
    live: usize,
    uses: Vec<Use>,
    prefixes: Prefixes,
    /// Tokens that turns may still compute.
    promised: usize,
    /// Tokens that were computed.
    computed: u64,
    /// In a shared pool, tokens that may be computed until a kept sequence that nobody used goes.
    kept_tokens: u64,
    spared: Spared,
}

/// A sequence that a turn got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) seq: Seq,
    /// Tokens of its prompt that are there already; always fewer than the prompt has.
    pub(super) there: usize,
}

impl Memory {
    /// An empty pool of `cells` tokens with `sequences` (1..=256) sequences, of which turns have at most `live_max`. In a
    /// shared one, what nobody used while more than `kept_tokens` tokens were computed goes.
    pub(super) fn new(pool: KvPool, cells: u32, sequences: u16, live_max: u16, kept_tokens: u64) -> Self {
        let sequences = usize::from(sequences.clamp(1, 256));
        Self {
            pool,
            cells: cells as usize,
            live_max: usize::from(live_max),
            live: 0,
            uses: vec![Use::Empty; sequences],
            prefixes: Prefixes::new(sequences),
            promised: 0,
            computed: 0,
            kept_tokens,
            spared: Spared::default(),
        }
    }

    pub(super) fn spared(&self) -> Spared {
        self.spared
    }

    /// Whether no further turn can get a sequence.
    pub(super) fn is_full(&self) -> bool {
        self.live == self.live_max
    }

    /// Tokens of `prompt` that are there already; its last token always has to be computed, for the logits after it.
    pub(super) fn there(&self, prompt: &[Token]) -> usize {
        self.prefixes.find(&prompt[..prompt.len().saturating_sub(1)]).length
    }

    /// Gives a turn a sequence, if one is free and what it may compute has room. Adds to `changes` what must be done first.
    pub(super) fn place(&mut self, prompt: &[Token], tokens_max: usize, changes: &mut Vec<Change>) -> Option<Placed> {
        if self.is_full() {
            return None;
        }
        let mut found = self.prefixes.find(&prompt[..prompt.len().saturating_sub(1)]);
        let source = self.source(&found);
        let is_copied = self.pool == KvPool::Split && source.is_some_and(|seq| self.is_live(seq));
        if is_copied && found.length < COPIED_MIN {
            found = Found::default();
        }
        let source = source.filter(|_| found.length > 0);
        let is_kept = source.is_some_and(|seq| !self.is_live(seq));
        let whole = prompt.len() + tokens_max;
        let wanted = whole - found.length;
        let fits = self.fits(wanted, |seq| Some(seq) == source);
        let takes_over = is_kept && (!fits || source.is_some_and(|seq| self.is_worth_taking_over(seq, found.length)));
        // What is left of a sequence that is taken over counts with the rest of the prompt.
        let has_room = if takes_over { self.fits(whole, |_| false) } else { fits };
        if !has_room {
            return None;
        }
        let seq = match source {
            Some(source) if takes_over => source,
            _ => self.vacate(source, changes)?,
        };
        match source {
            Some(source) if source == seq => {
                self.cut(source, found.length, changes);
                self.spared.rollbacks += 1;
            }
            Some(source) => self.fork(source, seq, found.length, changes),
            None => self.cut(seq, 0, changes),
        }
        self.make_room(wanted, seq, source, changes);
        self.uses[usize::from(seq.0)] = Use::Live { promised: wanted };
        self.promised += wanted;
        self.live += 1;
        self.spared.shared_tokens += found.length as u64;
        Some(Placed { seq, there: found.length })
    }

    fn is_live(&self, seq: Seq) -> bool {
        matches!(self.uses[usize::from(seq.0)], Use::Live { .. })
    }

    /// Who to take a beginning from: a kept sequence with little else, if there is one.
    fn source(&self, found: &Found) -> Option<Seq> {
        found.holders.iter().min_by_key(|seq| (self.is_live(*seq), self.prefixes.length(*seq)))
    }

    /// Whether a kept sequence loses little of worth when a turn goes on with its first `length` tokens. In a split pool
    /// they would have to be copied, so there it always does.
    fn is_worth_taking_over(&self, seq: Seq, length: usize) -> bool {
        self.pool == KvPool::Split || self.prefixes.length(seq) - length <= length / 8
    }

    /// Whether `wanted` more tokens have room once everything went that no turn uses and `is_needed` does not name. The
    /// parts of a split pool are as long as a turn can be.
    fn fits(&self, wanted: usize, is_needed: impl Fn(Seq) -> bool) -> bool {
        let evictable = || self.prefixes.held_by_none(|seq| self.is_live(seq) || is_needed(seq));
        let taken = self.promised + self.prefixes.tokens() + wanted;
        self.pool == KvPool::Split || taken <= self.cells || taken - evictable() <= self.cells
    }

    /// A sequence that nobody uses; emptied, unless it is `source`.
    fn vacate(&mut self, source: Option<Seq>, changes: &mut Vec<Change>) -> Option<Seq> {
        let empty = self.sequences().find(|(_, used)| *used == Use::Empty);
        if let Some((empty, _)) = empty {
            return Some(empty);
        }
        let oldest = self.oldest_kept(source, None)?;
        if Some(oldest) != source {
            self.evict(oldest, changes);
        }
        Some(oldest)
    }

    fn sequences(&self) -> impl Iterator<Item = (Seq, Use)> {
        (0..=u8::MAX).map(Seq).zip(self.uses.iter().copied())
    }

    /// The kept sequence that was unused for longest, but for `spared`. The source of a beginning that is wanted now comes
    /// last.
    fn oldest_kept(&self, source: Option<Seq>, spared: Option<Seq>) -> Option<Seq> {
        let kept = self.sequences().filter_map(|(seq, used)| match used {
            Use::Kept { used } if Some(seq) != spared => Some((Some(seq) == source, used, seq)),
            _ => None,
        });
        kept.min().map(|(.., seq)| seq)
    }

    /// Evicts what is kept, the longest unused first, until a shared pool has room for `wanted` more tokens.
    fn make_room(&mut self, wanted: usize, seq: Seq, source: Option<Seq>, changes: &mut Vec<Change>) {
        while self.pool == KvPool::Shared && self.promised + self.prefixes.tokens() + wanted > self.cells {
            let Some(oldest) = self.oldest_kept(source, Some(seq)) else { break };
            self.evict(oldest, changes);
        }
    }

    /// Before a decode of `ahead` tokens: gives up what will not have been used for long after it, where that is in the way.
    /// In a shared pool every token looks at all cells up to the last one in use, kept ones too. After a certain number of
    /// tokens that has cost as much as computing the kept ones again would, whatever their number. Before and not after
    /// it, so that the decode fills the cells that become free and not those above them.
    pub(super) fn drop_stale(&mut self, ahead: usize, changes: &mut Vec<Change>) {
        if self.pool == KvPool::Split {
            return;
        }
        let computed = self.computed + ahead as u64;
        let is_stale = |used: Use| matches!(used, Use::Kept { used } if computed - used > self.kept_tokens);
        let stale: Vec<Seq> = self.sequences().filter(|(_, used)| is_stale(*used)).map(|(seq, _)| seq).collect();
        for seq in stale {
            self.evict(seq, changes);
        }
    }

    fn evict(&mut self, seq: Seq, changes: &mut Vec<Change>) {
        self.cut(seq, 0, changes);
        self.uses[usize::from(seq.0)] = Use::Empty;
        self.spared.evictions += 1;
    }

    fn cut(&mut self, seq: Seq, length: usize, changes: &mut Vec<Change>) {
        if self.prefixes.length(seq) > length {
            self.prefixes.cut(seq, length);
            changes.push(Change::Cut { seq, from: position(length) });
        }
    }

    fn fork(&mut self, from: Seq, to: Seq, length: usize, changes: &mut Vec<Change>) {
        self.cut(to, 0, changes);
        match self.pool {
            KvPool::Shared => changes.push(Change::Copy { from, to, end: Some(position(length)) }),
            // Parts can only be copied whole.
            KvPool::Split => {
                changes.push(Change::Copy { from, to, end: None });
                if self.prefixes.length(from) > length {
                    changes.push(Change::Cut { seq: to, from: position(length) });
                }
            }
        }
        self.prefixes.share(from, to, length);
        self.spared.forks += 1;
    }

    /// A turn's sequence holds `tokens` more: they were decoded.
    pub(super) fn computed(&mut self, seq: Seq, tokens: &[Token]) {
        self.prefixes.extend(seq, tokens);
        self.computed += tokens.len() as u64;
        if let Use::Live { promised } = &mut self.uses[usize::from(seq.0)] {
            let spent = tokens.len().min(*promised);
            *promised -= spent;
            self.promised -= spent;
        }
    }

    /// A turn is over. What its sequence holds is kept, if it is sound and others do not hold it anyway.
    pub(super) fn release(&mut self, seq: Seq, is_sound: bool, changes: &mut Vec<Change>) {
        let used = &mut self.uses[usize::from(seq.0)];
        if let Use::Live { promised } = *used {
            self.promised -= promised;
            self.live -= 1;
        }
        *used = Use::Kept { used: self.computed };
        let is_spare = self.pool == KvPool::Shared && self.prefixes.is_covered(seq);
        if !is_sound || is_spare || self.prefixes.length(seq) == 0 {
            self.cut(seq, 0, changes);
            self.uses[usize::from(seq.0)] = Use::Empty;
        }
    }
}

fn position(length: usize) -> u32 {
    u32::try_from(length).expect("invariant: a sequence is no longer than the pool, which is counted by a u32")
}

#[cfg(test)]
mod tests;
