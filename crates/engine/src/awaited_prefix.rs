//! Whether a turn had better wait for a prefix that another one is computing.

use super::kv_cache::{KvCache, Token, common_prefix};
use super::sequence::Sequence;

/// A turn waits for another turn's prefill if the two have at least this many more tokens in common
/// than are cached.
const AWAITED_PREFIX_MIN: usize = 16;

/// Whether an active turn is computing a longer prefix of `prompt` than is cached: then waiting for
/// it costs nothing.
pub(super) fn is_prefix_awaited(active: &[Sequence], kv_cache: &KvCache, prompt: &[Token]) -> bool {
    let mut in_prefill = active.iter().filter(|sequence| sequence.is_in_prefill()).peekable();
    if in_prefill.peek().is_none() {
        return false;
    }

    let cached = kv_cache.cached(prompt);
    // A turn always computes its last token itself, for the logits.
    let wanted = &prompt[..prompt.len() - 1];
    in_prefill
        .any(|sequence| common_prefix(sequence.prompt(), wanted) >= cached + AWAITED_PREFIX_MIN)
}
