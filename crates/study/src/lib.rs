//! Studies of agents on PRIME-Bench: records of runs, statistics, tables, figures and the page.
//!
//! This crate knows no agents, no runtime and no engine: the code that runs systems passes records
//! in, and every report can be made again from records alone.

#![warn(missing_docs)]

pub mod definition;
pub mod figures;
pub mod leaderboard;
mod nearest;
pub mod plan;
mod plots;
pub mod records;
pub mod report;
pub mod results;
pub mod statistics;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod training;
