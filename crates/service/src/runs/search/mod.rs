//! Finding runs: what is noted of each in the journal's search index (`entry`), which runs have
//! changed since (`changed`), and the task that notes them (`indexer`).

pub(super) mod changed;
mod entry;
pub(super) mod indexer;

pub use entry::searched_text;
