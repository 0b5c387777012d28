//! Finding runs: what is noted of each in the journal's search index (`entry`), which runs have
//! changed since (`changed`), the task that notes them (`indexer`), and whether it has noted
//! all (`indexed`).

pub(super) mod changed;
mod entry;
pub(super) mod indexed;
mod indexer;

pub use entry::searched_text;
