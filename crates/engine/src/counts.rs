//! Counters and gauges of an engine's worker.

use serde::{Deserialize, Serialize};

/// Counts since the worker started; a restarted worker begins at 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCounts {
    /// Calls to llama.cpp's decode.
    pub decodes: u64,
    /// Tokens decoded, of prompts and generated.
    pub decoded_tokens: u64,
    /// Prompt tokens of all turns that started.
    pub prompt_tokens: u64,
    /// Prompt tokens found in the KV cache: `shared_tokens / prompt_tokens` is the hit rate.
    pub shared_tokens: u64,
    /// Generated tokens, including forced ones.
    pub generated_tokens: u64,
    /// Generated tokens that were the only ones a grammar allowed; they were not sampled.
    pub forced_tokens: u64,
    /// Tokens that were drafted from a turn's own text and computed ahead of their choice.
    pub drafted_tokens: u64,
    /// Drafted tokens that were then chosen.
    pub accepted_tokens: u64,
    /// Turns that started from a copy of another sequence's prefix.
    pub forks: u64,
    /// Turns that continued a cached sequence, truncated to the common prefix.
    pub rollbacks: u64,
    /// Cached sequences evicted to make room.
    pub evictions: u64,
    /// Turns cancelled by their callers.
    pub cancelled: u64,
    /// Turns that have a sequence.
    pub live: u32,
    /// Turns that wait for a sequence.
    pub queued: u32,
    /// 99th percentile of decode latency, in microseconds; 0 until there are enough samples.
    pub decode_p99_us: u32,
}
