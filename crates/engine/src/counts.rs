//! What an engine's worker has done, in numbers that only grow, and what it has at the moment.

use serde::{Deserialize, Serialize};

/// Counts since the worker started; a restarted worker begins at 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCounts {
    /// Calls of llama.cpp's decode.
    pub decodes: u64,
    /// Tokens in them, prompts and generated ones together.
    pub decoded_tokens: u64,
    /// Tokens of the prompts of all turns that began.
    pub prompt_tokens: u64,
    /// Of these, tokens that were in the KV pool already: `shared_tokens / prompt_tokens` is the hit rate.
    pub shared_tokens: u64,
    /// Tokens that were generated, the forced ones included.
    pub generated_tokens: u64,
    /// Generated tokens that a grammar left no choice about; they were not sampled.
    pub forced_tokens: u64,
    /// Turns that began with tokens of a sequence that others go on using.
    pub forks: u64,
    /// Turns that went on with a sequence that was cut back to what they have in common.
    pub rollbacks: u64,
    /// Kept sequences that were given up because their place was needed.
    pub evictions: u64,
    /// Turns that nobody waited for any more.
    pub cancelled: u64,
    /// Turns that have a sequence now.
    pub live: u32,
    /// Turns that wait for one now.
    pub queued: u32,
    /// 99th percentile of the duration of a decode, in microseconds; 0 until enough were seen.
    pub decode_p99_us: u32,
}
