//! Tests of the suite itself, with good and bad agents.

mod bad;
mod good;
