//! Between the cache's bookkeeping and a context: applies its operations, saves and restores
//! states.

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::{LlamaStateSeqFlags, SeqState};

use super::batching::Fatal;
use super::gguf::Header;
use super::kv_cache::{CacheOp, KvCache, Rollback, SeqId, Token};
use super::{Bytes, EngineSpec, ffi, sequence_state_bytes};

/// The cache of a context, with the saved states of its sequences.
pub(super) type ContextCache = KvCache<SeqState>;

/// A cached sequence leaves a shared pool when it was not used while this many tokens were
/// computed: by then attending over it has cost about as much as recomputing it. Measured on a CPU;
/// an estimate for GPUs, where attention is cheap.
const UNUSED_TOKENS_MAX_CPU: u64 = 256;
const UNUSED_TOKENS_MAX_GPU: u64 = 4096;

/// A model whose sequences can neither be rolled back nor copied in part: an architecture whose
/// cache compresses tokens.
const COMPRESSED: &str = "deepseek4";

/// How the sequences of a model can be rolled back: recurrent layers keep only the state after the
/// last token.
pub(super) fn rollback(model: &LlamaModel, header: &Header, spec: &EngineSpec) -> Rollback {
    if !model.is_recurrent() && !model.is_hybrid() {
        return Rollback::Any;
    }
    // The state of a hybrid model with a sliding window includes the window's cells, which other
    // sequences may have taken in the meantime.
    let is_whole = header.sliding_window() == 0 && header.architecture != COMPRESSED;
    let bytes_max = if is_whole { u64::from(spec.checkpoint_mib) << 20 } else { 0 };
    Rollback::Saved { bytes_max }
}

/// Why a model's drafts cannot be taken back, if they cannot: a wrong draft would stay in the
/// cache.
pub(super) fn undrafted(model: &LlamaModel, header: &Header) -> Option<&'static str> {
    if model.is_recurrent() || model.is_hybrid() || header.architecture == COMPRESSED {
        return Some("the model's sequences cannot be rolled back");
    }
    // Cells that the window has passed may be taken by tokens of a draft, and be needed again.
    (header.sliding_window() > 0).then_some("the model has layers with a sliding window")
}

/// The remark that no state of a sequence can be saved, because one alone exceeds the limit.
pub(super) fn unsaved(header: &Header, spec: &EngineSpec) -> Option<String> {
    let (state, limit) = (sequence_state_bytes(header), u64::from(spec.checkpoint_mib) << 20);
    (limit > 0 && state > limit).then(|| {
        format!(
            "no state of a sequence can be saved, so prompts that diverge are computed again: one \
             takes {}, and checkpoint_mib is {}",
            Bytes(state),
            spec.checkpoint_mib
        )
    })
}

/// Tokens that may be computed in a shared pool before a sequence that was not used meanwhile is
/// evicted.
pub(super) fn unused_max(rollback: Rollback, spec: &EngineSpec) -> u64 {
    match rollback {
        Rollback::Any if spec.device.is_cpu() => UNUSED_TOKENS_MAX_CPU,
        // With saved states few layers attend, and what is evicted is lost to the states too.
        Rollback::Saved { .. } | Rollback::Any => UNUSED_TOKENS_MAX_GPU,
    }
}

/// Returns whether a sequence has the cells that the token after `length` others needs. In a shared
/// pool llama.cpp reuses the cells that a sliding window has passed, and a sequence that is rolled
/// back would need them again.
pub(super) fn is_whole(context: &LlamaContext<'_>, window: u64, seq: SeqId, length: usize) -> bool {
    is_window_whole(context.kv_cache_seq_pos_min(seq.raw()), window, length)
}

/// Returns whether the cells from position `first` on are all that the token after `length` others
/// attends to. A window of 0 is unknown, or none.
fn is_window_whole(first: i32, window: u64, length: usize) -> bool {
    let needed = if window == 0 { 0 } else { (length as u64).saturating_sub(window) };
    u64::try_from(first).is_ok_and(|first| first <= needed)
}

/// Applies the operations in order.
pub(super) fn apply(
    context: &mut LlamaContext<'_>,
    cache: &ContextCache,
    ops: &mut Vec<CacheOp>,
) -> Result<(), Fatal> {
    for op in ops.drain(..) {
        let done = match op {
            CacheOp::Truncate { seq, from } => {
                let seq = Some(seq.raw().unsigned_abs());
                context.clear_kv_cache_seq(seq, Some(from), None).map_err(|error| error.to_string())
            }
            CacheOp::Copy { from, to, end } => context
                .copy_kv_cache_seq(from.raw(), to.raw(), None, end)
                .map(|()| true)
                .map_err(|error| error.to_string()),
            CacheOp::Restore { seq, checkpoint } => match cache.state(checkpoint) {
                Some(state) => context
                    .state_seq_set(state, seq.raw())
                    .map(|()| true)
                    .map_err(|error| format!("{error}: {}", ffi::take_logs())),
                None => Err("its state is no longer saved".to_owned()),
            },
        };
        match done {
            Ok(true) => {}
            Ok(false) => return Err(Fatal(format!("the KV pool does not support {op:?}"))),
            Err(reason) => return Err(Fatal(format!("{op:?} failed: {reason}"))),
        }
    }
    Ok(())
}

/// Saves the state of a sequence that holds exactly these tokens, unless it is saved already.
pub(super) fn save(
    context: &LlamaContext<'_>,
    cache: &mut ContextCache,
    seq: SeqId,
    tokens: &[Token],
) -> Result<(), Fatal> {
    // What the attention layers hold can be cut at any token, and stays where it is.
    let flags = LlamaStateSeqFlags::PARTIAL_ONLY;
    let bytes = context.state_seq_get_size_ext(seq.raw(), flags) as u64;
    if !cache.wants_state(seq, tokens, bytes) {
        return Ok(());
    }
    let state = context
        .state_seq_get(seq.raw(), flags)
        .map_err(|error| Fatal(format!("saving the state of a sequence failed: {error}")))?;
    cache.save(seq, tokens, bytes, state);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_whole_if_it_has_the_last_cells() {
        for (first, window, length, is_whole) in [
            // Models without a window keep all cells.
            (0, 0, 500, true),
            (1, 0, 500, false),
            (0, 32, 500, true),
            (468, 32, 500, true),
            (469, 32, 500, false),
            // Shorter than the window.
            (0, 32, 20, true),
            (1, 32, 20, false),
            // No cells at all.
            (-1, 32, 500, false),
        ] {
            assert_eq!(
                is_window_whole(first, window, length),
                is_whole,
                "{first} {window} {length}"
            );
        }
    }
}
