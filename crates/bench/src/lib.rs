//! PRIME-Bench: 86 algorithmic tasks as step machines, the lines of its instances and traces, its
//! prompts, and the judge of outputs.
//!
//! Pure: no I/O except to writers that the caller passes, no clock, no threads, no async.

#![warn(missing_docs)]

pub mod augmentation;
pub mod curriculum;
pub mod dataset;
mod fnv1a;
pub mod interval;
pub mod json_integer;
pub mod judge;
pub mod output;
pub mod prompts;
pub mod spelling;
pub mod tasks;

pub use fnv1a::fnv1a;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
