//! The suite itself: it is silent about good agents, and loud about bad ones.

mod bad;
mod good;
