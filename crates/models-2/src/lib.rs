//! The second half of the models inside the executable of `prime-agents`, as `models/built-in.toml`
//! lists them: the files that would make the crate `prime-models` larger than the 10 MB that
//! crates.io takes.

#![warn(missing_docs)]

/// `models/prime-hybrids.gguf`.
pub const PRIME_HYBRIDS: &[u8] = include_bytes!("../models/prime-hybrids.gguf");
/// `models/prime-large.gguf`.
pub const PRIME_LARGE: &[u8] = include_bytes!("../models/prime-large.gguf");
/// `models/prime-machines.gguf`.
pub const PRIME_MACHINES: &[u8] = include_bytes!("../models/prime-machines.gguf");
/// `models/prime-numbers.gguf`.
pub const PRIME_NUMBERS: &[u8] = include_bytes!("../models/prime-numbers.gguf");
/// `models/prime-puzzles.gguf`.
pub const PRIME_PUZZLES: &[u8] = include_bytes!("../models/prime-puzzles.gguf");
