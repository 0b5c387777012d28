//! When to try again. Never sleeps and reads no clock: callers pass times in and wait themselves.

mod backoff;

pub use backoff::Backoff;
