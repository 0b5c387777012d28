//! What the benches measure, prepared in one place so that wall times and instruction counts are
//! those of the same things.
#![allow(dead_code, reason = "each bench uses a part")]

pub mod climbed;
pub mod null_ring;
pub mod records;
pub mod steps;
pub mod votes;
