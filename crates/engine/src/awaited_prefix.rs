//! Whether a turn had better wait for a prefix that another one is computing.

use super::kv_cache::{KvCache, SeqId, Token, common_prefix};
use super::sequence::Sequence;

/// A turn waits for another turn's prefill if the two have at least this many more tokens in common
/// than are cached.
const AWAITED_PREFIX_MIN: usize = 16;

/// Whether an active turn of a space is computing a longer prefix of `prompt` than is cached: then
/// waiting for it costs nothing. Where states are saved, that turn is made to pause at the end of
/// the prefix.
pub(super) fn is_prefix_awaited<S>(
    active: &mut [Sequence],
    kv_cache: &KvCache<S>,
    (space, prompt): (u64, &[Token]),
    is_whole: impl Fn(SeqId, usize) -> bool,
) -> bool {
    let mut in_prefill =
        active.iter_mut().filter(|turn| turn.is_in_prefill() && turn.space() == space).peekable();
    if in_prefill.peek().is_none() {
        return false;
    }

    let cached = kv_cache.cached(space, prompt, is_whole);
    // A turn always computes its last token itself, for the logits.
    let wanted = &prompt[..prompt.len() - 1];
    in_prefill.any(|turn| {
        let common = common_prefix(turn.prompt(), wanted);
        // A state that was passed without being saved is lost.
        common >= cached + AWAITED_PREFIX_MIN && (!kv_cache.saves_states() || turn.pause_at(common))
    })
}
