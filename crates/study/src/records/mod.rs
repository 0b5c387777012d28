//! Records: one row for each run, as JSON Lines that grow by appending, and as Parquet for analysis
//! elsewhere.

mod benchmark;
mod columns;
mod contradiction;
mod curve;
mod evidence;
mod log;
mod merge;
mod names;
mod parquet_file;
mod read;
mod record;
mod refusals;

pub use columns::{Column, Kind, markdown};
pub use curve::Point;
pub(crate) use curve::is_right_at;
pub use evidence::Evidence;
pub use log::{AppendError, RecordLog};
pub(crate) use merge::short_digest;
pub use merge::{MergeError, Merged, MixedSystem, Part, merge};
pub use parquet_file::{ParquetError, write_parquet};
pub use read::{ReadError, Records, read, read_all};
pub use record::{COLUMNS, GIVEN, Key, Provenance, Record, SCHEMA, StageOutcome, Status};
pub(crate) use record::{SEVERITIES, severity_name};
