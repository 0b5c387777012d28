//! When to try again: growing pauses, and how often something failed lately. Never sleeps and reads
//! no clock: callers pass times in and wait themselves.

#![warn(missing_docs)]

mod backoff;
mod sliding_window;

pub use backoff::Backoff;
pub use sliding_window::SlidingWindow;
