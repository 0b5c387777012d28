//! Load measurement and its report: the clock and phases of a measurement, open and closed loops,
//! latency histograms, resource usage, comparison with a baseline, tables and an HTML page; also
//! the load on a running daemon over HTTP. It must not know agents, runtime, engine or journal: the
//! caller drives the load and reports its steps. It prints nothing.

#![warn(missing_docs)]

mod assemble;
pub mod baseline;
mod charts;
pub mod comparison;
mod description;
mod gate;
pub mod hdr_log;
pub mod histogram;
mod host_info;
pub mod http;
pub mod measurement;
mod number_format;
mod open_loop;
pub mod page;
mod point;
mod precise_timer;
mod record;
pub mod report;
mod resource_usage;
mod schedule;
mod session;
mod tables;
#[cfg(test)]
mod testing;
pub mod text;
mod trajectory;

pub use assemble::{TestStart, report};
pub use host_info::host_info;
pub use measurement::{Launch, Measurement, MeasurementError, measure};
pub use point::Measured;
pub use precise_timer::PreciseTimer;
pub use record::{StageKind, Tokens};
pub use session::{Phase, Session};
pub use trajectory::{RunEnd, Trajectory};

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: prime_allocator::Counting = prime_allocator::Counting;
