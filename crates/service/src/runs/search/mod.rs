//! Finding runs: the entry of each in the journal's search index (`entry`), the runs that have
//! changed since (`changed`), the task that notes them (`indexer`), and whether it has noted all of
//! them (`indexed`).

pub(super) mod changed;
mod entry;
pub(super) mod indexed;
mod indexer;

pub use entry::searched_text;
