//! The PRIME protocol as an actor runtime: Executor, Verifier, Coordinator and Supervisor agents
//! solve algorithmic problems step by step, and every step is checked.
//!
//! This package is the program: its command line ([`cli`]), whole runs and single steps measured
//! ([`evaluation`]), and the loads of the load test ([`loads`]). Everything else is in the crates
//! below it, of which ARCHITECTURE.md has the list; none of them knows this package.

#![warn(missing_docs)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod evaluation;
pub mod loads;
