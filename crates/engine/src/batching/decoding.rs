//! What a step decodes: passes of batches, and what follows from each.
#![allow(
    clippy::disallowed_methods,
    reason = "the latency of decodes is for the watchdog, which measures real time"
)]

use std::time::Instant;

use llama_cpp_2::DecodeError;

use super::super::kv_cache::{CacheOp, SeqId};
use super::super::sequence::{Sequence, Step};
use super::super::transport::Transport;
use super::super::{EngineError, batch_budget, context_cache, ffi, passes};
use super::{Batcher, Fatal};

impl Batcher<'_> {
    /// Decodes what each turn needs for its next choice, and prefill.
    pub(super) fn decode(&mut self, transport: &mut impl Transport) -> Result<(), Fatal> {
        let turns: Vec<_> =
            self.active.iter().map(|turn| (turn.wanted(), turn.is_in_prefill())).collect();
        if turns.is_empty() {
            return Ok(());
        }
        let counts = batch_budget::allocate(self.batch_tokens, self.prefill_tokens, &turns);
        let passes = passes::divided(&counts, self.own_pass_max);
        // Turns that end leave, so places change from pass to pass.
        let turns: Vec<SeqId> = self.active.iter().map(Sequence::seq).collect();

        for (done, pass) in passes.iter().enumerate() {
            // A pass may take seconds.
            if done > 0 {
                self.tell(transport);
            }
            let pass: Vec<_> = pass.iter().map(|(turn, count)| (turns[*turn], *count)).collect();
            if !self.decode_pass(&pass)? {
                break;
            }
        }
        Ok(())
    }

    /// The place of an active turn. They are sorted.
    fn place(&self, seq: SeqId) -> Option<usize> {
        self.active.binary_search_by_key(&seq, Sequence::seq).ok()
    }

    /// Decodes one batch with the given number of tokens of each turn. Returns whether the KV pool
    /// had room.
    fn decode_pass(&mut self, pass: &[(SeqId, usize)]) -> Result<bool, Fatal> {
        self.fill_batch(pass);
        self.kv_cache
            .evict_unused(self.batch.n_tokens().unsigned_abs() as usize, &mut self.cache_ops);
        self.apply_cache_ops()?;

        let started = Instant::now();
        match self.context.decode(&mut self.batch) {
            Ok(()) => {}
            Err(DecodeError::NoKvCacheSlot) => {
                // The pool is as before the decode: fail the newest turn, and retry with the
                // others.
                if let Some(at) = (0..self.active.len()).max_by_key(|at| self.active[*at].id()) {
                    let newest = self.active.remove(at);
                    self.finish(newest, Err(EngineError::Overflow))?;
                }
                return Ok(false);
            }
            // -1 means that the batch is invalid, anything else that the backend failed: neither
            // can be recovered from.
            Err(error) => {
                return Err(Fatal(format!("decode failed: {error}: {}", ffi::take_logs())));
            }
        }

        self.decode_latency.record(started.elapsed());
        self.counts.decodes += 1;
        self.counts.decoded_tokens += u64::from(self.batch.n_tokens().unsigned_abs());

        for (seq, count) in pass {
            let Some(at) = self.place(*seq) else { continue };
            let step = self.decoded(at, *count)?;
            match step {
                Step::Continue => {
                    if let Some(tokens) = self.active[at].paused() {
                        context_cache::save(&self.context, &mut self.kv_cache, *seq, tokens)?;
                    }
                }
                Step::Finish(result) => {
                    let finished = self.active.remove(at);
                    self.finish(finished, result)?;
                }
            }
        }
        Ok(true)
    }

    /// Advances a turn past the batch, which has `count` of its tokens and its draft.
    fn decoded(&mut self, at: usize, count: usize) -> Result<Step, Fatal> {
        let turn = &mut self.active[at];
        let (start, seq) = (turn.computed(), turn.seq());
        let drafted = turn.draft_length();
        let step = turn.decoded(&self.context, &mut self.sampling);

        self.kv_cache.computed(seq, turn.computed_from(start));
        let right = turn.computed() - start - count;
        self.counts.drafted_tokens += drafted as u64;
        self.counts.accepted_tokens += right as u64;
        if right < drafted {
            // The bookkeeping never knew of them.
            let from = u32::try_from(turn.computed()).expect("invariant: positions are below 2^31");
            self.cache_ops.push(CacheOp::Truncate { seq, from });
            self.apply_cache_ops()?;
        }
        Ok(step)
    }

    /// Fills the batch with the given number of tokens of each turn, and drafts if there is room.
    fn fill_batch(&mut self, pass: &[(SeqId, usize)]) {
        self.batch.clear();
        // A pass of one turn takes as many as tiles may have, others as many as do without tiles.
        let most = match (self.own_pass_max, pass) {
            (Some(own), [(_, count)]) if *count > passes::MIXED_TOKENS_MAX => own,
            (Some(_), _) => passes::MIXED_TOKENS_MAX,
            (None, _) => self.batch_tokens,
        };
        let taken: usize = pass.iter().map(|(_, count)| count).sum();
        let mut room = most.min(self.batch_tokens).saturating_sub(taken);

        for (place, (seq, count)) in pass.iter().enumerate() {
            if let Some(at) = self.place(*seq) {
                // Each gets an equal part of what the others before it leave.
                let part = room / (pass.len() - place);
                room -= self.active[at].add(&mut self.batch, *count, part);
            }
        }
    }
}
